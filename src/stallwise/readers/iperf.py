"""iperf3 between two nodes, text or JSON: the rate of a link at a moment, and who drew it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._cells import NUMBER

FORMAT = "iperf3"
CAPTURE = "iperf3 -c NODE -P 8 -J > iperf.json"
_TO = re.compile(r"(?:iperf3?\s.*?-c\s*|Connecting to host\s+)([\w.:-]+?)(?:,|\s|$)")
_RATE = re.compile(rf"(?<![\d.])({NUMBER})\s*([KMGT]?)bits/sec")
_SUM = re.compile(r"^\[SUM\].*(sender|receiver)|^\[\s*\d+\].*(sender|receiver)")
_CLOCK = re.compile(r"(?:(\d{4})[-/](\d\d)[-/](\d\d)[ T])?(\d\d):(\d\d):(\d\d)")
_WHO = re.compile(r"^#.{0,80}?\d\d:\d\d:\d\d\s+(\S+)(?:\s+on\s+(\S+))?")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def recognises(name: str, head: bytes) -> bool:
    """Its own words."""
    text = head[:65536]
    return (b"iperf" in text and b"bits/sec" in text) or (b'"iperf3' in text and b'"bits_per_second"' in text) or (
        b'"start"' in text and b'"sum_sent"' in text and b'"bits_per_second"' in text
    )  # fmt: skip


def read(artifact: Artifact) -> Iterator[Item]:
    """One row a run: source, target, moment, bytes a second."""
    text = artifact.text()
    rows = _from_json(text) if text.lstrip().startswith("{") else _from_text(text)
    if not rows:
        return
    source, node, target, moment, rate = zip(*rows, strict=True)
    columns = {
        "source": np.array(source), "node": np.array(node), "target": np.array(target), "time_s": np.array(moment, np.float64),
        "rate_byte_per_s": np.array(rate, np.float64),
    }  # fmt: skip
    yield Table("link_rates", columns, Source(artifact.name))


Row = tuple[str, str, str, float, float]


def _from_text(text: str) -> list[Row]:
    rows: list[Row] = []
    who, node, target, moment, best = "", "", "", float("nan"), 0.0

    def close() -> None:
        if best > 0:
            rows.append((who, node, target, moment, best))

    for line in text.splitlines():
        if line.startswith("#") and (clock := _CLOCK.search(line)):
            close()
            best = 0.0
            moment = _seconds(clock)
            named = _WHO.search(line)
            who, node = (named[1], named[2] or "") if named else (who, node)
        aimed = _TO.search(line)
        if aimed:
            if best > 0:
                close()
                best = 0.0
            target = aimed[1]
        if _SUM.match(line) and (found := _RATE.search(line)):
            # The sum is the last and largest; without it the single stream counts.
            best = max(best, float(found[1]) * _PREFIX[found[2]] / 8)
    close()
    return rows


def _from_json(text: str) -> list[Row]:
    try:
        found = json.loads(text)
        target = found["start"]["connecting_to"]["host"]
        rate = found["end"].get("sum_received", found["end"].get("sum_sent"))["bits_per_second"] / 8
        moment = float(found["start"].get("timestamp", {}).get("timesecs", "nan"))
        source = found["start"].get("connected", [{}])[0].get("local_host", "")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError):
        return []
    return [(str(source), str(source), str(target), moment, float(rate))]


def _seconds(clock: re.Match[str]) -> float:
    hour, minute, second = int(clock[4]), int(clock[5]), int(clock[6])
    if clock[1]:
        return datetime(int(clock[1]), int(clock[2]), int(clock[3]), hour, minute, second).timestamp()
    return float(hour * 3600 + minute * 60 + second)
