"""A clock that passes when told to, and players who type what people type."""

from __future__ import annotations

from pathlib import Path

from stallwise.drill.repl import handle
from stallwise.drill.requests import artifacts
from stallwise.drill.round import Round, start
from stallwise.drill.rubric import Result
from stallwise.units import Unit


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


def play(
    seed: int, folder: Path, name: str, account: str, *, exhibits: int = 2, sure: str = "80%", knows: bool = True
) -> Result:
    """Opens so many exhibits, the settling one first; says the account; `knows` the answer to the follow-up."""
    played, clock = begin(seed, folder, name)
    clock.wait(20)
    handle(played, "think something is slow")
    order = sorted(played.menu, key=lambda k: (k not in played.incident.deciding, artifacts()[k].minutes))
    for kind in order[:exhibits]:
        clock.wait(20)
        handle(played, f"ask {played.menu.index(kind) + 1}")
    handle(played, "commit")
    handle(played, account)
    if played.stage == "again":
        handle(played, "skip")
    handle(played, sure)
    number = played.challenge.number
    unit = {Unit.COUNT: "", Unit.RATIO: "", Unit.TOKEN: "", Unit.SHARE: ""}.get(number.unit, f" {number.unit.value}")
    handle(played, f"{number.value if knows else 7.77 * number.value + 1:.6g}{unit}")
    if not played.over:
        handle(played, "skip")
    assert played.over
    return played.result()
