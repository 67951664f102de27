"""Text Generation Inference, text or JSON lines: what each request took, from its span (total, queue, inference, a token)."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.late import np
from stallwise.readers._patterns import patterns
from stallwise.units import Unit, parse

FORMAT = "TGI log"
CAPTURE = "text-generation-launcher --json-output ... 2>&1 | tee tgi.log"
TAIL = 99.0
_P = patterns("tgi_log")
TIMES = {
    "total_time": (serving.REQUEST_TIME, serving.REQUEST_TAIL),
    "queue_time": (serving.QUEUE_TIME, serving.QUEUE_TAIL),
    "inference_time": (serving.DECODE_TIME, None),
    "time_per_token": (serving.TPOT, serving.TPOT_TAIL),
}


def recognises(name: str, head: bytes) -> bool:
    """A request's span."""
    return b"time_per_token" in head and b"queue_time" in head and b"inference_time" in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Means and tails over all requests, how many were served, and how many failed."""
    found: dict[str, list[float]] = {}
    lines: list[int] = []
    failed = 0
    for number, line in enumerate(artifact.lines(), 1):
        times = {m[1]: _seconds(m[2], m[3]) for m in _P["time"].finditer(line)}
        if "queue_time" not in times:
            continue
        lines.append(number)
        failed += bool(_P["error"].search(line))
        for word, value in times.items():
            found.setdefault(word, []).append(value)
    if not lines:
        return
    source = Source(artifact.name, f"lines {lines[0]}-{lines[-1]}")
    yield Fact(serving.ENGINE, "tgi", source)
    yield Fact(serving.REQUESTS_DONE, float(len(lines) - failed), source)
    yield Fact(serving.FAILED, float(failed), source)
    for word, (mean, tail) in TIMES.items():
        if values := found.get(word):
            yield Fact(mean, float(np.mean(values)), source, samples=len(values))
            if tail is not None:
                yield Fact(tail, float(np.percentile(values, TAIL)), source, samples=len(values))


def _seconds(number: str, unit: str) -> float:
    """ "412µs", also where JSON escapes the letter."""
    return parse(number + unit.replace(r"\u00b5", "u"), Unit.SECOND)
