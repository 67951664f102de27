"""`nvidia-smi nvlink -s` and `-e`: which links of each GPU are up, how fast, and what they had to repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.readers._patterns import patterns

FORMAT = "nvidia-smi nvlink"
LABELLED = True  # names of counters, whatever they count
CAPTURE = "nvidia-smi nvlink -s > links.txt; nvidia-smi nvlink -e >> links.txt"
TABLE = "gpu.links"
GB = 1e9
_P = patterns("nvidia_smi")


@dataclass(slots=True)
class _Card:
    """Links of one GPU as they are read."""

    gpu: int
    name: str
    line: int
    last: int
    rates: dict[int, float] = field(default_factory=dict)  # bytes/s, 0 where a link is down
    counters: dict[tuple[int, str], tuple[float, int]] = field(default_factory=dict)  # with the line of each


def recognises(name: str, head: bytes) -> bool:
    """A card and under it one of its links."""
    text = head[:131072].decode("utf-8", "replace")
    lines = text.splitlines()
    if not any(map(_P["linked"].match, lines)):
        return False
    return any(_P["link_state"].match(x) or _P["link_counter"].match(x) or _P["links_off"].search(x) for x in lines)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of links and counters a card, and what they add up to."""
    cards: dict[int, _Card] = {}
    card: _Card | None = None
    for at, line in enumerate(artifact.lines(), 1):
        if title := _P["linked"].match(line):
            card = cards.setdefault(int(title[1]), _Card(int(title[1]), title[2], at, at))
            continue
        if card is None:
            continue
        if state := _P["link_state"].match(line):
            card.rates[int(state[1])] = float(state[2]) * GB if state[2] else 0.0
        elif counter := _P["link_counter"].match(line):
            card.counters[int(counter[1]), counter[2].strip().lower()] = float(counter[3]), at
        elif _P["links_off"].search(line):
            card.rates.setdefault(0, 0.0)
        else:
            continue
        card.last = at
    for one in cards.values():
        yield from _items(one, artifact.name)


def _items(card: _Card, file: str) -> Iterator[Item]:
    scope, source = Scope(gpu=card.gpu), Source(file, f"lines {card.line}-{card.last}")
    links = sorted({*card.rates, *(link for link, _ in card.counters)})
    if not links:
        return
    columns = {
        "link": np.array(links, dtype=float),
        "rate_bytes_per_s": np.array([card.rates.get(link, np.nan) for link in links]),
        "errors": np.array([_sum(card, link) for link in links]),
    }
    kinds = sorted({kind for _, kind in card.counters})
    yield Table(TABLE, columns, source, scope, {"name": card.name, "counters": kinds})
    if card.rates:
        up = sum(rate > 0 for rate in card.rates.values())
        yield Fact(hw.NVLINK_ACTIVE, float(up), source, scope)
        yield Fact(hw.NVLINK_INACTIVE, float(len(card.rates) - up), source, scope)
    if card.counters:
        worst = max(card.counters, key=lambda key: card.counters[key][0])
        note = f"most of them {worst[1]} of link {worst[0]}"
        total = sum(count for count, _ in card.counters.values())
        line = card.counters[worst][1]
        yield Fact(hw.NVLINK_ERRORS, total, Source(file, f"line {line}"), scope, len(card.counters), note=note)


def _sum(card: _Card, link: int) -> float:
    counts = [count for (own, _), (count, _) in card.counters.items() if own == link]
    return sum(counts) if counts else float("nan")
