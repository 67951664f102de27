"""What known programs state in lines of their own: the books of gauges over one artifact."""

from __future__ import annotations

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.skeletons import skeletons_of
from stallwise.readers.shapes.clock import clock_of
from stallwise.readers.shapes.lines import Peeler, node_of_file
from stallwise.readers.shapes.logged import steps_at
from stallwise.readers.shapes.tree import object_lines, tree_of
from stallwise.readers.shapes.unwrap import is_text
from stallwise.readers.text.log_metrics import Place, read_log_metrics
from stallwise.readers.text.metric_catalogue import MetricCatalogue

LogMetrics = list[tuple[MetricCatalogue, list[Item]]]
MAX_BYTES = 8 << 20  # of a document that is read one object a line


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
