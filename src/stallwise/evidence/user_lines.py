"""Lines of the user's own code and the share of sampled stacks that each holds, by stage of the step.

A reader of stacks makes the table; the doctor picks the line that a finding is about. Frames of libraries are folded into the line of
the user's that called them: `own` is the innermost one, `held` is it or anything it called.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stallwise.evidence.fact import WHOLE, Scope, Source, Table
from stallwise.late import np

KIND = "user lines"
BESIDE = ""  # the stage of samples in which no stage was open
LOADER_WORKER = "loader worker"  # of samples taken in the processes that make batches
LIBRARIES = (
    "<frozen",
    "<string",
    "torch/",
    "numpy/",
    "python3",
    "lib/",
    "jax/",
    "transformers/",
    "lightning/",
    "stallwise/",
)
MOST_ROWS = 40
AT = re.compile(r"^(?P<file>.+):(?P<line>\d+) (?P<function>.+)$")


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the user's and its part of the samples that were looked at."""

    file: str
    line: int
    function: str
    share: float | None  # None where the source says so and nothing was sampled
    samples: int = 0  # that stood there
    of: int = 0  # samples in all

    @property
    def place(self) -> str:
        """As editors and compilers write it."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place} {self.function}"


def is_users(line: str) -> bool:
    """No library's frame."""
    return not line.startswith(LIBRARIES)


def is_library(frame: str) -> bool:
    """A frame as traces name them: of an installed package, of Python itself, or built in."""
    return not is_users(frame) or frame.startswith("<built-in") or "-packages/" in frame or "/lib/python" in frame


def user_lines(stacks: Iterable[tuple[str, Sequence[str], int]], source: Source, scope: Scope = WHOLE) -> Table | None:
    """From (stage, stack with the innermost line first, samples); None where no stack has a line of the user's."""
    own: Counter[tuple[str, str]] = Counter()
    held: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    depth: dict[tuple[str, str], int] = {}
    for stage, stack, samples in stacks:
        users = [line for line in stack if is_users(line)]
        total[stage] += samples
        if not users:
            continue
        own[stage, users[0]] += samples
        for level, line in enumerate(dict.fromkeys(reversed(users))):
            held[stage, line] += samples
            depth[stage, line] = max(depth.get((stage, line), 0), level)
    rows = sorted(held, key=lambda key: (-held[key], -depth[key], key))[:MOST_ROWS]
    if not rows:
        return None
    columns = {
        "stage": np.array([stage for stage, _ in rows], dtype=object),
        "line": np.array([line for _, line in rows], dtype=object),
        "own": np.array([own[row] for row in rows], np.int64),
        "held": np.array([held[row] for row in rows], np.int64),
        "depth": np.array([depth[row] for row in rows], np.int64),
    }
    return Table(KIND, columns, source, scope, {"total": dict(total)})


def as_code_line(text: str, samples: int, of: int) -> CodeLine | None:
    """ "train.py:8 Pictures.__getitem__" and its counts; None where the text is no place in a file."""
    found = AT.match(text)
    if not found or not of:
        return None
    return CodeLine(found["file"], int(found["line"]), found["function"], samples / of, samples, of)
