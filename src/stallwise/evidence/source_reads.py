"""Which quantities and lists of the evidence a function can look at, followed by name through the source of the package.

Too much may be found (an attribute of another class with the same name), never too little: what cannot be followed (a
catalogue passed on as a whole, modules found by walking) means that the function is always run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from stallwise.evidence import catalog
from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.inputs import Inputs
from stallwise.evidence.quantity import Quantity

PACKAGE = __name__.partition(".")[0]
CATALOGUE = catalog.__name__
EVERYTHING = frozenset(
    {"facts", "scopes"}
)  # of Evidence: no list of names says what these give, but a label of `scopes` may be written out
UNFOLLOWED = frozenset({"import_module", "iter_modules"})
LISTS = {f.name: f.name for f in fields(Evidence) if f.init and f.name not in (*EVERYTHING, "all_series")}
BY_METHOD = {
    **LISTS,
    "events_of": "events",
    "at": "events",
    "table": "tables",
    "all_series": "all_series",
}


@dataclass(frozen=True, slots=True)
class _Module:
    path: Path
    names: dict[str, list[ast.stmt]]  # top level
    imported: dict[str, tuple[str, str]]  # local name -> module, and what of it ("" for the module itself)


@dataclass(slots=True)
class _Found:
    opaque: frozenset[str]
    quantities: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    always: bool = False
    files: set[Path] = field(default_factory=set)


def reads(module: str, function: str, wrapper: str = "") -> tuple[Inputs, frozenset[Path]]:
    """What the function can look at, and the files that say so. `wrapper`: a module that looks on behalf of its caller."""
    found = _Found(opaque=frozenset({Evidence.__module__, wrapper}))
    seen: set[tuple[str, str]] = set()
    left = [(module, function)]
    while left:
        place = left.pop()
        if place not in seen:
            seen.add(place)
            left += _of(*place, found)
    inputs = Inputs(frozenset(found.quantities), tuple(sorted(found.lists)), tuple(sorted(found.labels)), found.always)
    return inputs, frozenset(found.files)


def _of(module: str, name: str, found: _Found) -> Iterator[tuple[str, str]]:
    """Where the definition leads to; what it names is added to `found`."""
    if not module.startswith(f"{PACKAGE}."):
        return
    if module == CATALOGUE or module.startswith(f"{CATALOGUE}."):
        held = import_module(module)
        _add_quantities(getattr(held, name, None) if name else held, found)
        return
    if module in found.opaque:
        return
    source = _parsed(module)
    found.files.add(source.path)
    if name not in source.names:
        if name in source.imported:
            yield source.imported[name]
        return
    for statement in source.names[name]:
        yield from _named(statement, source, module, found)


def _named(statement: ast.stmt, source: _Module, module: str, found: _Found) -> Iterator[tuple[str, str]]:
    through: set[ast.AST] = set()  # names that only lead to an attribute, and `scopes` with its label written out
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scopes":
            match node.args:
                case [ast.Constant(value=str(label))]:
                    found.labels.add(label)
                    through.add(node.func)
        if isinstance(node, ast.Attribute):
            found.always |= node.attr in EVERYTHING and node not in through
            if node.attr in BY_METHOD:
                found.lists.add(BY_METHOD[node.attr])
            held = source.imported.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if held is not None and not held[1]:
                through.add(node.value)
                yield held[0], node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in through:
            if node.id in source.names:
                yield module, node.id
            elif node.id in source.imported:
                where, what = source.imported[node.id]
                found.always |= what in UNFOLLOWED and _sees_evidence(source.path.parent)
                if what or where.startswith(CATALOGUE):  # a part of the catalogue that is handed on as a whole
                    yield where, what


@cache
def _sees_evidence(folder: Path) -> bool:
    """Whether modules that are found by walking this folder can look at evidence at all."""
    return any(Evidence.__module__ in file.read_text(encoding="utf-8") for file in folder.glob("*.py"))


def _add_quantities(value: object, found: _Found) -> None:
    match value:
        case Quantity():
            found.quantities.add(value.name)
        case dict():
            for pair in value.items():
                _add_quantities(pair, found)
        case list() | tuple() | set() | frozenset():
            for item in value:
                _add_quantities(item, found)
        case ModuleType():
            _add_quantities([v for v in vars(value).values() if isinstance(v, Quantity)], found)
        case str() | int() | float() | Capture() | None:
            pass
        case _:
            found.always = True


@cache
def _parsed(module: str) -> _Module:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    path = Path(spec.origin)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _defined(statement):
            names.setdefault(name, []).append(statement)
    imported: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {(a.asname or a.name.partition(".")[0]): (a.name, "") for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {a.asname or a.name: _meant(node.module, a.name) for a in node.names}
    return _Module(path, names, imported)


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With, ast.If, ast.Try)):
        return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return []


def _meant(module: str, name: str) -> tuple[str, str]:
    """A module of that package, or something in it."""
    inside = module.startswith(PACKAGE) and find_spec(f"{module}.{name}") if _is_package(module) else None
    return (f"{module}.{name}", "") if inside else (module, name)


@cache
def _is_package(module: str) -> bool:
    if not module.startswith(PACKAGE):
        return False
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None
