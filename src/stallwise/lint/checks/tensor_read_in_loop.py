"""A tensor's value is read on the host in every step: the host waits for all queued work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "host-sync"
FIX = "keep it on the device (detach().add_()) and read it every so many steps, after the step was launched"
COST = "the host loses its lead: up to the launch time of the rest of the step "


READS = ("item", "tolist", "numpy", "cpu", "nonzero")


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """Method calls that read, and float(), int(), bool() of a tensor."""
    for call in source.calls:
        if not source.hot(call):
            continue
        if isinstance(call.func, ast.Attribute) and call.func.attr in READS and not call.args:
            if (
                call.func.attr in ("item", "nonzero")
                or source.is_tensor(call.func.value)
                or _off_device(call.func.value)
            ):
                if not _chained(call, source):
                    yield (
                        call,
                        f".{call.func.attr}() in the training loop makes the host wait for the device every step",
                    )
        elif callee(call) in ("float", "int", "bool") and call.args and source.is_tensor(call.args[0]):
            yield (
                call,
                f"{callee(call)}() of a tensor in the training loop makes the host wait for the device every step",
            )


def _off_device(node: ast.expr) -> bool:
    """x.cpu() and x.detach().cpu(): only tensors are asked for that."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("cpu", "detach")


def _chained(call: ast.Call, source: Source) -> bool:
    """x.cpu().numpy() is one read, not two: only the outermost call speaks."""
    parent = source.parents.get(call)
    return isinstance(parent, ast.Attribute) and parent.attr in READS
