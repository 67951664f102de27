"""One rank against its peers, in a sentence: "rank 13 needs 700 ms a step, all others 350 ms"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from stallwise.evidence.catalog import stated
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.reading import Reading
from stallwise.units import Unit, readings_of

_ONE = re.compile(r"\b(?:rank|node|gpu|host|worker|card)\s*#?\s*$", re.IGNORECASE)
_PEERS = re.compile(
    r"\b(?:others?|(?:the )?rest|peers|every(?:one|body) else|(?:the )?median|normal ones)\b",
    re.IGNORECASE,
)
LEAST = 1.05  # times the peers: ranks of one job differ by less when all are well


def slow_rank(readings: Iterable[Reading], file: str) -> Iterator[Fact]:
    """How many times as long the named rank takes, and its name; only times of one unit and one sentence are compared."""
    sentences: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        if reading.in_prose:
            sentences[reading.place].append(reading)
    for place, sentence in sentences.items():
        which = next((r for r in sentence if not r.unit and _ONE.search(r.path[0])), None)
        timed = [r for r in sentence if any(unit is Unit.SECOND for unit, _ in readings_of(r.unit))]
        for own, peers in pairwise(timed):
            between = f"{peers.path[0]} {peers.after if peers is timed[-1] else ''}"
            ratio = _seconds(own) / _seconds(peers) if _seconds(peers) > 0 else 0.0
            if which is not None and _PEERS.search(between) and ratio > LEAST:
                source = Source(file, place, True)
                yield Fact(stated.SLOW_RANK_RATIO, ratio, source)
                yield Fact(stated.SLOW_NODE, f"{which.path[0].split()[-1].lower()} {which.value:.0f}", source)
                return


def _seconds(reading: Reading) -> float:
    return float(reading.value) * next((f for unit, f in readings_of(reading.unit) if unit is Unit.SECOND), 0.0)
