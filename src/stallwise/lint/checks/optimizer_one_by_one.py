"""The optimizer updates one tensor at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee, is_constant, keyword

CAUSE = "optimizer-unfused"
FIX = "fused=True (or leave foreach at its default)"
COST = "several kernels a tensor: 1,000 tensors are about 10 ms of launches; a fused update is one pass over the state"


KINDS = ("Adam", "AdamW", "SGD", "NAdam", "RAdam", "Adagrad", "RMSprop", "Adamax", "Adadelta")


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """torch.optim.X(..., foreach=False); the default on a GPU takes many tensors a kernel already."""
    for call in source.calls:
        kind = callee(call).rsplit(".", 1)[-1]
        if kind not in KINDS or any(k.arg is None for k in call.keywords):
            continue
        if callee(call) != kind and "optim" not in callee(call):
            continue
        if is_constant(keyword(call, "foreach"), False) and not is_constant(keyword(call, "fused"), True):
            yield call, f"{kind}(foreach=False) launches several kernels for every parameter tensor"
