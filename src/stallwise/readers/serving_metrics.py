"""A saved /metrics page of a serving engine (its names: metric_names.toml); several pages in one file are one watch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._cells import NUMBER
from stallwise.readers._clock import clock_of
from stallwise.readers._scrape import Scrape, metric_names, parse_scrape, taken_over
from stallwise.readers._scraped_facts import facts_from

FORMAT = "engine metrics"
CAPTURE = "curl -s http://HOST:8000/metrics > metrics.txt"
EXCLUSIVE = True
_METRIC = re.compile(r"^[A-Za-z_:][\w:]*(?:\{.*\})?\s+[-+\d.NIni]")
PAGE = re.compile(
    rf"^# stallwise scrape t=({NUMBER})\s*$", re.MULTILINE
)  # what `stallwise watch --save` writes between pages


def recognises(name: str, head: bytes) -> bool:
    """A metric line of a known engine."""
    if head.lstrip()[:1] in (b"{", b"["):  # JSON; a large trace is not worth the search
        return False
    return _known().search(head.decode("utf-8", "replace")) is not None


@cache
def _known() -> re.Pattern[str]:
    prefixes = {re.escape(n.split(":")[0]) + "[:_]" if ":" in n else re.escape(n) for n in metric_names()}
    own = rf"(?:[a-z]+_)?(?:{'|'.join(sorted(prefixes))})\w*[{{ ]"
    taken = rf"[a-z]\w{{1,40}}:(?:{'|'.join(map(re.escape, taken_over()))})[{{ ]"
    return re.compile(rf"^(?:{own}|{taken})", re.MULTILINE)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts and, where there are several pages, a table over time."""
    scrapes = pages(artifact.text())
    if not scrapes:
        raise UnreadableInput(
            f"{artifact.name} holds no metric we know", hint="save it again: curl http://HOST:PORT/metrics"
        )
    yield from facts_from(scrapes, artifact.name)


def pages(text: str) -> list[Scrape]:
    """The readings in a file."""
    parts = PAGE.split(text)
    found = [parse_scrape(page, at) for page, at in _apart(parts[0])]
    found += [parse_scrape(page, float(t)) for t, page in zip(parts[1::2], parts[2::2], strict=True)]
    return [scrape for scrape in found if scrape]


def _apart(text: str) -> list[tuple[str, float]]:
    """Pages that were only appended to each other: a line that names what was already named begins the next."""
    found: list[list[str]] = [[]]
    stamps: list[float] = [0.0]
    named: set[str] = set()
    stamp = 0.0
    for line in text.splitlines():
        if line.startswith(("# HELP", "# TYPE")) or not line.strip():
            pass
        elif _METRIC.match(line):
            key = line.rsplit(" ", 1)[0]
            if key in named:
                found.append([])
                stamps.append(stamp)
                named = set()
            named.add(key)
        elif (read := clock_of(line)) is not None:  # what a loop of curl and date leaves between pages
            stamp = read
            if not named:
                stamps[-1] = stamp
        found[-1].append(line)
    return [("\n".join(page), at) for page, at in zip(found, stamps, strict=True)]
