"""Replays the steps of a trace with changes: each alone, all together, and the order in which they pay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from stallwise.doctor.findings.finding import Gain
from stallwise.doctor.findings.whatif import Tried, WhatIf
from stallwise.doctor.gather import artifacts_of, gather
from stallwise.doctor.measures import measure_evidence
from stallwise.doctor.measures._carried_over import carried_over
from stallwise.doctor.measures._changes import CHANGES, Replays
from stallwise.doctor.measures._device_changes import DEVICE_CHANGES
from stallwise.doctor.measures._replay_range import EMPTIES, won_range_s
from stallwise.doctor.measures._step_index import step_index
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._without_profiler import has_peers, without_profiler
from stallwise.errors import BadRequest, UnreadableInput
from stallwise.evidence.catalog import distributed
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.step_time import run_ledger
from stallwise.evidence.timeline import Timeline
from stallwise.physics.sim.replay.change import Change, both
from stallwise.readers import readers_for

ALL = {**CHANGES, **DEVICE_CHANGES}
LATE_RANK = "no-late-rank"
WORTH_SAYING = 0.005  # of the step
LESS_THAN_ALL = 0.995  # of the step: something always stays
MEASURED_VENDOR = "nvidia"  # whose cards the fixes behind the ranges ran on
ABSENT = {
    "no-input-wait": "no loader is seen in this trace",
    "no-sync": "no synchronising call is seen in this trace",
    "graphs": "graphs of launches are known of CUDA and HIP only",
    "no-allocation": "no call that allocates or frees device memory is seen in this trace",
    "fused-optimizer": "no optimizer with many launches is seen in this trace",
    "copies-ahead": "nothing is copied to the device in this trace",
    "no-save": "no checkpoint is written in this trace",
    "no-host-work": "the host does nothing for long between its operators in this trace",
    "fuse": "no chain of pointwise kernels is seen in this trace",
    "no-recompute": "nothing is computed twice in this trace",
    "fused-attention": "no attention that writes its scores is seen in this trace",
    "aligned": "no matrix work with odd dimensions is seen in this trace",
    "channels-last": "no convolution whose layout is converted is seen in this trace",
    "dtype": "no fp32 or TF32 matrix work is told by name or shape in this trace",
    LATE_RANK: "no rank is late, or there is one trace only: give the folder with the traces of all ranks",
}


def meaning_of(change: str) -> str:
    """What a change takes out, in a line."""
    return (ALL[change].__doc__ or "").strip().rstrip(".")


def what_if(path: str, changes: Iterable[str] = ()) -> WhatIf:
    """The replays; without changes, of all that can be tried."""
    asked = tuple(changes)
    unknown = [c for c in asked if c not in (*ALL, LATE_RANK)]
    if unknown:
        raise BadRequest(f"there is no change '{unknown[0]}'", hint=f"one of: {', '.join((*ALL, LATE_RANK))}")
    timeline, ranks = _timeline(path)
    evidence = _measured(path)
    cleaned = without_profiler(timeline)
    index = step_index(cleaned.timeline if cleaned is not None else timeline)
    if not len(index.view) or not index.view.launched.any():
        raise UnreadableInput(
            f"{path}: the trace holds no launches with their device work, so nothing can be replayed",
            hint="record CPU and CUDA activities: stallwise record -- python train.py",
        )
    replays = Replays(index)
    over = carried_over(evidence, replays.unchanged_s, timeline.scope)
    step, busy = over.step_s, min(index.mean_s(index.busy), over.step_s)
    made = {name: ALL[name](replays) for name in asked or ALL if name in ALL}
    found = {name: change for name, change in made.items() if change is not None}
    replayed = {name: replays.gain_s(change) for name, change in found.items()}
    alone = {name: over.won_s(won, {name: won}) for name, won in replayed.items()}
    keep = [name for name in found if asked or alone[name] > WORTH_SAYING * step]
    keep.sort(key=lambda name: -alone[name])
    winning = [name for name in keep if alone[name] > WORTH_SAYING * step]
    order, together, won = _in_order(replays, {name: found[name] for name in winning})
    won = over.won_s(won, {name: replayed[name] for name in order})
    ledger = run_ledger(evidence, timeline.scope)
    tried = [_removing(_tried((name,), meaning_of(name), alone[name], step, busy), ledger) for name in keep]
    # What device work the changes spare, at most: the rest of it stays, however many changes are made at once.
    spared = sum(t.gain.high_s for t in tried if t.changes[0] in DEVICE_CHANGES and t.changes[0] in winning)
    surest = max((t.gain.low_s for t in tried), default=0.0)  # all of them together win no less than the best of them
    late = without_late_rank(evidence, step) if ranks > 1 and (not asked or LATE_RANK in asked) else None
    absent = [name for name in asked if name in ALL and made[name] is None]
    absent += [LATE_RANK] if LATE_RANK in asked and late is None else []
    low_s, high_s = ledger.whole_ends_s if ledger is not None and ledger.clean_step_s is not None else (step, step)
    return WhatIf(
        source=timeline.source.file,
        steps=len(index.windows),
        unit=index.windows.unit,
        traced_step_s=cleaned.traced_step_s if cleaned else step,
        clean_step_s=step,
        clean_low_s=min(low_s, step),
        clean_high_s=max(high_s, step),
        alone=tuple(sorted((*tried, *([late] if late else [])), key=lambda t: -(t.gain.likely_s or 0.0))),
        together=_tried(tuple(order), "all that win, at once", won, step, busy, spared, surest)
        if together and len(order) > 1
        else None,
        order=tuple(order),
        nothing={name: ABSENT.get(name, "there is none of it in this trace") for name in absent},
        as_traced="" if cleaned or evidence.all(catalog.CLEAN_STEP) else _why_as_traced(timeline),
        ranks=ranks,
        remarks=tuple(_remarks(index.view, late)),
    )


def _measured(path: str) -> Evidence:
    """What a diagnosis of the same path measures: the step that it tells is the one that is replayed here."""
    evidence = gather([path])
    with np.errstate(all="ignore"):  # damaged numbers are judged, not warned of
        measure_evidence(evidence)
    return evidence


def without_late_rank(evidence: Evidence, step_s: float) -> Tried | None:
    """What the job wins when the late ranks come with the others: of all traces on one clock."""
    cost, who = evidence.get(distributed.STRAGGLER_COST), evidence.text(distributed.STRAGGLER)
    if cost is None or not 0 < cost.number < step_s:
        return None
    gain = Gain(cost.low or 0.0, min(cost.high or cost.number, step_s), "replayed", cost.number)
    return Tried(
        (LATE_RANK,), f"{who or 'the late rank'} comes to collectives with the others", gain, step_s - cost.number
    )


def _why_as_traced(timeline: Timeline) -> str:
    view = TraceView(timeline)
    if has_peers(view):
        return "other ranks set the pace too, so that what recording cost is not taken off"
    return "what its recorder costs nobody has measured, so that nothing is taken off"


def _remarks(view: TraceView, late: Tried | None) -> Iterator[str]:
    if late is not None:
        yield f"{LATE_RANK} is of the whole job, the other changes are of one rank"
    if view.gpu is not None and view.gpu.vendor != MEASURED_VENDOR:
        yield f"the ranges are those of fixes measured on {MEASURED_VENDOR.upper()} cards; on {view.gpu_name} they may lie further off"
    elif view.gpu is None and view.gpu_name:
        yield f"{view.gpu_name} is no card that is known here: the ranges may lie further off"


def _tried(
    changes: tuple[str, ...], meaning: str, won_s: float, step_s: float, busy_s: float,
    spared_s: float = 0.0, least_s: float = 0.0,
) -> Tried:  # fmt: skip
    low, high = won_range_s(won_s, changes, step_s, busy_s)
    if len(changes) > 1:
        low, high = (
            min(max(low, least_s), won_s),
            max(won_s, min(high, step_s - busy_s + spared_s, LESS_THAN_ALL * step_s)),
        )
    return Tried(changes, meaning, Gain(low, high, "replayed", won_s), step_s - won_s)


def _removing(tried: Tried, ledger: Ledger | None) -> Tried:
    """A change that empties an account wins no more than the account holds, unless the replay itself did: as in a diagnosis."""
    category = next((category for category, change in EMPTIES.items() if change == tried.changes[0]), None)
    if ledger is None or category is None:
        return tried
    most_s = max(ledger.seconds.get(category, 0.0), tried.gain.likely_s or 0.0)
    return replace(tried, gain=tried.gain.capped(most_s))


def _in_order(replays: Replays, changes: dict[str, Change]) -> tuple[list[str], Change | None, float]:
    """Greedy: the change that wins most, then the one that wins most beside it, and so on."""
    left, order, done, won = dict(changes), [], None, 0.0
    while left:
        gains = {n: replays.gain_s(c if done is None else both(done, c)) for n, c in left.items()}
        best = max(gains, key=gains.__getitem__)
        done = left[best] if done is None else both(done, left[best])
        won = gains[best]
        order.append(best)
        del left[best]
    return order, done, won


def _timeline(path: str) -> tuple[Timeline, int]:
    """The first trace, and how many files there are of its kind."""
    found, ranks = None, 0
    for artifact in artifacts_of([path]):
        for reader in readers_for(artifact):
            if found is not None:
                ranks += reader is found[1]
                continue
            for item in reader.read(artifact):
                if isinstance(item, Timeline):
                    found, ranks = (item, reader), 1
                    break
    if found is None:
        raise UnreadableInput(
            f"{path} holds no trace that can be replayed", hint="give a profiler trace: trace.json.gz"
        )
    return found[0], ranks
