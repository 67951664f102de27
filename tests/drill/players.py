# ruff: noqa: E501
"""Scripted players of known quality. They type what people type; only their knowledge differs.

An answer that is not understood is answered by a sentence and costs nothing, so a player who says it in words falls back to
the number of the line, as a person would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stallwise.doctor.catalogue import families
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.incident import EXACT
from stallwise.drill.repl import handle
from stallwise.drill.requests import artifacts
from stallwise.drill.round import Round, start
from stallwise.drill.scoring import Score
from stallwise.units import Unit, show

# How somebody asks whose English is not at home, for each kind.
ODDLY = {
    "case": "please the settings of the run", "changes": "which thing has changed?", "note": "has a colleague written a note?",
    "gpu-state": "how are the clocks and the temperature of gpu", "kernel-log": "kernel messages, the dmesg", "train-log": "log of the training",
    "loss-curve": "curve of the loss", "trace": "I like to see timeline", "host-profile": "py-spy of host", "stacks": "stack dump please",
    "compile-log": "what says dynamo, graph breaks?", "ncu": "counters of the kernel from nsight compute", "sass": "the sass please",
    "autotune": "log from autotuning", "rank-times": "times for each rank separately", "rank-logs": "error log of all the workers, stderr",
    "stage-times": "time by each pipeline stage", "nccl-log": "nccl debug info", "nccl-tests": "bandwidth test of the network", "scaling": "times by number of gpus",
    "comm-profile": "profile of collectives", "pair-test": "test of gpu pairs", "topology": "topo of the links", "limits": "ulimit values",
    "oom-message": "out of memory message, full", "memory-snapshot": "snapshot of memory", "engine-log": "log from the engine",
    "engine-metrics": "prometheus metrics", "bench": "result of load test", "layer-stats": "amax by layer",
}  # fmt: skip


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def begin(seed: int, folder: Path, name: str) -> tuple[Round, Clock]:
    clock = Clock()
    return start(seed, clock, folder / f"{name}-{seed}.jsonl"), clock


@dataclass
class Knowledge:
    """What somebody who read the deciding paper knows, as lines of the lists."""

    played: Round

    @property
    def paper(self) -> str:
        return min(self.played.incident.deciding, key=lambda k: artifacts()[k].minutes)

    @property
    def cause(self) -> int:
        return self.played.form.causes.index(self.played.incident.cause) + 1

    @property
    def second(self) -> str:
        also = self.played.incident.also
        return str(self.played.form.causes.index(also[0]) + 1) if also else "none"

    @property
    def number(self) -> str:
        number = self.played.incident.number
        return f"{number.value:.0f}" if number.within == EXACT else show(number.value, number.unit).replace("°C", "C")

    @property
    def fixes(self) -> list[int]:
        real = [(c.place, n) for n, c in enumerate(self.played.form.fixes, start=1) if c.right]
        return [n for _, n in sorted(real)]

    @property
    def trap(self) -> int:
        return next(n for n, c in enumerate(self.played.form.fixes, start=1) if c.trap)

    @property
    def falsifier(self) -> int:
        return next(n for n, c in enumerate(self.played.form.refuters, start=1) if c.right)

    @property
    def not_first(self) -> int:
        return next(n for n, c in enumerate(self.played.form.first_moves, start=1) if c.right)


def say(played: Round, clock: Clock, line: str, otherwise: str = "") -> None:
    """One line; where it was not taken, the number of the line instead."""
    clock.wait(20)
    stage = played.stage
    answer = handle(played, line)
    if otherwise and played.stage == stage and not answer.over:
        handle(played, otherwise)


def _end(played: Round) -> Score:
    assert played.over, played.stage
    return played.score()


def expert(seed: int, folder: Path) -> Score:
    played, clock = begin(seed, folder, "expert")
    know = Knowledge(played)
    say(played, clock, f"ask {artifacts()[know.paper].what}")
    say(played, clock, "commit")
    for line in (
        f"{know.cause} 95%",
        know.second,
        know.number,
        " ".join(map(str, know.fixes)),
        str(know.falsifier),
        str(know.not_first),
    ):
        say(played, clock, line)
    say(played, clock, ". ".join(i.text for i in played.ideas))
    say(played, clock, "all")
    return _end(played)


def terse(seed: int, folder: Path) -> Score:
    played, clock = begin(seed, folder, "terse")
    know = Knowledge(played)
    say(played, clock, str(played.menu.index(know.paper) + 1))
    say(played, clock, f"commit {know.cause} 95")
    for line in (
        know.second,
        know.number,
        "".join("abcdefgh"[n - 1] for n in know.fixes),
        str(know.falsifier),
        str(know.not_first),
    ):
        say(played, clock, line)
    say(played, clock, f"{cause_profiles()[played.incident.cause].words[0]}, {know.number}")
    say(played, clock, "1 2")
    return _end(played)


def non_native(seed: int, folder: Path) -> Score:
    """Everything in other words: requests, the cause, number words, decimal commas, ordinals."""
    played, clock = begin(seed, folder, "non_native")
    know = Knowledge(played)
    known = cause_profiles()[played.incident.cause]
    say(played, clock, ODDLY[know.paper])
    say(played, clock, "commit")
    say(played, clock, f"{known.words[-1]} zero point nine five", f"{know.cause} 95%")
    say(played, clock, know.second)
    say(played, clock, _in_words(played, know), know.number)  # "5,728 ms" is asked back
    ordinals = [
        "the first",
        "the second",
        "the third",
        "the fourth",
        "the fifth",
        "the sixth",
        "the seventh",
        "the eighth",
    ]
    say(played, clock, ", then ".join(ordinals[n - 1] for n in know.fixes))
    say(played, clock, ordinals[know.falsifier - 1])
    say(played, clock, f"it is number {know.not_first}")
    say(played, clock, f"It make problem {known.words[-1]}, value is {_in_words(played, know)}")
    say(played, clock, "one and two")
    return _end(played)


def _in_words(played: Round, know: Knowledge) -> str:
    number = played.incident.number
    if number.within == EXACT:
        return f"it is {know.number}"
    words = {
        Unit.SECOND: "milliseconds",
        Unit.SHARE: "percent",
        Unit.BYTE: "gigabytes",
        Unit.RATIO: "times",
        Unit.BYTE_PER_S: "gigabytes per second",
    }
    scale = {Unit.SECOND: 1e3, Unit.SHARE: 100, Unit.BYTE: 1e-9, Unit.BYTE_PER_S: 1e-9}.get(number.unit, 1.0)
    value = f"{number.value * scale:.4g}"
    return f"around {value.replace('.', ',')} {words.get(number.unit, number.unit.value if number.unit is not Unit.COUNT else '')}".rstrip()


def hedger(seed: int, folder: Path) -> Score:
    """Right paper, right arithmetic, no decision: the truth is one of four."""
    played, clock = begin(seed, folder, "hedger")
    know = Knowledge(played)
    others = [n for n in range(1, len(played.form.causes) + 1) if n != know.cause][:3]
    say(played, clock, f"ask {artifacts()[know.paper].what}")
    say(played, clock, "commit")
    say(played, clock, "; ".join(f"{n} 25%" for n in (know.cause, *others)))
    for line in (know.second, know.number, " ".join(map(str, know.fixes)), str(know.falsifier), str(know.not_first)):
        say(played, clock, line)
    say(played, clock, f"it may be {cause_profiles()[played.incident.cause].words[0]} or something else, {know.number}")
    say(played, clock, "1 2")
    return _end(played)


def shotgun(seed: int, folder: Path) -> Score:
    """Everything on the menu, then the right answers."""
    played, clock = begin(seed, folder, "shotgun")
    know = Knowledge(played)
    say(played, clock, " ".join(str(n) for n in range(1, len(played.menu) + 1)))
    say(played, clock, "commit")
    for line in (
        f"{know.cause} 95%",
        know.second,
        know.number,
        " ".join(map(str, know.fixes)),
        str(know.falsifier),
        str(know.not_first),
    ):
        say(played, clock, line)
    say(played, clock, f"{cause_profiles()[played.incident.cause].words[0]}, {know.number}")
    say(played, clock, "1 2")
    return _end(played)


def bluffer(seed: int, folder: Path) -> Score:
    """No papers, full confidence, in the right corner at best."""
    played, clock = begin(seed, folder, "bluffer")
    family = [n for n, c in enumerate(played.form.causes, start=1) if families()[c] == played.incident.family]
    say(played, clock, "think obviously I have seen this a hundred times")
    say(played, clock, f"commit {family[seed % len(family)]} 97%")
    for line in ("none", _some_number(played, 100), "1 2", "1", "1"):
        say(played, clock, line)
    say(played, clock, "Clearly the root cause; the fix is known, the numbers fit, there is no doubt at all.")
    say(played, clock, "all")
    return _end(played)


def parrot(seed: int, folder: Path) -> Score:
    """The same words to every question."""
    played, clock = begin(seed, folder, "parrot")
    say(played, clock, "commit 1 100%")
    for line in ("2", _some_number(played, 42), "1 2 3 4 5 6"[: 2 * len(played.form.fixes) - 1], "4", "4"):
        say(played, clock, line)
    say(played, clock, "increase batch size, add GPUs, raise occupancy, bandwidth memory NCCL overlap")
    say(played, clock, "all")
    return _end(played)


def trap_taker(seed: int, folder: Path) -> Score:
    """Knows it all and begins with the tempting move."""
    played, clock = begin(seed, folder, "trap")
    know = Knowledge(played)
    say(played, clock, f"ask {artifacts()[know.paper].what}")
    say(played, clock, f"commit {know.cause} 95%")
    for line in (know.second, know.number, " ".join(map(str, [know.trap, *know.fixes])), str(know.falsifier)):
        say(played, clock, line)
    say(played, clock, str(know.not_first % len(played.form.first_moves) + 1))
    say(played, clock, f"{cause_profiles()[played.incident.cause].words[0]}, {know.number}")
    say(played, clock, "1 2")
    return _end(played)


def silent(seed: int, folder: Path) -> Score:
    played, clock = begin(seed, folder, "silent")
    say(played, clock, "commit")
    while not played.over:
        say(played, clock, "skip")
    return _end(played)


def _some_number(played: Round, value: int) -> str:
    return f"{value} {'' if played.incident.number.unit in (Unit.COUNT, Unit.RATIO) else _unit(played)}".strip()


def _unit(played: Round) -> str:
    return {Unit.SECOND: "ms", Unit.SHARE: "%", Unit.BYTE: "GB", Unit.BYTE_PER_S: "GB/s", Unit.TOKEN_PER_S: "tok/s", Unit.WATT: "W", Unit.PER_S: "/s"}[played.incident.number.unit]  # fmt: skip


PLAYERS: tuple[Callable[[int, Path], Score], ...] = (
    expert,
    terse,
    non_native,
    hedger,
    shotgun,
    bluffer,
    parrot,
    trap_taker,
    silent,
)
