"""Formulas a person does on a whiteboard, one per file, found by walking this package.

A module's docstring is the page: a sentence, then the idea. Beside it `EQUATION`, `SOURCE`, `UNITS` (of inputs and
results), where it applies `FOLK` (the version one hears and what is wrong with it), and `evaluate`, a pure function
whose default arguments are the worked example. `docs/formulas` is generated from them and checked against them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from stallwise.errors import BadRequest
from stallwise.physics.costs.formulas._by_name import NAMES, inputs_named
from stallwise.units import Unit, parse, show


@cache
def all_formulas() -> dict[str, ModuleType]:
    """Every formula by its name, dashes for underscores."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    return {name.replace("_", "-"): import_module(f"{__name__}.{name}") for name in names}


def formula_named(text: str) -> ModuleType:
    """A formula, or the nearest names in the error."""
    from difflib import get_close_matches

    name = text.strip().lower().replace("_", "-").replace(" ", "-")
    found = all_formulas().get(name)
    if found is None:
        close = get_close_matches(name, all_formulas(), n=3, cutoff=0.4) or list(all_formulas())
        raise BadRequest(f"no formula is called '{text}'", hint="one of " + ", ".join(close))
    return found


def inputs_of(module: ModuleType) -> dict[str, Any]:
    """The arguments of a formula with their worked-example values."""
    return {name: p.default for name, p in signature(module.evaluate).parameters.items()}


def numbers_of(module: ModuleType, given: dict[str, str]) -> dict[str, Any]:
    """What the user typed as numbers, names of cards and models among them; a number typed beside a name stands."""
    known = inputs_of(module)
    values: dict[str, Any] = {}
    named: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known and name in NAMES:
            inputs = inputs_named(name, text, known)
            named |= {key: int(number) if isinstance(known[key], int) else number for key, number in inputs.items()}
            continue
        if name not in known:
            raise BadRequest(f"the formula has no '{name}'", hint="it takes " + ", ".join(known))
        number = parse(text, module.UNITS.get(name, Unit.COUNT))
        values[name] = int(number) if isinstance(known[name], int) and number == int(number) else number
    return named | values


def evaluate(module: ModuleType, given: dict[str, str]) -> dict[str, float]:
    """The results for what the user typed; what is left out keeps the example's value."""
    try:
        results: dict[str, float] = module.evaluate(**numbers_of(module, given))
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise BadRequest(f"these inputs make no sense: {error}", hint="all counts must be above zero") from None
    return results


def page(name: str, module: ModuleType) -> str:
    """The Markdown page: idea, equation, worked number, pitfall, source."""
    doc = (module.__doc__ or "").strip()
    title, _, body = doc.partition("\n")
    inputs, results = inputs_of(module), module.evaluate()
    lines = [f"# {title.rstrip('.')}", ""]
    if body.strip():
        lines += [body.strip(), ""]
    lines += ["```", module.EQUATION.strip(), "```", "", "## Worked number", "", "| input | value |", "|---|---|"]
    lines += [f"| {key} | {_shown(key, value, module)} |" for key, value in inputs.items()]
    lines += ["", "| result | value |", "|---|---|"]
    lines += [f"| {key} | {_shown(key, value, module)} |" for key, value in results.items()]
    if getattr(module, "FOLK", ""):
        lines += ["", "## Where the folk version is wrong", "", module.FOLK.strip()]
    lines += ["", "## Source", "", module.SOURCE.strip(), "", f"Try it: `stallwise plan formula {name}`", ""]
    return "\n".join(lines)


def worked(name: str) -> str:
    """The formula in a few lines: what it says, the equation, the example's numbers, the pitfall, the command."""
    module = all_formulas()[name]
    inputs = ", ".join(f"{key} {_shown(key, value, module)}" for key, value in inputs_of(module).items())
    results = ", ".join(f"{key} {_shown(key, value, module)}" for key, value in module.evaluate().items())
    lines = [(module.__doc__ or "").strip().splitlines()[0], ""]
    lines += [f"    {line.strip()}" for line in module.EQUATION.strip().splitlines()]
    lines += ["", f"with      {inputs}", f"gives     {results}"]
    lines += [f"beware    {' '.join(module.FOLK.split())}"] if getattr(module, "FOLK", "") else []
    return "\n".join([*lines, f"ask       stallwise plan formula {name} INPUT=VALUE"])


def _shown(key: str, value: float, module: ModuleType) -> str:
    unit = module.UNITS.get(key, Unit.COUNT)
    if unit is Unit.COUNT and abs(value) >= 1e6:
        return f"{value:.4g}"
    return show(value, unit)
