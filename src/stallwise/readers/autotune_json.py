"""A sweep over kernel configurations as JSON, with the time of the library path beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source
from stallwise.readers._configs import is_config, items_of

FORMAT = "autotune sweep"
EXCLUSIVE = True
_HINT = re.compile(rb'"(?:BLOCK_\w+|XBLOCK|num_warps|num_stages)"\s*:')
_LIBRARY = re.compile(r"^(?:eager|library|cublas|torch|reference|baseline|unfused)\w*?_?(ms|us|s)$")
_SCALE = {"ms": 1e-3, "us": 1e-6, "s": 1.0}
MAX_BYTES = 256 << 20


def recognises(name: str, head: bytes) -> bool:
    """JSON with configuration axes as keys."""
    start = head.lstrip()[:65536]
    return start[:1] in (b"{", b"[") and b"traceEvents" not in start and bool(_HINT.search(start))


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of configurations."""
    text = artifact.text(MAX_BYTES)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = list(_lines(text))
        if not whole:
            raise UnreadableInput(f"{artifact.name} is not whole JSON", hint="write the sweep again") from None
    head: dict[str, Any] = whole if isinstance(whole, dict) else {}
    lists = [v for v in (head.values() if head else [whole]) if isinstance(v, list)]
    rows = next(
        ([_flat(r) for r in v if isinstance(r, dict)] for v in lists if any(isinstance(r, dict) for r in v)), []
    )
    rows = [r for r in rows if is_config(r)]
    if not rows:
        raise UnreadableInput(f"{artifact.name} lists no configuration", hint='rows like {"BLOCK_M": 64, "ms": 0.4}')
    library = next(
        (float(v) * _SCALE[match[1]] for key, v in head.items()
         if (match := _LIBRARY.match(key)) and isinstance(v, (int, float))), None
    )  # fmt: skip
    yield from items_of(
        rows, Source(artifact.name), kernel=str(head.get("kernel", "")), library_s=library, shape=head.get("shape")
    )


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Some sweeps nest the axes under "kwargs" or "config"."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        found |= value if isinstance(value, dict) else {key: value}
    return found
