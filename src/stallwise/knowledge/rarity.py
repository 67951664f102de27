"""How rare a mark is among the cases: what every incident says tells nothing about any."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cache

from stallwise.knowledge.cases import cases, left_out


def rarity(mark: str) -> float:
    """From 0 (in every case) to about 1 (in none)."""
    seen, total = _seen(left_out())
    return max(0.0, math.log((total + 1) / (seen.get(mark, 0) + 0.5))) / math.log(max(total, 2))


@cache
def _seen(_without: frozenset[str]) -> tuple[Mapping[str, int], int]:
    known = cases()
    return Counter(word for case in known for word in case.words), len(known)
