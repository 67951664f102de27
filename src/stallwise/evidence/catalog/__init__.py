"""Every quantity that a fact may carry, as data: one table a family (`<family>.tsv`), one line a quantity.

A family is a module: `from stallwise.evidence.catalog import step`, then `step.STEP_TIME`; a name that is in no table does not import.
`<family>.pyi` tells editors and type checkers the names; `make index` writes it. The columns are those of `Quantity`. Three units make
something else of a line: `table` and `note` are words that readers, measures and causes share, `group` is a dict of the quantities
whose names begin with its name, by the rest of their names (those that its meaning lists).
"""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from stallwise.evidence import capture
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

FOLDER = Path(__file__).parent
SHARED_WORDS = ("table", "note")
GROUP = "group"
LISTED = ", "
UNITS = {unit.value: unit for unit in Unit}


def rows(text: str) -> Iterator[dict[str, str]]:
    """The lines of a table by its columns, comments left out."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    head = lines[0].split("\t")
    for line in lines[1:]:
        cells = line.split("\t")
        yield dict(zip(head, [*cells, *[""] * (len(head) - len(cells))], strict=True))


def family(text: str) -> dict[str, Any]:
    """What a table declares, by the name of its constant."""
    found: dict[str, Any] = {}
    for row in rows(text):
        constant, unit = row["constant"], row["unit"]
        assert constant not in found, f"{constant} is declared twice"
        if unit in SHARED_WORDS:
            found[constant] = row["name"]
        elif unit == GROUP:
            found[constant] = {
                word: _named(found, row["name"] + word.replace("-", "_")) for word in _listed(row["meaning"])
            }
        else:
            found[constant] = _quantity(row)
    return found


def _quantity(row: dict[str, str]) -> Quantity:
    more = dict(pair.split("=") for pair in row["more"].split("; ") if "=" in pair)
    return Quantity(
        row["name"],
        UNITS[row["unit"]],
        row["meaning"],
        getattr(capture, row["capture"]) if row["capture"] else None,
        _listed(row["also typed"]),
        words=_listed(row["words"]),
        exact="exact" in row["more"].split("; "),
        better=row["better"],
        **more,
    )


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(cell.split(LISTED)) if cell else ()


def _named(found: dict[str, Any], name: str) -> Quantity:
    return next(q for q in found.values() if isinstance(q, Quantity) and q.name == name)


@cache
def quantities() -> dict[str, Quantity]:
    """All quantities by name."""
    found: dict[str, Quantity] = {}
    for module in FAMILIES.values():
        for value in vars(module).values():
            if isinstance(value, Quantity):
                assert value.name not in found, f"{value.name} is declared twice"
                found[value.name] = value
    return found


def line_of(name: str) -> Quantity:
    """The line of the catalogue with this name."""
    return quantities()[name]


def _by_name(quantity: Quantity) -> tuple[Callable[[str], Quantity], tuple[str]]:
    return line_of, (quantity.name,)


copyreg.pickle(Quantity, _by_name)  # across processes a quantity goes by name: the catalogue is on both sides


def stub(name: str) -> str:
    """What a type checker is to know of a family."""
    types = {str: "str", dict: "dict[str, Quantity]", Quantity: "Quantity"}
    declared = [f"{n}: {types[type(v)]}" for n, v in vars(FAMILIES[name]).items() if not n.startswith("__")]
    return "\n".join(["from stallwise.evidence.quantity import Quantity", "", *declared, ""])


def _module(path: Path) -> ModuleType:
    module = ModuleType(f"{__name__}.{path.stem}")
    module.__spec__ = ModuleSpec(module.__name__, None, origin=str(path))
    vars(module).update(family(path.read_text(encoding="utf-8")))
    sys.modules[module.__name__] = module
    return module


FAMILIES = {path.stem: _module(path) for path in sorted(FOLDER.glob("*.tsv"))}
globals().update(FAMILIES)
