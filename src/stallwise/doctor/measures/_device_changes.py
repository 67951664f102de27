"""Changes of the device's own work: chains fused, scores never written, work done once, matrix work in a narrower type.

Work that is no longer done is no longer launched either: the host's time for it goes as well, which is what counts where the
host sets the pace.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._changes import Replays
from stallwise.doctor.measures._dependencies import blocked_calls
from stallwise.doctor.measures._layout_change import channels_last
from stallwise.doctor.measures._operators import NOBODY
from stallwise.doctor.measures._score_traffic import score_gemms, score_spans, score_traffic
from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._vocabulary import Host, Work, matrix_precision
from stallwise.doctor.measures.chains import fusible_in_order
from stallwise.doctor.measures.matrix import ALIGNED_RATIO, narrow_work
from stallwise.doctor.measures.recompute import repeated_spans
from stallwise.physics.costs.host_ways import autocast_ratio, checkpoint_beside_ratio
from stallwise.physics.costs.precision import half_width_ratio, matrix_unit_ratio
from stallwise.physics.sim.replay.change import Change

# Norms, softmax and losses stay fp32 under autocast.
MOVERS = (Work.ELEMENTWISE, Work.CAST, Work.LAYOUT, Work.FUSED, Work.REDUCTION)
# Of the products beside written scores a fused kernel keeps this much: it skips what is masked, keeps operands on the chip and
# repeats one product in five in the backward pass. A causal one took a fifth of them on an H200, a full one all.
GEMM_TIME_LEFT = 0.5

# What autocast adds to the work that it leaves wide, by that work's own bytes. A norm's input and output are cast, and so are their
# gradients: four times 6 bytes an element beside its own 20. Softmax reads the narrow type itself, so that only its output is cast, 12
# beside 20. Batch norm takes the narrow type.
CASTS = {Work.NORM: 1.2, Work.SOFTMAX: 0.6}
_TAKES_NARROW = re.compile(r"batch_?norm|bn_(fw|bw)", re.I)

_FP32 = re.compile(r"(^|_)(f32|fp32|float)(_|$|,|>|<)", re.I)

Bools = NDArray[np.bool_]


def fused(r: Replays) -> Change | None:
    """Each chain of pointwise kernels moves its bytes once: it takes as long as its longest member."""
    order, fusible = fusible_in_order(r.index)
    if not fusible.any():
        return None
    first = fusible & ~np.concatenate(([False], fusible[:-1]))
    chain = np.cumsum(first)[fusible] - 1
    seconds = r.index.view.duration[order][fusible]
    total = np.bincount(chain, weights=seconds)
    longest = np.zeros(len(total))
    np.maximum.at(longest, chain, seconds)
    left = np.ones(len(r.index.view))
    left[order[fusible]] = (longest / np.maximum(total, 1e-12))[chain]
    gone = np.zeros(len(r.index.view), bool)
    gone[order[fusible & ~first]] = True
    spans = _launching(r, gone)
    return Change(spans.start, spans.end, work=left[r.order])


def no_recompute(r: Replays) -> Change | None:
    """The forward pass runs once: its activations are kept."""
    spans = repeated_spans(r.index)
    if not len(spans):
        return None
    view = r.index.view
    again = view.launched & spans.contains(view.launch_start)
    # What checkpointing costs the host in the forward pass shows nowhere by name; it goes with the rest.
    whole = Spans.of(spans.start, spans.end + checkpoint_beside_ratio() * (spans.end - spans.start))
    return Change(whole.start, whole.end, r.waits_in(spans), np.where(again[r.order], 0.0, 1.0))


def fused_attention(r: Replays) -> Change | None:
    """Attention in one kernel: scores stay on the chip."""
    traffic, gemms = score_traffic(r.index), score_gemms(r.index)
    if not traffic.any():
        return None
    left = np.where(traffic, 0.0, np.where(gemms, GEMM_TIME_LEFT, 1.0))
    spans = score_spans(r.index)
    return Change(spans.start, spans.end, work=left[r.order])


def sixteen_bits(r: Replays) -> Change | None:
    """fp32 and TF32 matrix work and attention at the 16-bit rate, half the bytes in pointwise work; the host casts."""
    index, t = r.index, r.index.timeline
    work = index.purposes.work
    matrix = np.isin(work, (Work.GEMM, Work.CONV)) & index.view.is_kernel
    codes = t.name[index.view.work]
    arithmetic = {int(c): matrix_precision(t.names[c]) for c in np.unique(codes[matrix])}
    plain, wide = (
        matrix & np.isin(codes, [c for c, dtype in arithmetic.items() if dtype == kind]) for kind in ("fp32", "tf32")
    )
    ratio = matrix_unit_ratio(index.view.gpu)
    if not (plain.any() and ratio) and not wide.any():
        return None
    left = np.ones(len(index.view))
    if ratio is not None:
        left[plain] = 2.0 / (ratio[0] + ratio[1])
    half = half_width_ratio(index.view.gpu)
    left[wide] = 2.0 / (half[0] + half[1])
    share = float(index.view.duration[plain | wide].sum() / max(index.view.duration[matrix].sum(), 1e-12))
    wide_out = np.isin(work, list(CASTS)) & ~_named(r, _TAKES_NARROW)
    narrow = _follows(r, matrix, wide_out)
    left[np.isin(work, MOVERS) & ~index.purposes.in_optimizer & narrow] = 1.0 - 0.5 * share
    for kind, part in CASTS.items():
        left[(work == kind) & wide_out] = 1.0 + part * share
    wide_attention = _named(r, _FP32) & (work == Work.ATTENTION)
    if ratio is not None:
        left[wide_attention] = 2.0 / (ratio[0] + ratio[1])
    casting = r.launching - index.view.ranges(Host.OPTIMIZER)
    if len(blocked_calls(index.view)):  # a host so far ahead pays for its casts out of its lead
        casting = NOTHING
    return Change(
        work=left[r.order],
        slower_start_s=casting.start,
        slower_end_s=casting.end,
        slower_part=share * (autocast_ratio() - 1.0),
    )


def _named(r: Replays, pattern: re.Pattern[str]) -> Bools:
    """By device work: whether its name says this."""
    t = r.index.timeline
    codes = t.name[r.index.view.work]
    return np.isin(codes, [c for c in np.unique(codes).tolist() if pattern.search(t.names[c])])


def _follows(r: Replays, one: Bools, other: Bools) -> Bools:
    """By device work: whether the last before it that is either of two kinds is of the first."""
    order = np.argsort(r.index.view.start, kind="stable")
    last = np.maximum.accumulate(np.where((one | other)[order], np.arange(len(order)), -1))
    found = np.zeros(len(order), bool)
    found[order] = (last >= 0) & one[order][np.maximum(last, 0)]
    return found


def aligned(r: Replays) -> Change | None:
    """Rows start where whole vectors do: matrix kernels run at the rate of aligned ones."""
    narrow = narrow_work(r.index)
    if not narrow.any():
        return None
    return Change(work=np.where(narrow, 2.0 / sum(ALIGNED_RATIO), 1.0)[r.order])


def _launching(r: Replays, gone: Bools) -> Spans:
    """The host's time for operators all of whose work is gone."""
    view, t = r.index.view, r.index.timeline
    if not len(view.tree) or not gone.any():
        return Spans.of(np.empty(0), np.empty(0))
    tree, known = view.tree, view.operator >= 0
    kept, mine = np.zeros(len(tree), bool), np.zeros(len(tree), bool)
    kept[view.operator[known & ~gone]] = True
    mine[view.operator[known & gone]] = True
    # An operator goes when nothing below it stays; those above one that stays, stay.
    for level in reversed(tree.levels):
        up = tree.parent[level]
        held = up >= 0
        np.logical_or.at(kept, up[held], kept[level[held]])
        np.logical_or.at(mine, up[held], mine[level[held]])
    goes = mine & ~kept
    top = goes & ~((tree.parent != NOBODY) & goes[np.maximum(tree.parent, 0)])
    rows = tree.row[top]
    rows = rows[view.working_lanes[t.lane[rows]]]
    return Spans.of(t.start_s[rows], t.end_s[rows])


DEVICE_CHANGES: dict[str, Callable[[Replays], Change | None]] = {
    "fuse": fused,
    "dtype": sixteen_bits,
    "no-recompute": no_recompute,
    "fused-attention": fused_attention,
    "aligned": aligned,
    "channels-last": channels_last,
}


_last: list[tuple[Replays, dict[str, tuple[Change, float]]]] = []


def device_gains(r: Replays) -> dict[str, tuple[Change, float]]:
    """Each of these changes that applies, and what it wins; worked out once for the replays of a trace."""
    if not _last or _last[0][0] is not r:
        made = {name: make(r) for name, make in DEVICE_CHANGES.items()}
        _last[:] = [(r, {name: (change, r.gain_s(change)) for name, change in made.items() if change is not None})]
    return _last[0][1]
