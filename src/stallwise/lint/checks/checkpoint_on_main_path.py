"""A checkpoint is written on the training thread."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "checkpoint-stall"
FIX = "torch.distributed.checkpoint.async_save, or copy to pinned memory and write from a thread"
COST = "the loop stands still for size over storage bandwidth: 14 bytes a parameter with Adam"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """torch.save of a state inside the training loop, even if only every so many steps."""
    for call in source.calls:
        name = callee(call)
        if name in (
            "torch.save",
            "save_checkpoint",
            "accelerator.save_state",
            "save_file",
            "dcp.save",
        ) and source.loop_of(call):
            if not _in_thread(call, source):
                yield call, f"{name}() in the training loop stops it until the file is written"


def _in_thread(call: ast.Call, source: Source) -> bool:
    return any(
        isinstance(a, ast.Call)
        and callee(a).rsplit(".", 1)[-1] in ("Thread", "submit", "apply_async", "run_in_executor")
        for a in source.above(call)
    )
