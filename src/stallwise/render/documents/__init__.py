"""One file a kind of answer, named as its type: `document(answer)` places its figures and sentences in blocks."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from stallwise.render.blocks import Document

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def document_of(answer: object, **options: Any) -> Document:
    """The document of an answer, whatever its kind: `Diagnosis` is laid out by `diagnosis.py`."""
    name = _HUMP.sub("_", type(answer).__name__).lower()
    found: Document = import_module(f"{__name__}.{name}").document(answer, **options)
    return found
