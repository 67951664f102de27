"""A JSON document that ends too early, closed behind its last whole object, and the whole records of one that is damaged inside."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

_RECORD = re.compile(r"\{[^{}\[\]]{2,20000}\}")
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]]')
MOST_BYTES = 64 << 20
_CLOSES = {"{": "}", "[": "]"}


def closed(text: str) -> str | None:
    """The document up to its last whole object, its open brackets closed; None where no object inside it is whole."""
    if len(text) > MOST_BYTES:
        return None
    open_brackets: list[str] = []
    end, above = 0, ""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in _CLOSES:
            open_brackets.append(_CLOSES[sign])
        elif sign in ("}", "]"):
            if not open_brackets or open_brackets.pop() != sign:
                return None
            if sign == "}" and open_brackets and open_brackets[-1] == "]":  # one of a list of records
                end, above = token.end(), "".join(reversed(open_brackets))
    return text[:end] + above if end and open_brackets else None


def records_in(text: str) -> list[dict[str, Any]]:
    """The flat objects that can be read, wherever they stand."""
    found: list[dict[str, Any]] = []
    for record in _RECORD.finditer(text[:MOST_BYTES]):
        with contextlib.suppress(ValueError):
            found.append(json.loads(record[0]))
    return [record for record in found if record]
