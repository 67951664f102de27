"""What is looked up once for all lines that differ in digits alone, and units that stand in cells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stallwise.doctor.gather import gather
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.serving import ENGINE_SAMPLES
from stallwise.evidence.reading import cell_of, rows_of
from stallwise.evidence.skeletons import asks_for_digits, loosened
from stallwise.readers.shapes.lines import Peeler
from stallwise.readers.shapes.unwrap import plain


@pytest.mark.parametrize(
    ("pattern", "fits", "asks"),
    [
        (r"exit code (?:-9|137)\b", "exit code 1", True),
        (r"rank\[?(?P<rank2>\d{1,5})\]?: [A-Z]\w{1,60}Error", "rank3: ValueError", False),
        (r"x[1-4]\b", "x9", True),
        (r"v[^12]\.", "v1.", True),
        (r"0x[0-9a-f]+", "7xab", True),
        (r"step (?!0\b)\d+", "step 0", True),
    ],
)
def test_an_expression_with_any_digits_fits_whatever_another_line_of_the_skeleton_may_hold(pattern, fits, asks) -> None:
    assert re.search(loosened(pattern), fits)
    assert asks_for_digits(pattern) is asks


def test_a_unit_that_every_cell_bears_goes_to_the_title() -> None:
    cells = [["699.2 W", "68 °C", "64 MiB", "3 x"], ["1,700 W", "70 °C", "1 GiB", "4 x"], ["", "71 °C", "2 GiB", "5 x"]]
    rows = rows_of(["power", "temp", "size", "gain"], [[cell_of(c) for c in row] for row in cells], [1, 2, 3])
    assert rows.columns == ("power (W)", "temp (C)", "size", "gain")
    assert rows.cells[0] == [699.2, 1700.0, None] and rows.cells[1] == [68.0, 70.0, 71.0]
    assert rows.cells[2] == ["64 MiB", "1 GiB", "2 GiB"]


def test_prefixes_of_a_skeleton_are_found_once_and_do_not_pile_up() -> None:
    peeler = Peeler({})
    for n in range(5):
        message, row = peeler.peel(f"2024-02-08 01:20:0{n}  [rank{n}]: loss {n}", skeleton=7)
        assert message == f"loss {n}" and row["rank"] == str(n)
    assert len(peeler.known[7]) == 2


def test_hosts_that_differ_in_their_number_are_cut_apart() -> None:
    lines = [f"node-{n:02d}:4{n}:5{n} [{n % 8}] NCCL INFO Channel 0{n % 8} : ready" for n in range(12)]
    glued = [a + b for a, b in zip(lines[::2], lines[1::2], strict=True)]
    assert plain(Artifact("x.log", content="\n".join([*lines, *glued]).encode())).lines() == lines + lines


def test_an_engine_that_took_over_the_names_of_another_is_read(tmp_path: Path) -> None:
    page = "".join(
        f'# TYPE other:{name} gauge\nother:{name}{{model_name="m"}} {value}\n'
        for name, value in (("num_requests_running", 12), ("num_requests_waiting", 40), ("gpu_cache_usage_perc", 0.97))
    )
    (tmp_path / "metrics.txt").write_text(page)
    evidence = gather([str(tmp_path)], cache=False, workers=1)
    (table,) = evidence.table(ENGINE_SAMPLES)
    assert table.columns["running"][0] == 12 and table.columns["waiting"][0] == 40
