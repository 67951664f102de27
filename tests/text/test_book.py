"""Every signature explains its own samples, none of its counter-samples, and stays quick on any line."""

from __future__ import annotations

import time

import pytest

from stallwise.evidence.catalog import quantities
from stallwise.evidence.event import Role
from stallwise.evidence.line import Line
from stallwise.readers.text import anchors
from stallwise.readers.text.book import SHORTEST, Signature, book
from stallwise.readers.text.codes import codes_of, rows_of
from stallwise.readers.text.expressions import compiled
from stallwise.readers.text.folded import Folded
from stallwise.readers.text.match import Matcher, matcher, matcher_of
from stallwise.readers.text.tables import tables_in

JUDGED = list(book())
HOSTILE = (
    "a" * 20_000,
    " " * 20_000,
    "rank 1, " * 2_500,
    "error: " * 2_857,
    "Got completion from peer " * 800,
    "1.5 GiB " * 2_500,
    "[[" * 10_000,
    "x.y.z" * 4_000,
    "NCCL WARN " * 2_000,
    "Error" * 4_000,
)
QUICK_S = 0.25  # a pattern that is quadratic in 20,000 characters needs seconds


def heard(text: str, by: Matcher) -> set[str]:
    lines = text.splitlines() or [text]
    return {e.signature for e in by.hear(lines, lambda i: Line(i + 1, lines[i], "x.log")).events}


@pytest.mark.parametrize("signature", JUDGED, ids=lambda s: s.id)
def test_a_signature_fits_its_samples_only(signature: Signature) -> None:
    alone = matcher_of((signature,))
    assert signature.samples and signature.not_samples, "needs lines that fit and lines that do not"
    for sample in signature.samples:
        assert signature.id in heard(sample, alone), sample
        assert any(e.event == signature.event for e in JUDGED if e.id in heard(sample, matcher())), sample
    for sample in signature.not_samples:
        assert signature.id not in heard(sample, alone), sample


@pytest.mark.parametrize("signature", JUDGED, ids=lambda s: s.id)
def test_a_signature_says_where_it_comes_from_and_what_it_feeds(signature: Signature) -> None:
    assert signature.source
    assert all(len(a) >= SHORTEST and a == a.lower() for a in signature.anchors)
    for name in (signature.feeds, *signature.facts):
        assert not name or name in quantities(), name
    groups = {g.rstrip("_") for g in compiled(signature.pattern, signature.cased).groupindex}
    assert set(signature.slots) <= groups
    assert set(signature.facts.values()) <= groups
    named = {t for k in signature.slots.values() if k.startswith("code:") for t in k.removeprefix("code:").split("|")}
    assert named <= {name for name, _ in tables_in("codes", ".tsv")}


@pytest.mark.parametrize("signature", JUDGED, ids=lambda s: s.id)
def test_no_pattern_is_slow_on_a_hostile_line(signature: Signature) -> None:
    for line in (*HOSTILE, *((a + " ") * (20_000 // (len(a) + 1)) for a in signature.anchors)):
        best = min(_seconds(signature, line) for _ in range(3))
        assert best < QUICK_S, (best, line[:40])


def _seconds(signature: Signature, line: str) -> float:
    start = time.perf_counter()
    compiled(signature.pattern, signature.cased).search(line)
    compiled(signature.unless, False).search(line)
    return time.perf_counter() - start


def test_ids_are_unique() -> None:
    ids = [s.id for s in book()]
    assert len(ids) == len(set(ids))


def test_both_engines_hear_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = matcher_of(tuple(JUDGED))
    monkeypatch.setattr(anchors, "Automaton", Folded)
    slow = matcher_of(tuple(JUDGED))
    for signature in JUDGED:
        for sample in signature.samples:
            assert heard(sample, slow) == heard(sample, fast)


@pytest.mark.parametrize("name", [name for name, _ in tables_in("codes", ".tsv")])
def test_a_table_of_codes_has_a_source_and_no_code_twice(name: str) -> None:
    source, titles = dict(tables_in("codes", ".tsv"))[name].splitlines()[:2]
    assert source.startswith("# ") and titles == "code\tname\tmeans\tfault\trole\taction"
    numbers = [row[0] for row in rows_of(name) if row[0]]
    assert len(numbers) == len(set(numbers))
    assert all(c.means for c in codes_of(name).values())
    assert all(c.role in ("", *Role) for c in codes_of(name).values())
