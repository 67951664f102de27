"""Answers of the Prometheus HTTP API (query_range, query) about a serving engine: the same pages, told metric by metric."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._cells import number_of
from stallwise.readers._scrape import metric_names, parse_scrape
from stallwise.readers._scraped_facts import facts_from

FORMAT = "Prometheus query of engine metrics"
CAPTURE = "curl -s 'http://PROMETHEUS:9090/api/v1/query_range?query={__name__=~\"vllm:.*\"}&start=...&end=...&step=15' > range.json"
EXCLUSIVE = True
_KIND = re.compile(rb'"resultType"\s*:\s*"(?:matrix|vector)"')


def recognises(name: str, head: bytes) -> bool:
    """An answer of the API that holds a metric of a known engine."""
    if not _KIND.search(head):
        return False
    stems = {n.partition(":")[0] + ":" if ":" in n else n for n in metric_names()}
    return any(stem.encode() in head for stem in stems)


def read(artifact: Artifact) -> Iterator[Item]:
    """Pages by their time, as if each had been saved."""
    try:
        answer = json.loads(artifact.text())
        results = answer["data"]["result"] if "data" in answer else answer["result"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is cut or not JSON", hint="save the answer again") from error
    pages: dict[float, list[str]] = defaultdict(list)
    for result in results if isinstance(results, list) else ():
        for at, line in _lines(result):
            pages[at].append(line)
    scrapes = [scrape for at in sorted(pages) if (scrape := parse_scrape("\n".join(pages[at]), at))]
    if not scrapes:
        raise UnreadableInput(
            f"{artifact.name} holds no metric we know", hint="query the engine's own metrics, by name"
        )
    yield from facts_from(scrapes, artifact.name)


def _lines(result: Any) -> Iterator[tuple[float, str]]:
    if not isinstance(result, dict) or not isinstance(result.get("metric"), dict):
        return
    labels = dict(result["metric"])
    name = str(labels.pop("__name__", ""))
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    values = result.get("values", [result["value"]] if "value" in result else [])
    for pair in values if isinstance(values, list) else ():
        if isinstance(pair, list) and len(pair) == 2 and (at := number_of(pair[0])) is not None:
            yield at, f"{name}{{{inside}}} {pair[1]}"
