"""Training logs as text: Megatron-LM, torchtitan, DeepSpeed, HF Trainer, Composer, torchvision-style meters, tqdm.

No framework has its own parser here: a line is read for its step, its clock and the key-value pairs it prints, and the
names decide what they mean. Where no step time is printed, the clock between steps gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.reading import Course, Printed, Wanted
from stallwise.evidence.skeletons import Skeletons
from stallwise.readers._log_line import STEP_TIME, Key, Line, lines_in
from stallwise.readers.shapes.clock import DAY_S, clock_of

FORMAT = "training log"
CAPTURE = "python train.py 2>&1 | tee train.log"
_HINT = re.compile(
    rb"loss|iteration|\bstep\b|it/s|s/it|samples_per_sec|tokens/s|throughput|ms/step|s/batch|/iter\b|steps in |epoch",
    re.IGNORECASE,
)
_OTHER_FORMATS = (b"traceEvents", b"==PROF==", b"# HELP ", b"# TYPE ", b'"Metric Name"', b"timestamp, index")
# An engine's own progress lines: the rates in them are of requests, not of training steps.
_SERVING = re.compile(
    r"#running-req|#queue-req|kv cache usage|generation throughput|gen throughput|token usage:|Prefill batch|Decode batch",
    re.IGNORECASE,
)
# Progress bars of getting ready (shards, graphs, kernels, files): what they count is never a step.
_PREPARING = re.compile(
    r"\b(?:load\w*|captur\w+|download\w*|fetch\w*|compil\w+|warm\w*|tun(?:e|ing)|autotun\w+|quanti[sz]\w+|convert\w*|"
    r"tokeni[sz]\w+|map(?:ping)?|filter\w*|generating \w+ split|resolving)\b[^|%]{0,120}\d{1,3}\s?%",
    re.IGNORECASE,
)
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
    return not table and bool(_HINT.search(start)) and not any(mark in start for mark in _OTHER_FORMATS)


def read(artifact: Artifact) -> Iterator[Printed]:
    """What the lines print under their keys, over the steps."""
    log = _Log(artifact.skeletons)
    yield Printed(artifact.name, log.courses, by_clock=log.by_clock)


@dataclass(slots=True)
class _Log:
    text: Skeletons
    clocks: list[tuple[float, int]] = field(default_factory=list)  # step and line

    def courses(self, wanted: Wanted) -> Iterator[Course]:
        """One course a key, unit and rank."""
        counter = _StepCounter()
        found: dict[tuple[Key, bool], Course] = {}
        ranks: dict[tuple[Key, int], Course] = {}
        for at, line in lines_in(self.text, _may_train, wanted):
            if line.rank is not None:
                for key, number in line.values:
                    own = ranks.get((key, line.rank))
                    if own is None:
                        own = ranks[key, line.rank] = Course(key.key, key.unit, [], key.bare, rank=line.rank)
                    own.points.append((line.step or 0.0, number, at + 1))
            if not counter.hears(line.rank):
                continue
            step = counter.advance(line)
            if line.step is not None:
                self.clocks.append((step, at))
            counts: dict[str, int] = {}
            for key, number in line.values:
                course = found.get((key, line.epoch))
                if course is None:
                    course = found[key, line.epoch] = Course(key.key, key.unit, [], key.bare, line.epoch)
                place = step
                if line.step is None:  # a line that lists many steps
                    place += counts.get(key.key, 0)
                    counts[key.key] = counts.get(key.key, 0) + 1
                course.points.append((place, number, at + 1))
        yield from found.values()
        if len({rank for _, rank in ranks}) > 1:
            yield from ranks.values()

    def by_clock(self) -> Course | None:
        """Step times from the clock, over stretches long enough that its resolution does not matter."""
        stamped = [
            (step, clock, at + 1) for step, at in self.clocks if (clock := clock_of(self.text.lines[at])) is not None
        ]
        rising = [c for i, c in enumerate(stamped) if i == 0 or c[0] > stamped[i - 1][0]]
        if len(rising) < MIN_CLOCKS:
            return None
        shortest_s = FINE_S if any(clock != int(clock) for _, clock, _ in rising) else COARSE_S
        course = Course(STEP_TIME, "s")
        step_a, clock_a, _ = rising[0]
        for step_b, clock_b, number in rising[1:]:
            passed = clock_b - clock_a
            if passed < 0:
                passed += DAY_S  # midnight
            if passed < shortest_s:
                continue
            course.points.append((step_b, passed / (step_b - step_a), number))
            step_a, clock_a = step_b, clock_b
        return course


def _may_train(text: str) -> bool:
    """No dump, no line of a serving engine, no bar of getting ready."""
    return not (len(text) > MAX_LINE or "out of memory" in text or _SERVING.search(text) or _PREPARING.search(text))


class _StepCounter:
    """Turns printed steps into one rising count: lines without a step belong to the last one or get the next number."""

    def __init__(self) -> None:
        self.rank: int | None = None
        self._offset = 0.0
        self._last = -1.0
        self._seen: set[str] = set()

    def hears(self, rank: int | None) -> bool:
        """One rank's account is enough, the first's that prints values; the others repeat it."""
        if self.rank is None:
            self.rank = rank
        return rank is None or rank == self.rank

    def advance(self, line: Line) -> float:
        """The running step of this line."""
        keys = {key.key for key, _ in line.values}
        if line.step is None:
            if keys & self._seen:  # a new record of a log that prints no step
                self._last += 1
                self._seen = set()
        elif line.step + self._offset < self._last:  # a new epoch starts counting again
            self._offset = self._last + 1 - line.step
            self._last, self._seen = line.step + self._offset, set()
        elif line.step + self._offset > self._last:
            self._last, self._seen = line.step + self._offset, set()
        self._last = max(self._last, 0.0)
        self._seen |= keys
        return self._last
