"""Messages of an artifact: typed events, the facts they feed, and the loud lines that nobody understands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.line import Line
from stallwise.evidence.skeletons import skeletons_of
from stallwise.evidence.unread import ErrorLine, Unread
from stallwise.readers.shapes.clock import clock_of
from stallwise.readers.shapes.lines import Peeler, line_of, node_of_file, rank_of_file
from stallwise.readers.shapes.logged import steps_at
from stallwise.readers.shapes.stamps import Stamps
from stallwise.readers.shapes.tree import object_lines, tree_of
from stallwise.readers.shapes.unwrap import is_text
from stallwise.readers.text.log_metrics import Place, read_log_metrics
from stallwise.readers.text.match import facts_fed, matcher
from stallwise.readers.text.metric_catalogue import MetricCatalogue

LogMetrics = list[tuple[MetricCatalogue, list[Item]]]
MAX_BYTES = 8 << 20  # of a document that is read one object a line
MOST_LINES = 20  # loud lines of one file worth showing
TRACEBACK = "Traceback (most recent call last):"
_NO_DIGITS = str.maketrans("", "", "0123456789")


def messages_in(artifact: Artifact, *, written: bool = False) -> Iterator[Item]:
    """Everything that the lines of a text say. On a page that a person wrote only lines that were pasted count."""
    if not is_text(artifact.head):
        return
    lines = artifact.lines()
    peeler, rank, node = Peeler({}), rank_of_file(artifact.name), node_of_file(artifact.name)
    words = artifact.skeletons
    found = matcher().match(
        words,
        lambda i: line_of(i + 1, lines[i][:4000], artifact.name, peeler, rank, node, shape=words.of[i]),
        pasted=written,
    )
    stamps = Stamps(lines)
    yield from (replace(e, stamp=stamps.around(int(e.source.where.removeprefix("line ")) - 1)) for e in found.events)
    if not written:
        from stallwise.readers.shapes.step_lines import step_lines

        steps = step_lines(artifact, stamps)
        yield from () if steps is None else (steps,)
    for quantity, value, event in facts_fed(found.events):
        yield Fact(
            quantities()[quantity], value, event.source, event.scope, note="ends the log" if event.ends_log else ""
        )
    unknown = [(line, times) for line, times in found.unknown if not _heads_traceback(lines, line)]
    if unknown:
        yield Unread(artifact.name, error_lines=tuple(_without_repeats(unknown)))


def _heads_traceback(lines: list[str], line: Line) -> bool:
    """A logger's line above a traceback ("Error in preprocessing prompt inputs"): what was raised says more."""
    return line.number < len(lines) and lines[line.number].rstrip().endswith(TRACEBACK)


def _without_repeats(lines: list[tuple[Line, int]]) -> Iterator[ErrorLine]:
    """One of each shape, with how often it came."""
    shapes: dict[str, list[tuple[Line, int]]] = {}
    for line, times in lines:
        shapes.setdefault(line.text[:80].translate(_NO_DIGITS), []).append((line, times))
    for same in list(shapes.values())[:MOST_LINES]:
        first = same[0][0]
        yield ErrorLine(first.text.strip()[:240], first.source, first.level or "error", sum(times for _, times in same))


def log_metrics_of(artifact: Artifact) -> LogMetrics:
    """Every book that the text speaks, with its facts, series and tables."""
    if not is_text(artifact.head):
        return []
    peeler = Peeler({})
    place = Place(
        artifact.name, node_of_file(artifact.name), steps_at, clock_of, lambda x: peeler.peel(x)[1].get("node")
    )
    found = list(read_log_metrics(artifact.skeletons, place))
    if artifact.head.lstrip()[:1] in (b"{", b"[") and artifact.size_bytes <= MAX_BYTES:
        objects = skeletons_of(list(object_lines(tree_of(artifact.name, artifact.text(MAX_BYTES)))))
        found += read_log_metrics(objects, place, records=True)
    return found
