"""A document as plain data, beside the keys that programs rely on already."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

from stallwise.render.blocks import (
    Document,
    Facts,
    Interactive,
    Number,
    Part,
    Picture,
    Range,
    Table,
    Words,
    figures_in,
    plain,
)

KEY = "document"
FOR_EYES = {
    "depth",
    "label",
    "kind",
    "hot",
    "bare",
    "inline",
    "folded",
    "is_open",
    "slug",
    "do_depth",
    "drop",
    "tab",
    "number",
    "places",
}


def with_document(data: Any, document: Document) -> Any:
    """The answer's own keys, and the document under one more; a list of rows is the document already."""
    return {**data, KEY: as_data(document)} if isinstance(data, dict) else data


def as_data(document: Document) -> dict[str, Any]:
    """Blocks with their figures: value, unit and as written."""
    return {
        "verdict": _plain(document.verdict),
        "subject": document.subject,
        "blocks": [_plain(b) for b in document.blocks if not isinstance(b, Interactive)],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, (Number, Range)):
        return _figure(value)
    if isinstance(value, tuple):
        if any(isinstance(part, (Number, Range)) for part in value) and _is_sentence(value):
            return _words(value)
        return [_plain(part) for part in value]
    if hasattr(value, "__dataclass_fields__"):
        left_out = FOR_EYES | ({"svg", "drawn", "legend"} if isinstance(value, Picture) else set())
        found = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name not in left_out}
        if isinstance(value, (Facts, Table)):
            found["rows"] = [[_words(cell) for cell in row] for row in value.rows]
        return {
            "block": type(value).__name__.lower(),
            **{k: v for k, v in found.items() if v not in ("", [], None, False)},
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(value)
    return value


def _words(words: Words) -> Any:
    if isinstance(words, tuple):
        return {"text": plain(words), "figures": [_figure(f) for f in figures_in(words)]}
    return words if isinstance(words, str) else _figure(words)


def _is_sentence(parts: tuple[Any, ...]) -> bool:
    return all(isinstance(part, (str, Number, Range)) for part in parts)


def _figure(part: Part) -> dict[str, Any]:
    assert not isinstance(part, str)
    found: dict[str, Any] = {"text": str(part), "unit": part.unit.value}
    found |= {"value": part.value} if isinstance(part, Number) else {"low": part.low, "high": part.high}
    return found | ({"source": part.source} if part.source else {})
