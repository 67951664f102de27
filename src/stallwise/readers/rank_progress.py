"""How far each rank got, where logs say so: batches done of how many, seconds a task took, and what came last."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hang import HANG_LAST_ACT
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.readers.shapes.lines import NOBODY, Speakers

FORMAT = "rank progress"
Task = tuple[str, NDArray[np.int64], Column, NDArray[np.int64]]  # what, and the ranks, seconds and lines of its lines

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
    """Tables rank.batches and rank.tasks, and the last thing each rank did before it stopped."""
    text, speakers = artifact.skeletons, Speakers(artifact)
    batches: dict[tuple[int, str], tuple[int, int, int]] = {}
    tasks: list[Task] = []
    quiet = text.where(lambda x: not ("NCCL INFO" in x or "NCCL WARN" in x))
    counting = text.where(lambda x: BATCH.search(x) or BAR.search(x) or TOTAL.search(x)) & quiet
    timed = text.where(TOOK.search) & quiet
    for at in speakers.enough(counting):
        _count(batches, text.lines[at][:LONGEST], speakers.rank(at), at + 1)
    for skeleton in timed:
        ranks, seconds = speakers.ranks(skeleton), _times(text, skeleton)
        known = ranks != NOBODY
        if seconds is not None and known.any():
            name = PLACE.sub("#", _without_head(speakers.line(text.firsts[skeleton]).text))[:120]
            tasks.append((name, ranks[known], seconds[known], np.array(text.members(skeleton))[known] + 1))
    yield from _tables(artifact.name, batches, tasks)
    for who, last in _last_acts(text, speakers, quiet).items():
        line = speakers.line(last)
        act = next((name for name, pattern in ACTS if pattern.search(line.text)), "")
        if act:
            yield Fact(HANG_LAST_ACT, act, line.source, Scope(rank=who), note=line.text.strip()[:160])


def _times(text: Skeletons, skeleton: int) -> Column | None:
    """Seconds of each line of a skeleton that says how long something took."""
    sample = text.lines[text.firsts[skeleton]][:LONGEST]
    took = TOOK.search(sample)
    assert took is not None
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(sample))}
    numbers = text.columns(skeleton, [slots[took.start(1)]]) if took.start(1) in slots else None
    return None if numbers is None else numbers[:, 0] * {"ms": 1e-3, "min": 60.0}.get(took[2].lower(), 1.0)


def _count(batches: dict[tuple[int, str], tuple[int, int, int]], words: str, rank: int | None, number: int) -> None:
    who = -1 if rank is None else rank
    if batch := BATCH.search(words):
        phase, done, of = (batch[1] or "").lower()[:3], int(batch[3]), int(batch[4])
        earlier = batches.get((who, phase), (0, 0, 0))
        batches[who, phase] = max(done, earlier[0] if earlier[1] == of else 0), of, number
    elif rank is not None and (bar := BAR.search(words)):
        batches[who, _phase(words)] = int(bar[1]), int(bar[2]), number
    elif rank is not None and (total := TOTAL.search(words)):
        batches[who, f"planned {_phase(words)}"] = 0, int(total[1] or total[2]), number


def _last_acts(text: Skeletons, speakers: Speakers, quiet: frozenset[int]) -> dict[int | None, int]:
    """The last line of each rank before the first that says that nothing moves."""
    stuck = text.lines_of(text.where(STUCK.search))
    silent = text.where(lambda x: not x.strip() or "ProcessGroup" in x)
    return speakers.last_lines(stuck[0] if stuck else len(text.lines), quiet - silent)


def _phase(text: str) -> str:
    match = PHASE.search(text)
    return match[1].lower()[:3] if match else ""


def _without_head(text: str) -> str:
    """The line from its first word after times and ranks on."""
    return re.sub(r"^.*?(?:\]:?|:)\s+(?=[a-zA-Z])", "", text)


def _tables(file: str, batches: dict[tuple[int, str], tuple[int, int, int]], tasks: list[Task]) -> Iterator[Table]:
    if batches:
        rows = [(rank, phase, *value) for (rank, phase), value in batches.items()]
        names = ("rank", "phase", "done", "of", "line")
        yield Table(
            "rank.batches", {n: np.array(v) for n, v in zip(names, zip(*rows, strict=True), strict=True)}, Source(file)
        )
    if tasks:
        named = list(dict.fromkeys(name for name, *_ in tasks))
        columns = {
            "rank": np.concatenate([ranks for _, ranks, _, _ in tasks]),
            "task": np.repeat([named.index(name) for name, *_ in tasks], [len(ranks) for _, ranks, _, _ in tasks]),
            "seconds": np.concatenate([seconds for *_, seconds, _ in tasks]),
            "line": np.concatenate([lines for *_, lines in tasks]),
        }
        order = np.argsort(columns["line"], kind="stable")
        yield Table("rank.tasks", {n: c[order] for n, c in columns.items()}, Source(file), meta={"tasks": named})
