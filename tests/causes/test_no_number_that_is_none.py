"""Whatever part of its evidence a rule is given, no sentence of it holds a number that is none."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import pytest

from stallwise.causes import all_rules
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.rule import Rule
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.render.json import to_dict
from stallwise.render.text import to_text
from stallwise.units import Unit

TRIES = 25
# As Python writes a NaN beside a unit, and as `show` does; a loss may be NaN, and it has no unit.
NONE = re.compile(r"\bnan(?:[x%]|(?= \w+))|\bunknown\b|-?\binf(?:[x%]| (?:ms|s|GB)\b)")
VALUES = {
    Unit.SECOND: (1e-4, 0.02, 0.3, 4.0), Unit.SHARE: (0.05, 0.3, 0.9, 0.99), Unit.BYTE: (1e8, 2e9, 7e10), Unit.BYTE_PER_S: (1e9, 3e12),
    Unit.FLOP_PER_S: (1e13, 5e14), Unit.RATIO: (0.5, 1.2, 3.0), Unit.COUNT: (0.0, 1.0, 8.0, 512.0), Unit.TOKEN: (128.0, 4096.0),
    Unit.TOKEN_PER_S: (20.0, 1e4), Unit.PER_S: (4.0, 100.0), Unit.WATT: (200.0, 700.0), Unit.CELSIUS: (60.0, 88.0),
    Unit.HERTZ: (1e9, 2e9), Unit.FLAG: (0.0, 1.0),
}  # fmt: skip
SENTENCES = (
    "all-reduce 61 ms at 256 GPUs and 340 ms at 512, same fabric, why?",
    "all-reduce is slow at 512 GPUs",
    "MFU fell from 48% and nobody knows why",
    "TTFT is 4 s at 16 QPS, the KV cache is full and requests are preempted",
    "our fused Triton kernel is slower than cuBLAS",
    "step time doubled, GPU memory grows, the loader waits",
)


def quantities_of(rule: Rule) -> list[Quantity]:
    """What the rule's own files speak of."""
    modules = [import_module(f.__module__) for f in (rule.judge, rule.advise) if f is not None]
    found = {q.name: q for q in (*rule.needs, *(q for c in rule.clues for q in c.reads))}
    for module in modules:
        source = open(str(module.__file__), encoding="utf-8").read()  # noqa: PTH123, SIM115
        for value in vars(module).values():
            if isinstance(value, Quantity):
                found[value.name] = value
            elif getattr(value, "__name__", "").startswith("stallwise.evidence.catalog"):
                found |= {
                    q.name: q
                    for n, q in vars(value).items()
                    if isinstance(q, Quantity) and re.search(rf"\b{n}\b", source)
                }
    return list(found.values())


def some_of(rule: Rule, quantities: list[Quantity], rng: random.Random) -> Evidence:
    evidence, kept = Evidence(inputs=["x"], formats=["x"]), rng.random()
    label: dict[str, Any] = (
        {} if rule.per is None else {rule.per: "k" if rule.per in ("kernel", "node", "run", "layer") else 0}
    )
    for quantity in quantities:
        if quantity not in rule.needs and rng.random() > kept:
            continue
        value: Any = "ring" if quantity.unit is Unit.TEXT else rng.choice(VALUES.get(quantity.unit, (1.0,)))
        scope = Scope(**label) if label and rng.random() > 0.3 else WHOLE
        evidence.add([Fact(quantity, value, Source("x"), scope)])
        if quantity.unit is not Unit.TEXT and rng.random() < 0.2:
            evidence.add(
                [Fact(quantity, rng.choice(VALUES.get(quantity.unit, (1.0,))), Source("x"), Scope(run="before"))]
            )
    return evidence


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        yield from texts(list(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from texts([getattr(value, f.name) for f in fields(value) if f.name not in ("scope", "sources", "cause")])


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.cause)
def test_no_rule_says_a_number_that_is_none(rule: Rule) -> None:
    rng, quantities = random.Random(rule.cause), quantities_of(rule)
    for _ in range(TRIES):
        evidence = some_of(rule, quantities, rng)
        said = [f for f in rule.verdicts(evidence) if isinstance(f, Finding)]
        said += [rule.advise(evidence)] if rule.advise else []
        wrong = [text for finding in said for text in texts(finding) if NONE.search(text)]
        assert not wrong


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_answer_says_one(sentence: str) -> None:
    found = diagnose(sentence, cache=False)
    assert not NONE.search(to_text(found))
    assert not [text for text in texts(to_dict(found)) if NONE.search(text)]
