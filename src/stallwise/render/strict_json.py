"""JSON that every parser takes: what is not a number becomes null, what a terminal would obey is written out."""

from __future__ import annotations

import json
import math
import re
from json import loads
from typing import Any

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # JSON leaves them as they are; terminals obey some
__all__ = ["dumps", "finite", "loads"]


def finite(value: Any) -> Any:
    """The same without NaN and infinity, which JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return value


def dumps(value: Any, **options: Any) -> str:
    """Like json.dumps; the answer is JSON by the book and can be written anywhere."""
    text = json.dumps(finite(value), allow_nan=False, **options)
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
