"""What the page gets of a step: packed without loss, small, and never markup."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose
from stallwise.render.html import to_html
from stallwise.render.redact import shareable
from stallwise.render.timeline import packed
from tests.render.hostile import MARKUP, hostile

REPO = Path(__file__).parents[2]
DATA = re.compile(r'<script type="application/json" id="tl-data">(.*?)</script>', re.S)


def unpacked(text: str, count: int, columns: int) -> list[list[int]]:
    data = iter(base64.b64decode(text))
    found = []
    for _ in range(columns):
        column, last = [], 0
        for _ in range(count):
            value, scale = 0, 1
            while True:
                byte = next(data)
                value += (byte & 127) * scale
                scale *= 128
                if not byte & 128:
                    break
            last += -(value + 1) // 2 if value % 2 else value // 2
            column.append(last)
        found.append(column)
    assert next(data, None) is None
    return found


numbers = st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=30)


@given(numbers)
def test_packing_loses_nothing(values: list[int]) -> None:
    columns = [values, values[::-1]]
    assert unpacked(packed([np.array(c, np.int64) for c in columns]), len(values), 2) == columns


def test_markup_stays_inside_the_data() -> None:
    html = to_html(hostile())
    (data,) = DATA.findall(html)
    assert "<" not in data
    told = json.loads(data)
    assert told["scenes"][0]["names"] == [MARKUP]
    assert told["proofs"] == {"0": [0, [1]]}


@pytest.fixture(scope="module")
def html() -> str:
    return to_html(diagnose(str(REPO / "examples" / "traces" / "loader_slow" / "trace.json.gz")))


def test_the_page_holds_the_boxes_and_their_times(html: str) -> None:
    (scene,) = json.loads(DATA.findall(html)[0])["scenes"]
    c = dict(zip(scene["columns"], unpacked(scene["data"], scene["rows"], len(scene["columns"])), strict=True))
    whole = [v["length"] for v in scene["versions"]]
    ledger = [i for i, track in enumerate(c["track"]) if track == 0]
    assert sum(c["length"][i] for i in ledger if c["version"][i] == 0) == pytest.approx(whole[0], rel=1e-5)
    assert max(c["name"]) < len(scene["names"]) and max(c["facts"]) < len(scene["facts"])
    assert len(html) < 500_000


def test_a_shared_page_names_no_file_of_ours(html: str) -> None:
    clean = to_html(shareable(diagnose(str(REPO / "examples" / "traces" / "loader_slow" / "trace.json.gz"))))
    assert "trace.json.gz" in DATA.findall(html)[0]
    assert "loader_slow" not in clean and "trace.json.gz" not in DATA.findall(clean)[0]
