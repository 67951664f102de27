"""Numeric questions that never run out: sizes drawn at random, the answer worked out by the formulas of the cost model."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from stallwise.drill import rows
from stallwise.drill.quantity import typed
from stallwise.physics.costs.formulas import all_formulas
from stallwise.units import Unit, show

WITHIN_FACTOR = 1.1  # whiteboard arithmetic: ten percent either way is right


@dataclass(frozen=True, slots=True)
class Question:
    """A generated question. `inputs` are those of the formula, so that anybody can check the answer."""

    id: str
    topic: str
    ask: str
    formula: str
    inputs: Mapping[str, float]
    result: str
    answer: float
    unit: Unit
    equation: str

    def accepts(self, text: str) -> bool:
        """Right to within the factor; units, number words and decimal commas are understood, a bare number is in SI."""
        value = typed(text, self.unit, bare=True)
        if self.answer == 0:
            return abs(value) < 1e-9
        return 1 / WITHIN_FACTOR <= value / self.answer <= WITHIN_FACTOR

    def worked(self) -> str:
        """The equation, the inputs and the result in words."""
        equation = "; ".join(line.strip() for line in self.equation.strip().splitlines())
        return f"{equation}   ->   {show(self.answer, self.unit)}"


MEMORY = {2.039e12: 80e9, 3.35e12: 80e9, 4.8e12: 141e9, 8e12: 192e9}  # bytes of the cards with this bandwidth
REACHED = (0.05, 0.65)  # MFU that trainings report
HELD = 0.9  # of a card's memory: weights and KV that it reads


def _fits(v: Mapping[str, float], _: float) -> bool:
    return (v["weights_bytes"] + v["requests"] * v["kv_bytes"]) / v["gpus"] <= HELD * MEMORY[v["byte_per_s"]]


# Whether a real system could be so.
ONLY: dict[str, Callable[[Mapping[str, float], float], bool]] = {
    "": lambda v, answer: True,
    "fits": _fits,
    "whole rounds": lambda v, answer: v["microbatches"] % v["stages"] == 0,
    "reached": lambda v, answer: REACHED[0] <= answer <= REACHED[1],
    "worth saving": lambda v, answer: answer > 2 * v["checkpoint_s"],
}


@cache
def kinds() -> tuple[dict[str, str], ...]:
    """What can be asked (numbers.tsv), its lists of values put in."""
    lists = {row["topic"]: row["draw"] for row in rows("numbers.tsv") if row["topic"].startswith("@")}
    asked = (row for row in rows("numbers.tsv") if not row["topic"].startswith("@"))
    return tuple(row | {"draw": re.sub(r"@\w+", lambda m: lists[m[0]], row["draw"])} for row in asked)


def _drawn(rng: random.Random, row: Mapping[str, str]) -> dict[str, float]:
    """Inputs of the formula; names joined by a slash are drawn together."""
    found: dict[str, float] = {}
    for part in row["draw"].split("; "):
        names, choices = part.split(" = ")
        values = rng.choice(choices.split(" | ")).split("/")
        found |= {n: int(v) if v.isdigit() else float(v) for n, v in zip(names.split("/"), values, strict=True)}
    return found


def _written(name: str, value: float) -> str:
    """As one would write it on a whiteboard."""
    if name == "params":
        return f"{value / 1e9:g}B"
    if name == "mtbf_gpu_s":
        return f"{value / 3600:,.0f} h"
    ends = {"_bytes": Unit.BYTE, "byte_per_s": Unit.BYTE_PER_S, "flop_per_s": Unit.FLOP_PER_S, "_s": Unit.SECOND}
    unit = next((unit for end, unit in ends.items() if name.endswith(end)), None)
    return f"{value:,g}" if unit is None or name == "token_per_s" else show(value, unit)


def generate(rng: random.Random, topic: str | None = None) -> Question:
    """One question; the same generator state gives the same question."""
    row = rng.choice([kind for kind in kinds() if topic in (None, kind["topic"])])
    module, result, answer = all_formulas()[row["formula"]], row["result"], 0.0
    inputs: dict[str, float] = {}
    while not inputs or not ONLY[row["only"]](inputs, answer):
        inputs = _drawn(rng, row)
        answer = float(module.evaluate(**inputs)[result])
    return Question(
        id=f"{row['formula']}:{result}:" + ",".join(f"{k}={v:g}" for k, v in sorted(inputs.items())),
        topic=row["topic"],
        ask=row["ask"].format(**{name: _written(name, value) for name, value in inputs.items()}),
        formula=row["formula"],
        inputs=inputs,
        result=result,
        answer=answer,
        unit=module.UNITS.get(result, Unit.COUNT),
        equation=module.EQUATION,
    )


def series(seed: int, count: int, topic: str | None = None) -> list[Question]:
    """Questions of which no two are alike."""
    rng = random.Random(seed)
    found: dict[str, Question] = {}
    for _ in range(count * 50):
        question = generate(rng, topic)
        found.setdefault(question.id, question)
        if len(found) == count:
            break
    return list(found.values())
