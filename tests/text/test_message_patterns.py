"""Every signature explains its own samples, none of its counter-samples, and stays quick on any line."""

from __future__ import annotations

import time

import pytest

from stallwise.evidence.catalog import quantities
from stallwise.evidence.event import Role
from stallwise.evidence.line import Line
from stallwise.readers.text import anchors
from stallwise.readers.text.codes import codes_of, rows_of
from stallwise.readers.text.expressions import compiled
from stallwise.readers.text.folded import Folded
from stallwise.readers.text.match import Matcher, matcher, matcher_of
from stallwise.readers.text.message_patterns import SHORTEST, MessagePattern, message_patterns
from stallwise.readers.text.tables import tables_in

JUDGED = list(message_patterns())
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
    return {e.pattern_id for e in by.match(lines, lambda i: Line(i + 1, lines[i], "x.log")).events}


@pytest.mark.parametrize("pattern", JUDGED, ids=lambda s: s.id)
def test_a_signature_fits_its_samples_only(pattern: MessagePattern) -> None:
    alone = matcher_of((pattern,))
    assert pattern.samples and pattern.not_samples, "needs lines that fit and lines that do not"
    for sample in pattern.samples:
        assert pattern.id in heard(sample, alone), sample
        assert any(e.event == pattern.event for e in JUDGED if e.id in heard(sample, matcher())), sample
    for sample in pattern.not_samples:
        assert pattern.id not in heard(sample, alone), sample


@pytest.mark.parametrize("pattern", JUDGED, ids=lambda s: s.id)
def test_a_signature_says_where_it_comes_from_and_what_it_feeds(pattern: MessagePattern) -> None:
    assert pattern.source
    assert all(len(a) >= SHORTEST and a == a.lower() for a in pattern.anchors)
    for name in (pattern.feeds, *pattern.facts):
        assert not name or name in quantities(), name
    groups = {g.rstrip("_") for g in compiled(pattern.pattern, pattern.cased).groupindex}
    assert set(pattern.slots) <= groups
    assert set(pattern.facts.values()) <= groups
    named = {t for k in pattern.slots.values() if k.startswith("code:") for t in k.removeprefix("code:").split("|")}
    assert named <= {name for name, _ in tables_in("codes", ".tsv")}


@pytest.mark.parametrize("pattern", JUDGED, ids=lambda s: s.id)
def test_no_pattern_is_slow_on_a_hostile_line(pattern: MessagePattern) -> None:
    for line in (*HOSTILE, *((a + " ") * (20_000 // (len(a) + 1)) for a in pattern.anchors)):
        best = min(_seconds(pattern, line) for _ in range(3))
        assert best < QUICK_S, (best, line[:40])


def _seconds(pattern: MessagePattern, line: str) -> float:
    start = time.perf_counter()
    compiled(pattern.pattern, pattern.cased).search(line)
    compiled(pattern.unless, False).search(line)
    return time.perf_counter() - start


def test_ids_are_unique() -> None:
    ids = [s.id for s in message_patterns()]
    assert len(ids) == len(set(ids))


def test_both_engines_hear_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = matcher_of(tuple(JUDGED))
    monkeypatch.setattr(anchors, "Automaton", Folded)
    slow = matcher_of(tuple(JUDGED))
    for pattern in JUDGED:
        for sample in pattern.samples:
            assert heard(sample, slow) == heard(sample, fast)


@pytest.mark.parametrize("name", [name for name, _ in tables_in("codes", ".tsv")])
def test_a_table_of_codes_has_a_source_and_no_code_twice(name: str) -> None:
    source, titles = dict(tables_in("codes", ".tsv"))[name].splitlines()[:2]
    assert source.startswith("# ") and titles == "code\tname\tmeans\tfault\trole\taction"
    numbers = [row[0] for row in rows_of(name) if row[0]]
    assert len(numbers) == len(set(numbers))
    assert all(c.means for c in codes_of(name).values())
    assert all(c.role in ("", *Role) for c in codes_of(name).values())
