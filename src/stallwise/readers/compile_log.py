"""torch.compile's own account: TORCH_LOGS=recompiles,graph_breaks, limit warnings, `dynamo.explain` output."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.quantity import Quantity

FORMAT = "torch.compile log"
CAPTURE = "TORCH_LOGS=recompiles,graph_breaks python train.py 2> compile.log"
_MARK = re.compile(
    rb"_dynamo|__recompiles|__graph_breaks|Graph Break Count|Graph break in|cache_size_limit|recompile_limit",
    re.IGNORECASE,
)
_RECOMPILE = re.compile(r"Recompiling function (\S+)")
_LIMIT = re.compile(r"hit config\.(?:recompile_limit|cache_size_limit|accumulated\w*limit) \((\d+)\)")
_FUNCTION = re.compile(r"function: '([^']+)'")
_REASON = re.compile(r"(?:last reason|reasons?): *(?:\d+/\d+: )?(.+)|- \d+/\d+: (.+)")
_BREAK = re.compile(r"Graph [Bb]reak (?:in user code )?(?:at|from|in) |Graph break:|Graph Break Reason:?")
_BREAK_AT = re.compile(r"Graph [Bb]reak (?:in user code )?(?:at|from) (\S+)")
_BREAK_REASON = re.compile(r"(?:Graph Break Reason:|Reason:|Graph break:|[Gg]raph break: reason) *(.+)")
_BREAK_COUNT = re.compile(r"Graph Break Count[:=] *(\d+)")
_GRAPH_COUNT = re.compile(r"Graph Count[:=] *(\d+)")
_VARIANT_TIME = re.compile(
    r"(?:^|\b)(eager|compiled?|inductor)\b[^\d\n]*?(\d+\.?\d*) ?(ms|s|us)(?:/(?:step|it|iter|iteration))?",
    re.IGNORECASE,
)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def recognises(name: str, head: bytes) -> bool:
    """Lines of dynamo or of its explain."""
    return b"\x00" not in head[:4096] and bool(_MARK.search(head)) and b"traceEvents" not in head[:65536]


def read(artifact: Artifact) -> Iterator[Item]:
    """Counts, the commonest reason, and eager against compiled time where a benchmark prints both."""
    counts: Counter[Quantity] = Counter()
    first: dict[Quantity, int] = {}
    reasons: dict[Quantity, Counter[str]] = {run.RECOMPILE_REASON: Counter(), run.GRAPH_BREAK_REASON: Counter()}
    places: set[str] = set()

    def count(quantity: Quantity, line: int, by: int = 1) -> None:
        counts[quantity] += by
        first.setdefault(quantity, line)

    for number, text in enumerate(artifact.lines(), 1):
        if _RECOMPILE.search(text):
            count(run.RECOMPILES, number)
        if _LIMIT.search(text):
            count(run.RECOMPILE_LIMIT_HIT, number)
        if match := _BREAK_AT.search(text):
            places.add(match[1])
            count(run.GRAPH_BREAKS, number)
        if match := _BREAK_COUNT.search(text):
            count(run.GRAPH_BREAKS, number, int(match[1]))
        if match := _GRAPH_COUNT.search(text):
            count(run.GRAPHS, number, int(match[1]))
        if (match := _BREAK_REASON.search(text)) and ("reak" in text or "Reason:" in text):
            reasons[run.GRAPH_BREAK_REASON][match[1].strip()[:120]] += 1
        elif match := _REASON.search(text):
            reasons[run.RECOMPILE_REASON][(match[1] or match[2]).strip()[:120]] += 1
    if counts[run.GRAPH_BREAKS] and not counts[run.GRAPHS] and places:
        counts[run.GRAPHS] = len(places) + 1  # each break in one frame adds a graph
    for quantity, n in counts.items():
        yield Fact(quantity, float(n), Source(artifact.name, f"line {first.get(quantity, 1)}"))
    for quantity, words in reasons.items():
        if words:
            yield Fact(quantity, words.most_common(1)[0][0], Source(artifact.name), samples=sum(words.values()))
    yield from _variant_times(artifact)


def _variant_times(artifact: Artifact) -> Iterator[Item]:
    found: dict[Quantity, tuple[float, int]] = {}
    for number, text in enumerate(artifact.lines(), 1):
        for match in _VARIANT_TIME.finditer(text):
            quantity = run.EAGER_TIME if match[1].lower() == "eager" else run.COMPILED_TIME
            found.setdefault(quantity, (float(match[2]) * _SECONDS[match[3].lower()], number))
    for quantity, (value, number) in found.items():
        yield Fact(quantity, value, Source(artifact.name, f"line {number}"))
