"""Numbers of like lines, read as columns: the same as one `float` at a time, whatever the digits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from stallwise.evidence.number_columns import FEW_LINES, TOKEN, number_columns
from stallwise.evidence.skeletons import skeletons_of


def _written(rng: random.Random) -> str:
    return rng.choice(
        (
            lambda: str(rng.randrange(10 ** rng.randrange(1, 20))),
            lambda: f"{rng.random() * 10 ** rng.randrange(-9, 9):.{rng.randrange(17)}f}",
            lambda: f"{rng.random() * 10.0 ** rng.randrange(-60, 60):.{rng.randrange(9)}e}",
            lambda: f"{rng.randrange(10**9):,}",
            lambda: repr(rng.random() * 10.0 ** rng.randrange(-30, 30)),
            lambda: rng.choice(("1.", "0", "007", "12,", "3e5", "1E+22", "2²")),
        )
    )()


def test_every_number_is_the_one_that_float_gives() -> None:
    rng = random.Random(3)
    lines = [f"é{_written(rng)} a={_written(rng)}, b: {_written(rng)}" for _ in range(3000)]
    text = skeletons_of(lines * FEW_LINES)
    for skeleton in range(len(text.keys)):
        own = [text.lines[at] for at in text.members(skeleton)]
        written = [TOKEN.findall(line) for line in own]
        if len({len(row) for row in written}) > 1:
            continue
        slots = list(range(len(written[0])))[::-1]
        found = text.columns(skeleton, slots)
        assert found is not None
        assert np.array_equal(found, [[float(row[slot].replace(",", "")) for slot in slots] for row in written])


@pytest.mark.parametrize("count", [3, 3 * FEW_LINES])
def test_lines_with_another_count_of_numbers_are_not_columns(count: int) -> None:
    assert number_columns(["loss 1.5 at 3"] * count + ["loss . at 3"], [0]) is None


def test_a_number_in_another_place_is_read_where_it_stands() -> None:
    lines = ["a 1 b . c 2"] * 2 * FEW_LINES + ["a  b .7 c 25"]  # the same without digits
    found = number_columns(lines, [0, 1])
    assert found is not None
    assert found[-1].tolist() == [7.0, 25.0]
