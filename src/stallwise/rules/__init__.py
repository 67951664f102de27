"""Every cause the doctor knows, one file each, in a folder per family.

Beside `cause.py` may stand `_cause.py`: what is known of the cause while it is only likely (EXPLAINS,
CLUES, `advise`), kept apart where it would crowd the rule. What the two say is put together here.
EXPLAINS has a word for how often the cause is behind a symptom, CLUES for how they tell: what a clue weighs is fitted to cases
(`doctor.recognise`), never typed.
A rule about single kernels may have `_cause_in_trace.py` with `in_trace`: the same cause as a whole trace shows it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from stallwise.findings.rule import Rule
from stallwise.findings.symptom import Often, Symptom

HEALTH = "health"  # the family of proofs: what shows that no cause is there


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the product, in order of family and name; found by walking, never registered."""
    found: list[Rule] = []
    for family in iter_modules(__path__):
        if family.name == HEALTH:
            continue
        package = import_module(f"{__name__}.{family.name}")
        names = {module.name for module in iter_modules(package.__path__)}
        for name in sorted(n for n in names if not n.startswith("_")):
            loaded = [import_module(f"{package.__name__}.{name}")]
            beside = [b for b in (f"_{name}", f"_{name}_in_trace") if b in names]
            loaded += [import_module(f"{package.__name__}.{b}") for b in beside]
            found.append(_whole(name, loaded))
    return tuple(found)


def _whole(name: str, modules: list[ModuleType]) -> Rule:
    rule = getattr(modules[0], name)
    assert isinstance(rule, Rule), f"{modules[0].__name__} must define the rule {name}"
    explains: dict[Symptom, Often] = {}
    for module in modules:
        explains |= getattr(module, "EXPLAINS", {})
        rule = replace(rule, clues=(*rule.clues, *getattr(module, "CLUES", ())))
        rule = replace(rule, advise=getattr(module, "advise", rule.advise))
        rule = replace(rule, owns=getattr(module, "OWNS", rule.owns))
        rule = replace(rule, in_trace=getattr(module, "in_trace", rule.in_trace))
    return replace(rule, explains=explains)
