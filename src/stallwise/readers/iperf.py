"""iperf3 between two nodes, text or JSON: the rate of a link at a moment, and who drew it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._cells import columns_of
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.clock import clock_of

FORMAT = "iperf3"
CAPTURE = "iperf3 -c NODE -P 8 -J > iperf.json"
_P = patterns("iperf")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_COLUMNS = ("source", "node", "target", "time_s", "rate_byte_per_s")
Row = tuple[str, str, str, float, float]


def recognises(name: str, head: bytes) -> bool:
    """Its own words."""
    text = head[:65536]
    printed, saved = b"iperf" in text and b"bits/sec" in text, b'"bits_per_second"' in text
    return printed or (saved and (b'"iperf3' in text or (b'"start"' in text and b'"sum_sent"' in text)))


def read(artifact: Artifact) -> Iterator[Item]:
    """One row a run: source, target, moment, bytes a second."""
    text = artifact.text()
    rows = [row for row in (_from_json if text.lstrip().startswith("{") else _from_text)(text) if row[-1] > 0]
    if rows:
        yield Table("link_rates", columns_of(_COLUMNS, rows), Source(artifact.name))


def _from_text(text: str) -> Iterator[Row]:
    who, node, target, moment, best = "", "", "", float("nan"), 0.0
    for line in text.splitlines():
        noted, aimed = _P["who"].search(line), _P["to"].search(line)
        if noted or aimed:
            yield who, node, target, moment, best
            best = 0.0
        if noted:
            moment = clock_of(line) or 0.0
            who, node = (noted[1], noted[2] or "") if noted[1] else (who, node)
        target = aimed[1] if aimed else target
        if found := _P["rate"].match(line):  # the sum is the last and largest; without it the single stream counts
            best = max(best, float(found[1]) * _PREFIX[found[2]] / 8)
    yield who, node, target, moment, best


def _from_json(text: str) -> Iterator[Row]:
    try:
        found = json.loads(text)
        target = found["start"]["connecting_to"]["host"]
        rate = found["end"].get("sum_received", found["end"].get("sum_sent"))["bits_per_second"] / 8
        moment = float(found["start"].get("timestamp", {}).get("timesecs", "nan"))
        source = found["start"].get("connected", [{}])[0].get("local_host", "")
        yield str(source), str(source), str(target), moment, float(rate)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError):
        return
