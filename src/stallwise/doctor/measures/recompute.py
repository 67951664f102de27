"""Forward work that runs again inside the backward pass (activation checkpointing), and forward work nobody uses.

Composite forward operators (linear, attention, norms, activations) are never called by gradient formulas, so seeing
them under the autograd engine means that a forward pass is being repeated there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Kind, Timeline

FORWARD_ONLY = (
    "aten::linear",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::convolution",
    "aten::scaled_dot_product_attention",
    "aten::layer_norm",
    "aten::rms_norm",
    "aten::batch_norm",
    "aten::group_norm",
    "aten::silu",
    "aten::gelu",
    "aten::relu",
    "aten::relu_",
    "aten::softmax",
    "aten::embedding",
    "aten::dropout",
    "aten::matmul",
    "aten::multi_head_attention_forward",
    "aten::max_pool2d",
    "aten::native_layer_norm",
    "aten::_fused_rms_norm",
)
GEMM_OPERATORS = ("aten::linear", "aten::matmul", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution")
MIN_KINDS = 2  # a custom backward may call matmul; a repeated forward pass also repeats norms and activations
SEVERAL_FORWARDS = (
    1.5  # forward products per backward product: frozen parts lack some gradients, whole extra passes double it
)
# Gradients of products as the engine names them.
_GRADIENT = ("MmBackward", "AddmmBackward", "BmmBackward", "LinearBackward", "ConvolutionBackward", "BaddbmmBackward")


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Repeated and unused forward work, and the number of backward passes."""
    index = step_index(timeline)
    view, purposes = index.view, index.purposes
    if not len(view) or not len(view.tree):
        return
    names = timeline.name[view.tree.row]
    forward = np.isin(names, [i for i, n in enumerate(timeline.names) if n in FORWARD_ONLY])
    backward = purposes.operator_in_backward
    optimizer = purposes.in_optimizer
    first_pass = index.inside & view.is_kernel & ~purposes.in_backward & ~optimizer & ~purposes.communication
    forward_s = float(view.duration[first_pass].sum())
    yield step_fact(index, catalog.FORWARD_TIME, forward_s / index.steps)
    yield from _repeated(index, forward & backward, forward & ~backward, forward_s)
    passes = _passes(index)
    if passes:
        yield step_fact(index, catalog.MICROBATCHES, passes)
    yield from _unused(index, names, backward)


def repeated_spans(index: StepIndex) -> Spans:
    """When the host runs forward operators again inside the backward pass: from the begin of the engine's node that asked for
    them to what the node does afterwards."""
    view, t = index.view, index.timeline
    tree = view.tree
    if not len(tree):
        return NOTHING
    names = t.name[tree.row]
    forward = np.isin(names, [i for i, n in enumerate(t.names) if n in FORWARD_ONLY])
    again = forward & index.purposes.operator_in_backward
    if len(np.unique(names[again])) < MIN_KINDS:
        return NOTHING
    under = np.where(tree.parent >= 0, tree.parent, 0)
    top = again & (tree.parent >= 0) & ~tree.inherited(again)[under]
    node, place = np.unique(tree.parent[top], return_inverse=True)
    last = np.full(len(node), -np.inf)
    np.maximum.at(last, place, t.end_s[tree.row[top]])
    return Spans.of(t.start_s[tree.row[node]], _next_under(index, node, last))


def _next_under(index: StepIndex, node: NDArray[np.int64], after_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """When each of these operators calls its next one after a moment; the moment itself where it calls none."""
    tree, t = index.view.tree, index.timeline
    child = np.flatnonzero(np.isin(tree.parent, node))
    if not len(child):
        return after_s
    place = np.searchsorted(node, tree.parent[child])
    start = t.start_s[tree.row[child]]
    later = start >= after_s[place]
    found = np.full(len(node), np.inf)
    np.minimum.at(found, place[later], start[later])
    return np.where(np.isfinite(found), found, after_s)


def _repeated(index: StepIndex, again: NDArray[np.bool_], once: NDArray[np.bool_], forward_s: float) -> Iterator[Item]:
    view, t = index.view, index.timeline
    kinds = len(np.unique(t.name[view.tree.row][again]))
    if kinds < MIN_KINDS:
        yield step_fact(index, catalog.RECOMPUTE_TIME, 0.0, low=0.0, high=0.0)
        return
    known = index.inside & (view.operator >= 0)
    at = np.maximum(view.operator, 0)
    repeated_s = float(view.duration[known & view.tree.inherited(again)[at]].sum())
    seen_s = float(view.duration[known & view.tree.inherited(once)[at] & ~index.purposes.in_backward].sum())
    # Residual adds, casts and reshapes between those operators repeat too; the forward pass tells their share.
    scale = min(max(forward_s / seen_s, 1.0), 2.0) if seen_s > 0 else 1.0
    steps = index.steps
    yield step_fact(
        index,
        catalog.RECOMPUTE_TIME,
        repeated_s * (1 + scale) / 2 / steps,
        low=repeated_s / steps,
        high=repeated_s * scale / steps,
    )


def _passes(index: StepIndex) -> float:
    """Backward passes a step: the engine runs each node of the loss once a pass."""
    t = index.timeline
    rows = t.rows(Kind.CPU_OP, Kind.ANNOTATION)
    engine = np.array(["autograd::engine::evaluate_function" in n for n in t.names])
    rows = rows[engine[t.name[rows]]]
    lo, hi = index.windows.host[0], index.windows.host[-1]
    rows = rows[(t.start_s[rows] >= lo) & (t.start_s[rows] < hi)]
    if not len(rows):
        return 0.0
    count = np.bincount(t.name[rows])
    least = float(count[count > 0].min())
    return max(1.0, round(least / index.steps))


def _unused(index: StepIndex, names: NDArray[np.int32], backward: NDArray[np.bool_]) -> Iterator[Item]:
    """Named evaluation, or more forward products than gradients can account for."""
    view, t = index.view, index.timeline
    named = view.ranges(Host.EVALUATION, Kind.ANNOTATION)
    launched_in = named.contains(view.launch_start) & index.inside & view.launched
    if launched_in.any():
        rows = t.rows(Kind.ANNOTATION)
        rows = rows[(view.range_flags[t.name[rows]] & int(Host.EVALUATION)) != 0]
        device = Spans.of(view.start[launched_in], view.end[launched_in])
        yield step_fact(index, catalog.EVALUATION_NAMED, t.text(int(rows[0])))
        yield step_fact(index, catalog.EVALUATION_TIME, index.mean_s(device))
        return
    root = view.tree.parent < 0
    gemm = np.isin(names, [i for i, n in enumerate(t.names) if n in GEMM_OPERATORS])
    # Count the outermost product operator only: linear calls matmul calls mm.
    under = view.tree.inherited(gemm)
    top = gemm & (root | ~under[np.maximum(view.tree.parent, 0)])
    gradient = np.array([any(g in n for g in _GRADIENT) and "evaluate_function" in n for n in t.names])
    engine = t.rows(Kind.CPU_OP, Kind.ANNOTATION)
    engine = engine[gradient[t.name[engine]]]
    first_pass: NDArray[np.bool_] = top & ~backward
    forwards = _by_step(index, t.start_s[view.tree.row[first_pass]])
    gradients = _by_step(index, t.start_s[engine])
    extra = (gradients > 0) & (forwards > SEVERAL_FORWARDS * gradients)
    if extra.any():
        # The forward work of a step, less the part that its gradients account for.
        forward = index.inside & view.is_kernel & ~index.purposes.in_backward & ~index.purposes.in_optimizer
        spent = np.histogram(view.start[forward], bins=index.windows.device, weights=view.duration[forward])[0]
        unused = np.where(extra, spent * (1.0 - gradients / np.maximum(forwards, 1.0)), 0.0)
        yield step_fact(index, catalog.EVALUATION_TIME, float(unused.mean()))


def _by_step(index: StepIndex, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many of these moments lie in each of the host's steps."""
    return np.histogram(time_s, bins=index.windows.host)[0].astype(np.float64)
