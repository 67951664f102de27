"""Training logs as text: Megatron-LM, torchtitan, DeepSpeed, HF Trainer, Composer, torchvision-style meters, tqdm.

No framework has its own parser here: a line is read for its step, its clock and the key-value pairs it prints, and the
names decide what they mean. Where no step time is printed, the clock between steps gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.reading import Curve, Points, Printed, Wanted
from stallwise.evidence.skeletons import Skeletons
from stallwise.late import np
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.clock import DAY_S, clocks_at
from stallwise.readers.shapes.logged import Key, Records, names_steps, records

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "training log"
CAPTURE = "python train.py 2>&1 | tee train.log"
_P = patterns("train_log")
MAX_LINE = 4000  # longer lines are dumps, not progress
MIN_CLOCKS = 4
TICK_S = 1.0  # of a clock that prints whole seconds
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
    yield Printed(artifact.name, log.curves, by_clock=log.by_clock)


@dataclass(slots=True)
class _Log:
    text: Skeletons
    printed_steps: tuple[NDArray[np.float64], NDArray[np.int64]] = field(  # steps, lines
        default_factory=lambda: (np.empty(0), np.empty(0, dtype=np.int64))
    )

    def curves(self, wanted: Wanted) -> Iterator[Curve]:
        """One course a key, unit and rank."""
        blocks = list(records(self.text, wanted, _may_train))
        speaking = [(b, b.ranks) for b in blocks if b.ranks is not None]
        # One rank's account is enough, the first's that prints values; the others repeat it.
        rank = min(((b.lines[0], ranks[0]) for b, ranks in speaking), default=(0, 0.0))[1]
        masks = [np.full(len(b.lines), True) if b.ranks is None else b.ranks == rank for b in blocks]
        found: dict[tuple[Key, bool, int | None], list[Points]] = {}
        for block, mask, steps in zip(blocks, masks, self._steps(blocks, masks), strict=True):
            several = block.steps is None or names_steps(self.text.lines[block.lines[0]])
            for at, key in enumerate(block.like.keys):
                # One step may be told twice; else a line lists many, or lost the line ends between them.
                again = sum(k.key == key.key for k in block.like.keys[:at]) if several else 0
                found.setdefault((key, block.like.epoch, None), []).append(_points(block, mask, at, steps + again))
        if len({own for _, ranks in speaking for own in ranks.tolist()}) > 1:  # what each rank printed
            for block, ranks in speaking:
                for own in np.unique(ranks):
                    for at, key in enumerate(block.like.keys):
                        found.setdefault((key, False, int(own)), []).append(_points(block, ranks == own, at, 0.0))
        for (key, epoch, own), parts in found.items():
            points = np.concatenate(parts)
            in_order = points if len(parts) == 1 else points[np.argsort(points[:, 2], kind="stable")]
            yield Curve(key.key, key.unit, in_order, key.bare, epoch, own)

    def _steps(self, blocks: list[Records], masks: list[NDArray[np.bool_]]) -> list[NDArray[np.float64]]:
        """The running step of each line that is heard, block by block."""
        counts = [int(mask.sum()) for mask in masks]
        own = np.repeat(np.arange(len(blocks)), counts)
        if not len(own):
            return [np.empty(0) for _ in blocks]
        lines = np.concatenate([np.array(b.lines)[mask] for b, mask in zip(blocks, masks, strict=True)])
        printed_steps = [
            np.full(len(m), np.nan) if b.steps is None else b.steps for b, m in zip(blocks, masks, strict=True)
        ]
        steps = np.concatenate([s[mask] for s, mask in zip(printed_steps, masks, strict=True)])
        order = np.argsort(lines, kind="stable")
        placed = np.empty(len(own))
        placed[order] = running_steps(steps[order].tolist(), own[order].tolist(), [b.like.keys for b in blocks])
        stepped = order[~np.isnan(steps[order])]
        self.printed_steps = placed[stepped], lines[stepped]
        return np.split(placed, np.cumsum(counts)[:-1])

    def by_clock(self) -> Curve | None:
        """Step times from the clock, over stretches long enough that its resolution does not matter."""
        steps, lines = self.printed_steps
        clocks = clocks_at(self.text, lines.tolist())
        stamped = ~np.isnan(clocks)
        steps, lines, clocks = steps[stamped], lines[stamped], clocks[stamped]
        rising = np.diff(steps, prepend=-np.inf) > 0
        steps, lines, clocks = steps[rising], lines[rising], clocks[rising]
        if len(steps) < MIN_CLOCKS:
            return None
        shortest_s = FINE_S if (clocks % 1 != 0).any() else COARSE_S
        passed = np.diff(clocks)
        clocks = clocks + DAY_S * np.concatenate([[0.0], np.cumsum(passed < -DAY_S / 2)])  # midnight
        ends = _spaced(clocks, shortest_s)
        took = (
            _within_a_tick(steps[ends], clocks[ends]) if shortest_s == COARSE_S else _rates(steps[ends], clocks[ends])
        )
        points = np.column_stack([steps[ends][1:], took, lines[ends][1:] + 1.0])
        return Curve("step time", "s", points)


def _spaced(clocks: NDArray[np.float64], least_s: float) -> NDArray[np.intp]:
    """The first moment, and then each that comes so long after the one before it that was taken."""
    if (np.diff(clocks) >= least_s).all():
        return np.arange(len(clocks))
    taken, last = [0], clocks[0]
    for at, clock in enumerate(clocks.tolist()):
        if clock - last >= least_s:
            taken.append(at)
            last = clock
    return np.array(taken)


def _rates(steps: NDArray[np.float64], clocks: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.diff(clocks) / np.diff(steps), dtype=np.float64)


def _within_a_tick(steps: NDArray[np.float64], clocks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds a step between whole-second stamps: stretches that a steady pace explains to the tick share that pace.

    A stamp is off by up to a second, which is 12% of the shortest stretch: taken one by one, a steady run would show a slow
    stretch each time the fractions add up.
    """
    took = _rates(steps, clocks)
    pace = float(np.median(took))
    begin = 0
    for at in range(1, len(steps)):
        alone = abs((clocks[at] - clocks[at - 1]) - pace * (steps[at] - steps[at - 1])) > TICK_S
        adrift = abs((clocks[at] - clocks[begin]) - pace * (steps[at] - steps[begin])) > TICK_S
        if alone:
            _shared(took, steps, clocks, begin, at - 1)
        elif adrift or at == len(steps) - 1:
            _shared(took, steps, clocks, begin, at)
        if alone or adrift:
            begin = at
    return took


def _shared(
    took: NDArray[np.float64], steps: NDArray[np.float64], clocks: NDArray[np.float64], begin: int, end: int
) -> None:
    """The mean pace of these stretches for each of them."""
    if end > begin:
        took[begin:end] = (clocks[end] - clocks[begin]) / (steps[end] - steps[begin])


def _may_train(text: str) -> bool:
    """No dump, no line of a serving engine, no bar of getting ready."""
    other = _P["other_program"].search(text) or _P["preparing"].search(text)
    return not (len(text) > MAX_LINE or "out of memory" in text or other)


def _points(block: Records, mask: NDArray[np.bool_], at: int, steps: NDArray[np.float64] | float) -> Points:
    own = np.array(block.lines)[mask] + 1.0
    return np.column_stack([np.broadcast_to(steps, len(own)), block.values[mask, at], own])


def running_steps(steps: list[float], owners: list[int], keys: list[list[Key]]) -> list[float]:
    """Printed steps (NaN: none) as one rising count: lines without a step belong to the last one or get the next number."""
    if not any(step != step for step in steps):  # a new epoch starts counting again
        printed_steps = np.array(steps)
        again = np.diff(printed_steps, prepend=printed_steps[0]) < 0
        running = printed_steps + np.cumsum(np.where(again, np.roll(printed_steps, 1) + 1 - printed_steps, 0.0))
        return np.maximum(running, 0.0).tolist()  # type: ignore[no-any-return]
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
