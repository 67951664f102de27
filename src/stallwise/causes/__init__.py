"""Every cause the doctor knows: two files each, `cause.py` and `cause.toml`, in a folder per family.

`cause.py`: the docstring is the page of `stallwise explain`; then thresholds with their reasons, the prover, CLUES (what speaks for and
against it, each with a word for how it tells), and perhaps `advise` (what to do while the cause is only likely) and `in_trace` (a cause of
single kernels, as a whole trace shows it). `cause.toml`: title, owner, what people see and write, the symptoms it can be behind, single
numbers that name it, and what the drill needs. What a clue weighs is fitted to cases (`doctor.recognise`), never typed.

A module is loaded when something that it looks at was read (`index.json`, compiled by `make index`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Rival
from stallwise.doctor.findings.rule import Owned, Rule
from stallwise.doctor.findings.symptom import Symptom
from stallwise.evidence.catalog import quantities
from stallwise.evidence.compiled import Rows, load
from stallwise.evidence.inputs import Inputs
from stallwise.evidence.ledger import Category
from stallwise.tables import parsed

FOLDER = Path(__file__).parent


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the product, in order of family and name."""
    return tuple(_rule(cause, row) for cause, row in index()["causes"].items())


@cache
def index() -> Rows:
    """What is known of causes and proofs before any of their modules is loaded."""

    def build() -> tuple[Rows, set[Path]]:
        from stallwise.causes import _index

        return _index.build()

    return load(FOLDER, build)


@cache
def table_of(cause: str) -> Mapping[str, Any]:
    """The whole of `cause.toml`."""
    path = FOLDER / index()["causes"][cause]["family"] / f"{_name(cause)}.toml"
    return parsed(path.read_text(encoding="utf-8"))


@cache
def rivals_of(cause: str) -> tuple[Rival, ...]:
    """What else shows the symptoms of the cause, in the order in which an engineer rules it out."""
    known = quantities()
    rows = table_of(cause).get("rival", ()) if cause in index()["causes"] else ()
    return tuple(
        Rival(r["cause"], r["less_likely"], r["check"], known.get(r.get("ruled_out", "")), r.get("by", False))
        for r in rows
    )


def _rule(cause: str, row: Rows) -> Rule:
    name, module = _name(cause), f"{__name__}.{row['family']}.{_name(cause)}"
    known = quantities()
    trace = row.get("in_trace")
    return Rule(
        cause=cause,
        family=row["family"],
        judge=_late(module, lambda m: getattr(m, name).judge),
        needs=tuple(known[q] for q in row["needs"]),
        instead=tuple(known[q] for q in row.get("instead", ())),
        per=row["per"],
        explains={Symptom[s.upper()]: often for s, often in row.get("explains", {}).items()},
        clues=tuple(_clue(module, place, *clue) for place, clue in enumerate(row["clues"])),
        in_trace=None
        if trace is None
        else Rule(
            "in-trace", row["family"], _late(module, lambda m: m.in_trace.judge), tuple(known[q] for q in trace["needs"]),
            trace["per"], reads=Inputs.of(trace["reads"]),
        ),
        owns=_owned(row["owns"]) if "owns" in row else None,
        advise=_late(module, lambda m: m.advise) if row["advise"] else None,
        reads=Inputs.of(row["reads"]),
        owner=row.get("owner", ""),
        seen=row.get("seen", ""),
        thresholds=tuple(row.get("threshold", ())),
        preview=row.get("preview", False),
    )  # fmt: skip


def _clue(module: str, place: int, reads: list[str], strength: Any, says: str, says_not: str) -> Clue:
    held = _late(module, lambda m: m.CLUES[place].holds)
    return Clue(tuple(quantities()[q] for q in reads), held, strength, says, says_not)


def _owned(row: Rows) -> Owned:
    known = quantities()
    parts, shares, bursts = (tuple(known[q] for q in row.get(key, ())) for key in ("parts", "shares", "bursts"))
    whole = row.get("whole_account", True)
    return Owned(Category(row["account"]), parts, row["right"], row["of"], shares, bursts, whole)


def _late(module: str, function: Callable[[ModuleType], Callable[..., Any]]) -> Callable[..., Any]:
    """A function of a module that is loaded when it is first called."""

    def call(*args: Any) -> Any:
        return function(import_module(module))(*args)

    call.__module__ = module
    return call


def _name(cause: str) -> str:
    return cause.replace("-", "_")
