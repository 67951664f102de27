"""How far each rank got, where logs say so: batches done of how many, seconds a task took, and what came last."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hang import HANG_LAST_ACT
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.readers.shapes.lines import lines_of

FORMAT = "rank progress"

BATCH = re.compile(
    r"\b(train|val\w*|eval\w*|test)?\s*(batch|iter\w*|step)s?\s*[:=\[#]?\s*(\d+)\s*/\s*(\d+)", re.IGNORECASE
)
BAR = re.compile(r"\|\s*(\d+)/(\d+) \[\d+:\d\d")  # tqdm
TOTAL = re.compile(
    r"(?:len\(\w*loader\)|num_batches|(?:batches|steps|iterations)[ _]per[ _](?:epoch|rank))\W{1,4}(\d+)|"
    r"\b(\d+) (?:batches|steps|iterations) per (?:epoch|rank)",
    re.IGNORECASE,
)
PHASE = re.compile(r"\b(train|val|eval|test)\w*", re.IGNORECASE)
TOOK = re.compile(
    r"(?:after|took|in|elapsed[=:]?|duration[=:]?|time[=:]?)\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds|min)\b",
    re.IGNORECASE,
)
PLACE = re.compile(r"\d+(?:\.\d+)?")
ACTS = (
    ("saving a checkpoint", re.compile(r"checkpoint|sav(?:e|ing|ed) (?:model|state|to)|state[_ ]dict", re.IGNORECASE)),
    ("evaluating", re.compile(r"\b(?:eval\w*|validat\w*)\b", re.IGNORECASE)),
    ("moving states to the host", re.compile(r"offload|to_cpu|move_to_device", re.IGNORECASE)),
    ("loading data", re.compile(r"dataloader|dataset|shard|prefetch|download", re.IGNORECASE)),
    ("compiling", re.compile(r"compil|autotun|cuda graph", re.IGNORECASE)),
)
NOT_TEXT = re.compile(rb"\{\s*[\"}]|\[\s*[{\"\[]|<[?\w!]")  # JSON and XML
STUCK = re.compile(r"collective operation timeout|watchdog|monitoredBarrier|Stalled ops", re.IGNORECASE)
RECOGNISED = re.compile(
    rb"\brank[ _=:\]]?\d|\[\d+,\d+\]<std|world[_ ]size|tp_size=|tensor[_-]parallel|nproc[_-]per[_-]node|collective operation timeout",
    re.IGNORECASE,
)


def recognises(name: str, head: bytes) -> bool:
    """Text that speaks of ranks or of a parallel layout."""
    return (
        not NOT_TEXT.match(head[:256].lstrip()) and b"\x00" not in head[:4096] and RECOGNISED.search(head) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Tables rank.batches and rank.tasks, the layout, and the last thing each rank did before it stopped."""
    batches: dict[tuple[int, str], tuple[int, int, int]] = {}
    tasks: list[tuple[int, str, float, int]] = []
    last: dict[int, tuple[str, str, int]] = {}
    stuck = False
    for line in lines_of(artifact):
        if "NCCL INFO" in line.text or "NCCL WARN" in line.text:
            continue
        rank = -1 if line.rank is None else line.rank
        if batch := BATCH.search(line.text):
            phase = (batch[1] or "").lower()[:3]
            done, of = int(batch[3]), int(batch[4])
            earlier = batches.get((rank, phase), (0, 0, 0))
            batches[rank, phase] = max(done, earlier[0] if earlier[1] == of else 0), of, line.number
        elif line.rank is not None and (bar := BAR.search(line.text)):
            batches[rank, _phase(line.text)] = int(bar[1]), int(bar[2]), line.number
        elif line.rank is not None and (total := TOTAL.search(line.text)):
            batches[rank, f"planned {_phase(line.text)}"] = 0, int(total[1] or total[2]), line.number
        if line.rank is not None and (took := TOOK.search(line.text)):
            scale = {"ms": 1e-3, "min": 60.0}.get(took[2].lower(), 1.0)
            tasks.append((rank, PLACE.sub("#", _without_head(line.text))[:120], float(took[1]) * scale, line.number))
        stuck = stuck or STUCK.search(line.text) is not None
        if not stuck:
            act = next((name for name, pattern in ACTS if pattern.search(line.text)), "")
            if line.text.strip() and "ProcessGroup" not in line.text:
                last[rank] = act, line.text.strip()[:160], line.number
    yield from _tables(artifact.name, batches, tasks)
    for rank, (act, text, number) in last.items():
        if act:
            yield Fact(
                HANG_LAST_ACT,
                act,
                Source(artifact.name, f"line {number}"),
                Scope(rank=None if rank < 0 else rank),
                note=text,
            )


def _phase(text: str) -> str:
    match = PHASE.search(text)
    return match[1].lower()[:3] if match else ""


def _without_head(text: str) -> str:
    """The line from its first word after times and ranks on."""
    return re.sub(r"^.*?(?:\]:?|:)\s+(?=[a-zA-Z])", "", text)


def _tables(
    file: str, batches: dict[tuple[int, str], tuple[int, int, int]], tasks: list[tuple[int, str, float, int]]
) -> Iterator[Table]:
    if batches:
        rows = [(rank, phase, *value) for (rank, phase), value in batches.items()]
        names = ("rank", "phase", "done", "of", "line")
        yield Table(
            "rank.batches", {n: np.array(v) for n, v in zip(names, zip(*rows, strict=True), strict=True)}, Source(file)
        )
    if tasks:
        columns = ("rank", "task", "seconds", "line")
        yield Table(
            "rank.tasks", {n: np.array(v) for n, v in zip(columns, zip(*tasks, strict=True), strict=True)}, Source(file)
        )
