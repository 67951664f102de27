"""Stamps read many at once are what they are read one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec import Raw

from stallwise.readers.native._trace_stamps import stamps_us

KINETO = [f"{1_683_564_901_557_766 + 977 * n}.{n:03d}" for n in range(500)]
WRITTEN = {
    "with a fraction": KINETO,
    "whole": [f"{1_683_564_901_557_766 + n}" for n in range(50)],
    "of several lengths": ["9.5", "99.25", "1683564901557766.0", "100", "99.125", "0", "98.5"],
    "the point wanders": ["123.45", "12.345", "1234.5"],
    "odd": ["-3.25", "1e3", "77.5", "1683564901557766.123456789012"],
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_the_numbers_are_those_of_json(written: list[str]) -> None:
    found = stamps_us([Raw(w.encode()) for w in written])
    assert found.tolist() == [float(json.loads(w)) for w in written]


def test_quoted_numbers_count_and_what_is_none_is_nan() -> None:
    written = ['"77.5"', "null", "", "true and", "[1,2]", "5", "12:30"]
    found = stamps_us([Raw(w.encode()) for w in written])
    assert found[[0, 5]].tolist() == [77.5, 5.0]
    assert np.isnan(found[[1, 2, 3, 4, 6]]).all()
    assert len(stamps_us([])) == 0
