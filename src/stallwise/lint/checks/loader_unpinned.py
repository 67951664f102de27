"""Batches come in pageable memory, so copies to the device cannot overlap."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.edit import Edit, set_keyword
from stallwise.lint.source import Source, callee, is_constant, keyword

CAUSE = "h2d-copy-exposed"
FIX = "pin_memory=True in the DataLoader and non_blocking=True in .to()"
COST = "pageable copies run at about a quarter of the pinned rate on an H200 host, and block the host"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """DataLoader(...) without pin_memory in a script that copies to a device."""
    if not any(word in line for line in source.lines for word in ("cuda", "device")):
        return
    for call in source.calls:
        if callee(call).rsplit(".", 1)[-1] != "DataLoader" or any(k.arg is None for k in call.keywords):
            continue
        pinned = keyword(call, "pin_memory")
        if pinned is None or is_constant(pinned, False):
            yield call, "DataLoader without pin_memory: copies to the device block the host"


def mended(call: ast.Call) -> Edit | None:
    """The same loader with pinned batches."""
    return set_keyword(call, "pin_memory", "True")
