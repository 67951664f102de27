"""A copy to the device blocks the host in every step although the batch is pinned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.edit import Edit, set_keyword
from stallwise.lint.source import Source, dotted, is_constant, keyword

CAUSE = "h2d-copy-exposed"
FIX = "pass non_blocking=True"
COST = "the copy's time, every step, unless hidden behind queued work"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """.to(device) and .cuda() of a batch in the loop, in a script that pins memory."""
    pins = any(is_constant(keyword(c, "pin_memory"), True) for c in source.calls)
    if not pins:
        return
    for call in source.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda") or not source.hot(call):
            continue
        if call.func.attr == "to" and not (call.args and _is_device(call.args[0])):
            continue
        waits = keyword(call, "non_blocking")
        if (waits is None or is_constant(waits, False)) and not _made_here(call):
            yield call, f".{call.func.attr}() without non_blocking=True: the host waits for the copy"


def mended(call: ast.Call) -> Edit | None:
    """The same copy, not waited for."""
    return set_keyword(call, "non_blocking", "True")


def _is_device(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.startswith(("cuda", "gpu", "xpu"))
    return "device" in dotted(node).lower() or "rank" in dotted(node).lower()


def _made_here(call: ast.Call) -> bool:
    """model.to(device) and torch.zeros(...).to(device) are other stories."""
    assert isinstance(call.func, ast.Attribute)
    value = dotted(call.func.value)
    return value.startswith("torch.") or value.rsplit(".", 1)[-1] in ("model", "net", "module", "self")
