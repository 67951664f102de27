"""Every line that a gauge gives as its sample is read by it, through the anchors; all of them name known quantities."""

from __future__ import annotations

import pytest

from stallwise.evidence.catalog import quantities
from stallwise.evidence.fact import Scope
from stallwise.evidence.skeletons import skeletons_of
from stallwise.meaning.gauge_book import Gauge, GaugeBook, book_in, gauge_books
from stallwise.meaning.gauges import Kept, Key, reduced

ALL = [(book, gauge) for book in gauge_books() for gauge in book.gauges]
NO_DIGITS = str.maketrans("", "", "0123456789")


@pytest.mark.parametrize(("book", "gauge"), ALL, ids=[f"{b.format}: {g.anchors[0]}" for b, g in ALL])
def test_a_gauge_reads_its_samples(book: GaugeBook, gauge: Gauge) -> None:
    assert not any(a != a.translate(NO_DIGITS) for a in gauge.anchors), "anchors are looked for where digits are gone"
    assert set(gauge.facts) <= set(quantities())
    assert gauge.samples or gauge.sets or gauge.clears, "a line that it reads"
    for sample in gauge.samples:
        bare = sample.lower().translate(NO_DIGITS)
        assert any(a in bare for a in gauge.anchors), sample
        assert list(gauge.matches(sample)), sample


@pytest.mark.parametrize(
    ("keep", "told"),
    [("sum", 6.0), ("most", 3.0), ("least", 1.0), ("middle", 2.0), ("count", 3.0), ("last", 2.0), ("group", 4.0)],
)
def test_what_is_kept_of_many_lines(keep: str, told: float) -> None:
    values = [Kept(1.0, 0, "", 0), Kept(3.0, 4, "", 0), Kept(2.0, 9, "", 1)]
    found = list(reduced(Key("run.saves", Scope(), keep, ""), values, "x"))
    assert [f.value for f in found] == [told]


def test_a_book_is_text() -> None:
    book = book_in(
        '[book]\nformat = "f"\nreads = "r"\n[[gauge]]\nanchor = "took"\nmatch = "took"\nfacts = { "run.saves" = "=1" }\n'
    )
    assert book.gauges[0].keep == "each"


def test_lines_that_differ_in_digits_share_a_skeleton() -> None:
    text = skeletons_of(["step 1 loss 2.5", "step 22 loss 1.25", "done", "step 3 loss 2"])
    assert [text.members(s) for s in range(len(text.keys))] == [[0, 1], [2], [3]]
    assert text.before(2, frozenset({0})) == 1
