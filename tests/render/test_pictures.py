"""Pictures hold whatever numbers come: empty, broken, many."""

from __future__ import annotations

import xml.etree.ElementTree as Xml

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.ledger import Category, Ledger
from stallwise.render.html import to_html
from stallwise.render.pictures import figures
from stallwise.render.svg import short, ticks
from tests.render.hostile import hostile

SOURCE = Source("rank.json")


def ranked(count: int, late: int | None = None) -> Diagnosis:
    evidence = Evidence()
    for rank in range(count):
        wait = 0.02 if rank == late else 0.08
        evidence.add([Ledger({Category.COMPUTE: 0.1 - wait, Category.COMMUNICATION: wait}, SOURCE, Scope(rank=rank))])
    finding = Finding("late", 0.9, (), cause="straggler-rank", scope=Scope(rank=late), category=Category.COMMUNICATION)
    return Diagnosis(
        "x", State.UNCLEAR if late is None else State.SICK, ("x",), (finding,), evidence.ledgers[0], evidence
    )


@pytest.mark.parametrize("count", [2, 8, 161, 1024])
def test_the_rank_map_frames_the_late_rank_and_stays_small(count: int) -> None:
    found = ranked(count, late=count - 1)
    (figure,) = [f for f in figures(found) if f.slug == "ranks"]
    svg = Xml.fromstring(str(figure.svg))
    assert [r for r in svg.iter("rect") if r.get("class") == "frame"]
    assert str(count - 1) in figure.svg
    assert len(to_html(found).encode()) < 400_000


def test_one_rank_needs_no_map() -> None:
    assert not [f for f in figures(ranked(1)) if f.slug == "ranks"]


def test_all_pictures_are_well_formed() -> None:
    found = figures(hostile())
    assert {f.slug for f in found} >= {"memory", "serving-0"}
    for figure in found:
        assert Xml.fromstring(str(figure.svg)).get("role") == "img"


numbers = st.one_of(st.floats(), st.just(float("nan")), st.floats(0, 1e15))


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=40))
def test_charts_survive_any_samples(rows: list[tuple[float, float]]) -> None:
    times = np.arange(len(rows), dtype=float)
    columns = {"time_s": times, "running": np.array([r[0] for r in rows]), "kv_share": np.array([r[1] for r in rows])}
    evidence = Evidence()
    evidence.add([Table("engine_samples", columns, SOURCE, meta={"engine": "vllm"})])
    found = Diagnosis("x", State.UNCLEAR, (), (), None, evidence)
    for figure in figures(found):
        Xml.fromstring(str(figure.svg))


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.integers(1, 12))
def test_ticks_lie_inside_and_are_few(low: float, span: float, wanted: int) -> None:
    found = ticks(low, low + span, wanted)
    assert len(found) <= 2 * wanted + 2
    slack = 1e-6 * (abs(low) + span)
    assert all(low - slack <= t <= low + span + slack for t in found)


@given(st.text(), st.integers(3, 50))
def test_a_shortened_name_fits(name: str, most: int) -> None:
    assert len(short(name, most)) <= max(most, 0) or len(name) <= most
