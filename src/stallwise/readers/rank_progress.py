"""How far each rank got, where logs say so: batches done of how many, seconds a task took, and what came last."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hang import HANG_LAST_ACT
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.late import np
from stallwise.readers._patterns import entries, patterns
from stallwise.readers.shapes.lines import NOBODY, Speakers

FORMAT = "rank progress"
_P = patterns("rank_progress")
ACTS = {name: _P[name] for name, entry in entries("rank_progress").items() if entry.get("act")}


def recognises(name: str, head: bytes) -> bool:
    """Text that speaks of ranks or of a parallel layout."""
    text = head.decode("utf-8", "replace")
    tree = _P["not_text"].match(text[:256].lstrip())
    return not tree and b"\x00" not in head[:4096] and _P["speaks_of_ranks"].search(text) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """Table rank.batches, one rank.tasks for each task, and the last thing each rank did before it stopped."""
    text, speakers, source = artifact.skeletons, Speakers(artifact), Source(artifact.name)
    batches: dict[tuple[int, str], tuple[int, int, int]] = {}
    quiet = text.where(lambda x: not _P["library"].search(x))
    named = text.where(_P["batch"].search) & quiet
    barred = text.where(lambda x: _P["bar"].search(x) or _P["total"].search(x)) & quiet
    for at, rank in speakers.enough(named | barred):
        _count(batches, text.lines[at][:LONGEST], rank, at + 1, named=text.of[at] in named)
    if batches:
        rows = [(rank, phase, *value) for (rank, phase), value in batches.items()]
        columns = dict(
            zip(("rank", "phase", "done", "of", "line"), map(np.array, zip(*rows, strict=True)), strict=True)
        )
        yield Table("rank.batches", columns, source)
    for skeleton in text.where(_P["took"].search) & quiet:
        ranks, seconds = speakers.ranks(skeleton), _times(text, skeleton)
        known = ranks != NOBODY
        if seconds is not None and known.any():
            task = _P["place"].sub("#", _without_head(speakers.line(text.firsts[skeleton]).text))[:120]
            lines = np.array(text.members(skeleton))[known] + 1
            known_columns = {"rank": ranks[known], "seconds": seconds[known], "line": lines}
            yield Table("rank.tasks", known_columns, source, meta={"task": task})
    for who, last in _last_acts(text, speakers, quiet).items():
        line = speakers.line(last)
        act = next((name for name, pattern in ACTS.items() if pattern.search(line.text)), "")
        if act:
            scope = Scope(rank=None if who == NOBODY else who)
            yield Fact(HANG_LAST_ACT, act, line.source, scope, note=line.text.strip()[:160])


def _times(text: Skeletons, skeleton: int) -> Column | None:
    """Seconds of each line of a skeleton that says how long something took."""
    sample = text.lines[text.firsts[skeleton]][:LONGEST]
    took = _P["took"].search(sample)
    assert took is not None
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(sample))}
    numbers = text.columns(skeleton, [slots[took.start(1)]]) if took.start(1) in slots else None
    return None if numbers is None else numbers[:, 0] * {"ms": 1e-3, "min": 60.0}.get(took[2].lower(), 1.0)


def _count(
    batches: dict[tuple[int, str], tuple[int, int, int]], words: str, who: int, number: int, *, named: bool
) -> None:
    if named and (batch := _P["batch"].search(words)):
        phase, done, of = (batch[1] or "").lower()[:3], int(batch[3]), int(batch[4])
        earlier = batches.get((who, phase), (0, 0, 0))
        batches[who, phase] = max(done, earlier[0] if earlier[1] == of else 0), of, number
    elif who != NOBODY and (bar := _P["bar"].search(words)):
        batches[who, _phase(words)] = int(bar[1]), int(bar[2]), number
    elif who != NOBODY and (total := _P["total"].search(words)):
        batches[who, f"planned {_phase(words)}"] = 0, int(total[1] or total[2]), number


def _last_acts(text: Skeletons, speakers: Speakers, quiet: frozenset[int]) -> dict[int, int]:
    """The last line of each rank before the first that says that nothing moves."""
    stuck = text.lines_of(text.where(_P["stuck"].search))
    silent = text.where(lambda x: not x.strip() or "ProcessGroup" in x)
    return speakers.last_lines(stuck[0] if stuck else len(text.lines), quiet - silent)


def _phase(text: str) -> str:
    match = _P["phase"].search(text)
    return match[1].lower()[:3] if match else ""


def _without_head(text: str) -> str:
    """The line from its first word after times and ranks on."""
    return re.sub(r"^.*?(?:\]:?|:)\s+(?=[a-zA-Z])", "", text)
