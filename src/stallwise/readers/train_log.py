"""Training logs as text: Megatron-LM, torchtitan, DeepSpeed, HF Trainer, Composer, torchvision-style meters, tqdm.

No framework has its own parser here: a line is read for its step, its clock and the key-value pairs it prints, and the
names decide what they mean. Where no step time is printed, the clock between steps gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.reading import Course, Points, Printed, Wanted, points_of
from stallwise.evidence.skeletons import Skeletons
from stallwise.readers._log_line import STEP_TIME, Block, Key, blocks_in, names_steps
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.clock import DAY_S, clocks_at

FORMAT = "training log"
CAPTURE = "python train.py 2>&1 | tee train.log"
_P = patterns("train_log")
MAX_LINE = 4000  # longer lines are dumps, not progress
MIN_CLOCKS = 4
FINE_S, COARSE_S = 0.05, 8.0  # clocks with and without fractions of a second: 2% and 12% of error at most


def recognises(name: str, head: bytes) -> bool:
    """Text with words of training in it, and no sign of a format of its own."""
    start = head[:65536]
    opening = start.lstrip()[:2]
    json_like = opening in (b'{"', b"{\n", b"[{", b"[\n", b"{\r", b"{}", b"[]", b"[[")
    return not json_like and b"\x00" not in start and _looks_like_log(start)


def _looks_like_log(start: bytes) -> bool:
    first = start.split(b"\n", 1)[0]
    table = first.count(b",") >= 1 and b":" not in first and b"=" not in first and b" " not in first.strip()
    text = start.decode("utf-8", "replace")
    return not table and bool(_P["hint"].search(text)) and not _P["other_format"].search(text)


def read(artifact: Artifact) -> Iterator[Printed]:
    """What the lines print under their keys, over the steps."""
    log = _Log(artifact.skeletons)
    yield Printed(artifact.name, log.courses, by_clock=log.by_clock)


@dataclass(slots=True)
class _Log:
    text: Skeletons
    told: tuple[NDArray[np.float64], NDArray[np.int64]] = (np.empty(0), np.empty(0, dtype=np.int64))  # steps, lines

    def courses(self, wanted: Wanted) -> Iterator[Course]:
        """One course a key, unit and rank."""
        blocks = list(blocks_in(self.text, _may_train, wanted))
        speaking = [b for b in blocks if b.ranks is not None]
        # One rank's account is enough, the first's that prints values; the others repeat it.
        rank = min(((b.lines[0], b.ranks[0]) for b in speaking if b.ranks is not None), default=(0, 0.0))[1]
        heard = [np.full(len(b.lines), True) if b.ranks is None else b.ranks == rank for b in blocks]
        found: dict[tuple[Key, bool], list[Points]] = {}
        for block, mask, steps in zip(blocks, heard, self._steps(blocks, heard), strict=True):
            lines = np.array(block.lines)[mask] + 1
            for at, key in enumerate(block.keys):
                again = sum(k.key == key.key for k in block.keys[:at])
                if again and block.steps is not None and not names_steps(self.text.lines[block.lines[0]]):
                    again = 0  # one step, told twice; else it lists many, or lost the line ends between them
                points = np.column_stack([steps + again, block.values[mask, at], lines])
                found.setdefault((key, block.epoch), []).append(points)
        for (key, epoch), parts in found.items():
            yield Course(key.key, key.unit, _by_line(parts), key.bare, epoch)
        yield from _of_ranks(speaking)

    def _steps(self, blocks: list[Block], heard: list[NDArray[np.bool_]]) -> list[NDArray[np.float64]]:
        """The running step of each line that is heard, block by block."""
        counts = [int(mask.sum()) for mask in heard]
        own = np.repeat(np.arange(len(blocks)), counts)
        if not len(own):
            return [np.empty(0) for _ in blocks]
        lines = np.concatenate([np.array(b.lines)[mask] for b, mask in zip(blocks, heard, strict=True)])
        steps = np.concatenate(
            [
                b.steps[m] if b.steps is not None else np.full(n, np.nan)
                for b, m, n in zip(blocks, heard, counts, strict=True)
            ]
        )
        order = np.argsort(lines, kind="stable")
        placed = np.empty(len(own))
        placed[order] = running_steps(steps[order].tolist(), own[order].tolist(), [b.keys for b in blocks])
        told = order[~np.isnan(steps[order])]
        self.told = placed[told], lines[told]
        return np.split(placed, np.cumsum(counts)[:-1])

    def by_clock(self) -> Course | None:
        """Step times from the clock, over stretches long enough that its resolution does not matter."""
        steps, lines = self.told
        clocks = clocks_at(self.text, lines.tolist())
        stamped = ~np.isnan(clocks)
        steps, lines, clocks = steps[stamped], lines[stamped], clocks[stamped]
        rising = np.diff(steps, prepend=-np.inf) > 0
        steps, lines, clocks = steps[rising], lines[rising], clocks[rising]
        if len(steps) < MIN_CLOCKS:
            return None
        shortest_s = FINE_S if (clocks % 1 != 0).any() else COARSE_S
        points: list[tuple[float, float, float]] = []
        step_a, clock_a = float(steps[0]), float(clocks[0])
        for step_b, clock_b, number in zip(
            steps.tolist()[1:], clocks.tolist()[1:], (lines + 1).tolist()[1:], strict=True
        ):
            passed = clock_b - clock_a
            if passed < 0:
                passed += DAY_S  # midnight
            if passed < shortest_s:
                continue
            points.append((step_b, passed / (step_b - step_a), number))
            step_a, clock_a = step_b, clock_b
        return Course(STEP_TIME, "s", points_of(points))


def _may_train(text: str) -> bool:
    """No dump, no line of a serving engine, no bar of getting ready."""
    other = _P["other_program"].search(text) or _P["preparing"].search(text)
    return not (len(text) > MAX_LINE or "out of memory" in text or other)


def running_steps(steps: list[float], owners: list[int], keys: list[tuple[Key, ...]]) -> list[float]:
    """Printed steps (NaN: none) as one rising count: lines without a step belong to the last one or get the next number."""
    named = [frozenset(key.key for key in own) for own in keys]
    offset, last, found = 0.0, -1.0, []
    seen: frozenset[str] = frozenset()
    for step, owner in zip(steps, owners, strict=True):
        own = named[owner]
        if step != step:
            if own & seen:  # a new record of a log that prints no step
                last, seen = last + 1, frozenset()
        elif step + offset != last:
            if step + offset < last:  # a new epoch starts counting again
                offset = last + 1 - step
            last, seen = step + offset, frozenset()
        last = max(last, 0.0)
        seen = seen | own if seen else own
        found.append(last)
    return found


def _of_ranks(blocks: list[Block]) -> Iterator[Course]:
    """What each rank printed, where several do."""
    found: dict[tuple[Key, int], list[Points]] = {}
    for block in blocks:
        if block.ranks is None:
            continue
        steps = block.steps if block.steps is not None else np.zeros(len(block.lines))
        for rank in np.unique(block.ranks):
            own = block.ranks == rank
            for at, key in enumerate(block.keys):
                points = np.column_stack([steps[own], block.values[own, at], np.array(block.lines)[own] + 1])
                found.setdefault((key, int(rank)), []).append(points)
    if len({rank for _, rank in found}) > 1:
        for (key, rank), parts in found.items():
            yield Course(key.key, key.unit, _by_line(parts), key.bare, rank=rank)


def _by_line(parts: list[Points]) -> Points:
    points = np.concatenate(parts)
    return points if len(parts) == 1 else points[np.argsort(points[:, 2], kind="stable")]
