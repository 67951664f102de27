"""Lines of the user's own code and the share of sampled stacks that each holds, by stage of the step.

A reader of stacks makes the table; the doctor picks the line that a finding is about. Frames of libraries are folded into the line of
the user's that called them: `own` is the innermost one, `held` is it or anything it called.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from stallwise.evidence.fact import WHOLE, Scope, Source, Table
from stallwise.late import np

KIND = "user lines"
GROWING = "growing containers"  # of the user's, while memory grew: name, of, gained, steps, bytes, what
BESIDE = (
    ""  # the stage of samples in which the host does something else: no stage is open, or a stage runs no framework
)
LOADER_WORKER = "loader worker"  # of samples taken in the processes that make batches
LOADS, COLLECTION, COMPILING = "batch_wait", "gc", "compile"
COMPUTES = ("forward", "backward", "optimizer")
NOT_MINE = "STALLWISE_NOT_MINE"  # an expression for the beginning of further files that are not the user's own
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
# Libraries whose frames stand for the work of a stage; all others (parsers, tokenisers, files) are the host's own work.
FRAMEWORKS = (
    "torch", "jax", "jaxlib", "triton", "lightning", "pytorch_lightning", "accelerate", "transformers", "deepspeed", "megatron",
    "xformers", "flash_attn", "apex", "transformer_engine",
)  # fmt: skip
# Which stage a stack is in, where nothing timed the stages: the innermost frame of these decides.
STAGE_FRAMES = (
    ("torch/utils/data/_utils/worker.py", LOADER_WORKER),
    ("torch/utils/data/", LOADS),
    ("torch/autograd/", "backward"),
    ("torch/_tensor.py", "backward"),
    ("torch/optim/", "optimizer"),
    ("torch/serialization.py", "checkpoint"),
    ("torch/distributed/checkpoint/", "checkpoint"),
    ("torch/distributed/", "gradient_sync"),
    ("torch/nn/modules/module.py", "forward"),
)
# On the stack only while code is compiled, for the forward pass and later for the backward pass.
_FILES = (
    "torch/_dynamo/convert_frame.py",
    "torch/_inductor/compile_fx.py",
    "triton/compiler/compiler.py",
    "jax/_src/compiler.py",
)
COMPILERS = tuple("lib/" + file for file in _FILES)
MOST_ROWS = 40
HOLDS = 0.5  # of the samples: a line with less is one of several
FEWEST = 8  # samples: a share of fewer is off by a sixth and more
AT = re.compile(r"^(?P<file>.+):(?P<line>\d+) (?P<function>.+)$")
_PACKAGE = re.compile(r"^(?:.*(?:-packages|/python3\.\d+)/|lib/|)(?P<rest>(?P<package>\w+)[/.].*)")


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


@cache
def _not_mine(expression: str) -> re.Pattern[str] | None:
    try:
        return re.compile(expression) if expression else None
    except re.error:
        return None


def is_users(line: str) -> bool:
    """No library's frame."""
    ignored = _not_mine(os.environ.get(NOT_MINE, ""))
    return not line.startswith(LIBRARIES) and not (ignored is not None and ignored.match(line))


def is_library(frame: str) -> bool:
    """A frame as traces name them: of an installed package, of Python itself, or built in."""
    return not is_users(frame) or frame.startswith("<built-in") or "-packages/" in frame or "/lib/python" in frame


def stage_of(stack: Sequence[str]) -> str:
    """By the innermost frame (they come innermost first) of a framework's part that runs a stage."""
    for frame in stack:
        rest = _PACKAGE.match(frame) if not is_users(frame) else None
        found = next(
            (stage for part, stage in STAGE_FRAMES if rest is not None and rest["rest"].startswith(part)), None
        )
        if found is not None:
            return found
    return BESIDE


def is_host_work(stack: Sequence[str]) -> bool:
    """The innermost frame is of a library that computes nothing on behalf of the framework."""
    package = _PACKAGE.match(stack[0]) if stack and not is_users(stack[0]) else None
    return package is not None and package["package"] not in FRAMEWORKS


def user_lines(stacks: Iterable[tuple[str, Sequence[str], int]], source: Source, scope: Scope = WHOLE) -> Table | None:
    """From (stage, stack with the innermost line first, samples); None where no stack has a line of the user's.

    Samples of a stage that computes count as beside it where the host does something else, and as compiling where it does that; meta
    has how many.
    """
    own: Counter[tuple[str, str]] = Counter()
    held: Counter[tuple[str, str]] = Counter()
    total: Counter[str] = Counter()
    hosts, compiles = Counter[str](), Counter[str]()
    depth: dict[tuple[str, str], int] = {}
    for stage, stack, samples in stacks:
        users = [line for line in stack if is_users(line)]
        if any(line.startswith(COMPILERS) for line in stack):
            compiles[stage] += samples
            stage = COMPILING
        elif stage in COMPUTES and users and is_host_work(stack):
            hosts[stage] += samples
            stage = BESIDE
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
    return Table(KIND, columns, source, scope, {"total": dict(total), "host": dict(hosts), COMPILING: dict(compiles)})


def line_of_most(tables: Sequence[Table], stages: Collection[str]) -> CodeLine | None:
    """The innermost line of most samples of these stages, or else the deepest that most of them pass."""
    of = sum(count for table in tables for stage, count in table.meta["total"].items() if stage in stages)
    own, held, depths = Counter[str](), Counter[str](), Counter[str]()
    for table in tables:
        columns = [table.columns[name].tolist() for name in ("stage", "line", "own", "held", "depth")]
        for stage, line, innermost, passed, depth in zip(*columns, strict=True):
            if stage in stages:
                own[line] += innermost
                held[line] += passed
                depths[line] = max(depths[line], depth)
    if of < FEWEST:
        return None
    line, samples = max(own.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    if samples >= HOLDS * of:
        return as_code_line(line, samples, of)
    wide = [line for line, count in held.items() if count >= HOLDS * of and depths[line] > 0]
    deepest = max(wide, key=lambda line: (depths[line], held[line], line), default="")
    return as_code_line(deepest, held[deepest], of) if deepest else None


def as_code_line(text: str, samples: int, of: int) -> CodeLine | None:
    """ "train.py:8 Pictures.__getitem__" and its counts; None where the text is no place in a file."""
    found = AT.match(text)
    if not found or not of:
        return None
    return CodeLine(
        found["file"], int(found["line"]), found["function"].partition(".<locals>.<")[0], samples / of, samples, of
    )
