"""The algebra of time spans against a brute-force set of moments."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.measures._spans import Spans

pairs = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


def spans(values: list[tuple[int, int]]) -> Spans:
    return Spans.of([min(v) for v in values], [max(v) for v in values])


def moments(values: list[tuple[int, int]]) -> set[int]:
    return {m for a, b in values for m in range(min(a, b), max(a, b))}


def ticks(value: Spans) -> set[int]:
    return {m for a, b in zip(value.start, value.end, strict=True) for m in range(int(a), int(b))}


@given(pairs, pairs)
def test_operations_agree_with_sets(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert ticks(spans(a)) == moments(a)
    assert ticks(spans(a) | spans(b)) == moments(a) | moments(b)
    assert ticks(spans(a) & spans(b)) == moments(a) & moments(b)
    assert ticks(spans(a) - spans(b)) == moments(a) - moments(b)


@given(pairs, st.integers(0, 40), st.integers(0, 40))
def test_measure_inside_an_interval(a: list[tuple[int, int]], x: int, y: int) -> None:
    lo, hi = min(x, y), max(x, y)
    assert spans(a).within([lo], [hi])[0] == len(moments(a) & set(range(lo, hi)))


@given(pairs, st.integers(0, 39))
def test_a_moment_is_inside_or_not(a: list[tuple[int, int]], moment: int) -> None:
    assert bool(spans(a).contains([moment])[0]) == (moment in moments(a))


@given(pairs)
def test_spans_are_disjoint_sorted_and_never_empty(a: list[tuple[int, int]]) -> None:
    value = spans(a)
    assert np.all(value.end > value.start)
    assert np.all(value.start[1:] > value.end[:-1])
