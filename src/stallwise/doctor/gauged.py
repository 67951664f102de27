"""What known programs state in lines of their own: the books of gauges over one artifact."""

from __future__ import annotations

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.meaning.gauge_book import GaugeBook
from stallwise.meaning.gauges import Place, read_gauges
from stallwise.readers.shapes.clock import clock_of
from stallwise.readers.shapes.lines import node_of_file
from stallwise.readers.shapes.logged import step_of
from stallwise.readers.shapes.unwrap import is_text

Gauged = list[tuple[GaugeBook, list[Item]]]


def gauged(artifact: Artifact) -> Gauged:
    """Every book that the text speaks, with its facts and series."""
    if not is_text(artifact.head):
        return []
    place = Place(artifact.name, node_of_file(artifact.name), step_of, clock_of)
    return list(read_gauges(artifact.skeletons, place))
