"""Training logs that time the parts of a step on every rank: "rank 3 step 301 | data 12 ms | fwd_bwd 812 ms | allreduce 51 ms"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.operations import PASSES, Work
from stallwise.late import np
from stallwise.readers._cells import seconds_in
from stallwise.readers._operation_columns import of_step_parts
from stallwise.readers._operation_names import rank_in_file, roles, work_of
from stallwise.readers.records.plain_rows import plain_words
from stallwise.readers.shapes.lines import Speakers
from stallwise.readers.shapes.logged import Records, line_in, records, steps_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "step times of ranks"
MIN_LINES = 4
_USEFUL = (*PASSES, Work.GRADIENT_SYNC)
SAMPLE_LINES = 60
_ACROSS = re.compile(r"times? across ranks \((ms|s)\)")
_TIMER = re.compile(r"^\s+([A-Za-z][\w -]{1,60}?)\s*\.*:\s*$")
_OF_RANK = re.compile(r"^\s+rank\s+(\d+)\s*:\s*(\d+(?:\.\d+)?)\s*$", re.M)


def _wanted(key: str, unit: str, bare: bool) -> bool:
    if roles().get(key.lower()) == "rank":
        return not bare
    return (bool(unit) or not bare) and _scale(key, unit) is not None and work_of(key) is not Work.OTHER


def _scale(key: str, unit: str) -> float | None:
    """What turns the number into seconds; a key whose unit nobody names is in seconds where its words say that it is a time."""
    named = seconds_in([unit]) if unit else None
    own = seconds_in(plain_words(key))
    return named if named is not None else own if own is not None else (None if unit else 1.0)


def recognises(name: str, head: bytes) -> bool:
    """Lines with a step and the time of a part of it, or timers with a line a rank."""
    if b"\x00" in head[:4096] or head.lstrip()[:2] in (b"[{", b"[\n") or head.lstrip()[:1] == b"<":
        return False
    if b"rank" in head and _ACROSS.search(head[: 1 << 16].decode("utf-8", "replace")):
        return True
    lines = head[: 1 << 16].decode("utf-8", "replace").splitlines()
    found = [line_in(text, _wanted) for text in (*lines[:SAMPLE_LINES], *lines[-SAMPLE_LINES:])]  # of lines alike, one
    return any(line.step for line in found) and any(work_of(k.key) in _USEFUL for line in found for k in line.keys)


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of operations for each form of line, where lines or the file say whose they are."""
    speakers, own = Speakers(artifact), rank_in_file(artifact.name)
    for found in records(artifact.skeletons, _wanted):
        keys = found.like.keys
        parts = [at for at, k in enumerate(keys) if work_of(k.key) is not Work.OTHER]
        if len(found.lines) < MIN_LINES or not any(work_of(keys[at].key) in _USEFUL for at in parts):
            continue
        steps = found.steps if found.steps is not None else steps_at(artifact.skeletons, found.lines)
        if not np.isfinite(steps).all():
            continue
        ranks = _ranks(found, speakers, own)
        if ranks is None:
            continue
        scale = np.array([_scale(keys[at].key, keys[at].unit) or 1.0 for at in parts])
        names = [keys[at].key for at in parts]
        hosts = [speakers.line(at).node for at in found.lines]
        yield of_step_parts(artifact.name, ranks, steps.astype(np.int64), names, found.values[:, parts] * scale, hosts)
    yield from _timers(artifact)


def _ranks(found: Records, speakers: Speakers, own: int | None) -> NDArray[np.int64] | None:
    """Whose each line is: by the line, by one of its keys, or by the name of the file."""
    named = [at for at, k in enumerate(found.like.keys) if roles().get(k.key.lower()) == "rank"]
    ranks = found.values[:, named[0]] if named else found.ranks
    if ranks is None:
        ranks_of_lines = [own if own is not None else speakers.line(at).rank for at in found.lines]
        if any(r is None for r in ranks_of_lines):
            return None
        ranks = np.array(ranks_of_lines, np.float64)
    return ranks.astype(np.int64) if np.isfinite(ranks).all() else None


def _timers(artifact: Artifact) -> Iterator[Item]:
    """Timers of Megatron, one rank below the other under the name of the timer."""
    if not _OF_RANK.search(artifact.head.decode("utf-8", "replace")):
        return
    rows: list[tuple[int, int, str, float]] = []
    name, scale = "", 1e-3
    for at, text in enumerate(artifact.lines()):
        if row := _OF_RANK.match(text):
            if name:
                rows.append((at, int(row[1]), name, float(row[2]) * scale))
        elif unit := _ACROSS.search(text):
            name, scale = "", 1e-3 if unit[1] == "ms" else 1.0
        else:
            named = _TIMER.match(text)
            name = named[1] if named and work_of(named[1]) is not Work.OTHER else ""
    if not rows:
        return
    steps = steps_at(artifact.skeletons, [row[0] for row in rows])
    names = list(dict.fromkeys(row[2] for row in rows))
    places = {
        key: i for i, key in enumerate(dict.fromkeys((r[1], s) for r, s in zip(rows, steps.tolist(), strict=True)))
    }
    seconds = np.zeros((len(places), len(names)))
    for (_, rank, name, took), step in zip(rows, steps.tolist(), strict=True):
        seconds[places[rank, step], names.index(name)] += took
    known = [key for key in places if key[1] == key[1]]
    if known:
        ranks, numbers = (np.array(x, np.int64) for x in zip(*known, strict=True))
        yield of_step_parts(artifact.name, ranks, numbers, names, seconds[[places[key] for key in known]])
