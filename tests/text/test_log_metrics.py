"""Every line that a gauge gives as its sample is read by it, through the anchors; all of them name known quantities."""

from __future__ import annotations

import pytest

from stallwise.evidence.catalog import quantities
from stallwise.evidence.fact import Fact, Scope
from stallwise.evidence.number_columns import FEW_LINES
from stallwise.evidence.skeletons import skeletons_of
from stallwise.readers.shapes.clock import clock_of
from stallwise.readers.shapes.logged import steps_at
from stallwise.readers.text.log_metrics import Place, read_log_metrics
from stallwise.readers.text.metric_catalogue import LogMetric, MetricCatalogue, catalogue_in, metric_catalogues
from stallwise.readers.text.metric_reading import Kept, Key, reduced

ALL = [(catalogue, metric) for catalogue in metric_catalogues() for metric in catalogue.metrics]
NO_DIGITS = str.maketrans("", "", "0123456789")


@pytest.mark.parametrize(("catalogue", "metric"), ALL, ids=[f"{b.format}: {g.anchors[0]}" for b, g in ALL])
def test_a_gauge_reads_its_samples(catalogue: MetricCatalogue, metric: LogMetric) -> None:
    assert not any(a != a.translate(NO_DIGITS) for a in metric.anchors), "anchors are looked for where digits are gone"
    assert set(metric.facts) <= set(quantities())
    assert metric.samples or metric.sets or metric.clears, "a line that it reads"
    for sample in metric.samples:
        bare = sample.lower().translate(NO_DIGITS)
        assert any(a in bare for a in metric.anchors), sample
        assert list(metric.matches(sample)), sample


@pytest.mark.parametrize(
    ("keep", "told"),
    [("sum", 6.0), ("most", 3.0), ("least", 1.0), ("middle", 2.0), ("count", 3.0), ("last", 2.0), ("group", 4.0)],
)
def test_what_is_kept_of_many_lines(keep: str, told: float) -> None:
    values = [Kept(1.0, 0, "", 0), Kept(3.0, 4, "", 0), Kept(2.0, 9, "", 1)]
    found = list(reduced(Key("run.saves", Scope(), keep, ""), values, "x"))
    assert [f.value for f in found] == [told]


def test_a_book_is_text() -> None:
    catalogue = catalogue_in(
        '[catalogue]\nformat = "f"\nreads = "r"\n[[metric]]\nanchor = "took"\nmatch = "took"\nfacts = { "run.saves" = "=1" }\n'
    )
    assert catalogue.metrics[0].keep == "each"


def test_lines_that_differ_in_digits_share_a_skeleton() -> None:
    text = skeletons_of(["step 1 loss 2.5", "step 22 loss 1.25", "done", "step 3 loss 2"])
    assert [text.members(s) for s in range(len(text.keys))] == [[0, 1], [2], [3]]
    assert steps_at(text, [1, 2, 3]).tolist() == [22.0, 22.0, 3.0]


def test_what_is_set_holds_for_many_lines_as_for_few() -> None:
    """Full collections only; those of a young generation between them are left out, however long the log is."""
    text = [
        f"gc: {said}"
        for n in range(60)
        for said in (f"collecting generation {2 if n % 3 == 0 else 0}...", f"done, {n} unreachable, 0.{n:03d}s elapsed")
    ]
    place = Place("gc.log", None, steps_at, clock_of, lambda line: None)

    def pauses(lines: list[str]) -> list[tuple[str, float | str, int]]:
        found = [i for _, items in read_log_metrics(skeletons_of(lines), place) for i in items if isinstance(i, Fact)]
        return [(f.quantity.name, f.value, f.samples) for f in found]

    assert pauses(text) == [("run.gc_pause", pytest.approx(0.0285), 20), ("run.gc_collections", 20.0, 20)]
    few = [line for at, line in enumerate(text) if at < 2 * FEW_LINES - 2]
    assert pauses(few) == [("run.gc_pause", pytest.approx(0.0105), 8), ("run.gc_collections", 8.0, 8)]
