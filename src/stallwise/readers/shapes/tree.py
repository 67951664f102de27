"""Trees: JSON, JSON lines, TOML and YAML. A list of alike objects is a table; every other leaf stands under its path."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from stallwise.evidence.file_cache import cached_for_file
from stallwise.evidence.reading import Cell, Reading, Rows, Shape, cell_of, rows_in, rows_of
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.keyed import over_places, pairs_in

MAX_TEXT = 64 << 20
MAX_YAML = 1 << 18  # people write it by hand; the parser is slow
MOST = 1 << 1000  # a whole number that no float can hold is a text
DEEPEST = 12
LINES = "[]"  # behind the path of a list of lines
PRINTED = 3  # pairs by which a text inside a tree is something that a program printed
ALIKE = 0.5  # share of an object's keys that the others of its list must have
NAMES = ("columns", "header", "headers", "fields")  # under which a table's columns are named once
PAIRED = 0.6  # share of the lines of a YAML document that must be pairs or items


def recognises(name: str, text: str) -> bool:
    """Any of the notations, whole or line by line."""
    return tree_of(name, text) is not None


def read(text: str) -> Iterator[Shape]:
    """Tables and leaves."""
    yield from shapes_of(tree_of("", text))


def shapes_of(tree: Any) -> Iterator[Shape]:
    """What objects and lists hold."""
    if isinstance(tree, list):
        yield from _list(tree, ())
    elif isinstance(tree, dict):
        yield from _object(tree, ())


_P = patterns("tree")
STRANGE_START = 20  # lines without a single object, from which nobody looks on
MOST_STRANGE = 3  # lines that are no objects, from which a text is no list of them


def tree_of(name: str, text: str) -> Any:
    """The text as objects and lists; None when it is no tree. Shared by all who ask: nobody may change it."""
    return _tree(text)


@cached_for_file
def _tree(text: str) -> Any:
    start = text[:4096].lstrip()
    if not start or len(text) > MAX_TEXT:
        return None
    if start[0] in "{[":
        found = _json(text)
        if found is not None:
            return upright(found)
    return _toml(text) or _ini(text) or _yaml(text)


def upright(tree: Any, deep: int = 0) -> Any:
    """The same with lists of records where it has a list a column, or the names of the columns once and then lists of cells."""
    if deep > DEEPEST or not isinstance(tree, (dict, list)):
        return tree
    if isinstance(tree, list):
        plain = _are_leaves(tree) or (all(isinstance(x, dict) for x in tree) and not _nests(tree))
        return tree if plain else [upright(x, deep + 1) for x in tree]
    named: list[Any] = next((v for k, v in tree.items() if k in NAMES and isinstance(v, list)), [])
    named = [x.get("name") if isinstance(x, dict) else x for x in named]
    named = named if _are_leaves(named) else []
    for cells in tree.values() if named else ():
        if isinstance(cells, list) and cells and all(_are_leaves(r) and len(r) == len(named) for r in cells):
            return [dict(zip(map(str, named), r, strict=True)) for r in cells]
    columns = list(tree.values())
    if len(columns) > 1 and all(_are_leaves(c) and len(c) == len(columns[0]) > 1 for c in columns):
        return [dict(zip(tree, r, strict=True)) for r in zip(*columns, strict=True)]
    return {k: upright(v, deep + 1) for k, v in tree.items()}


def _are_leaves(items: Any) -> bool:
    return isinstance(items, list) and not any(isinstance(x, (dict, list)) for x in items)


def _json(text: str) -> Any:
    found = row_of(text)
    if found is not None:
        return found if isinstance(found, (dict, list)) else None
    if not text.lstrip().startswith("{"):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    rows: list[Any] = []
    for number, line in enumerate(lines):
        row = row_of(line)
        if isinstance(row, dict):
            rows.append(row)
        elif number - len(rows) >= (max(MOST_STRANGE, (1 - ALIKE) * len(lines)) if rows else STRANGE_START):
            return None
    return rows if rows and len(rows) >= ALIKE * len(lines) else None


def row_of(line: str) -> Any:
    """JSON, with the words that trainers write in it; None where it is none."""
    import msgspec

    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if "NaN" not in line and "Infinity" not in line:  # words that JSON does not have and trainers write
            return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _toml(text: str) -> Any:
    if "=" not in text or len(text) > MAX_YAML:
        return None
    try:
        import tomllib

        return tomllib.loads(text) or None
    except (ValueError, RecursionError):  # no TOML, or a number of more digits than numbers have
        return None


def _ini(text: str) -> Any:
    """Sections of pairs, as configuration files have them."""

    if len(text) > MAX_YAML or _P["a_section"].search(text) is None:
        return None
    lines = [x.strip() for x in text.splitlines() if x.strip() and x.strip()[0] not in "#;"]
    if not lines or not _P["section"].match(lines[0]) or sum(_P["section"].match(x) is not None for x in lines) < 2:
        return None
    import configparser  # few texts are such

    parser = configparser.RawConfigParser(strict=False, interpolation=None, allow_no_value=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return {name: dict(parser.items(name)) for name in parser.sections()} or None


def _yaml(text: str) -> Any:
    if len(text) > MAX_YAML or ("{" not in text and _P["opens"].search(text) is None):
        return None
    lines = [x for x in text.splitlines() if x.strip() and not x.lstrip().startswith("#")]
    paired = [x for x in lines if x.rstrip().endswith(":") or ": " in x or x.lstrip().startswith("- ")]
    if len(lines) < 2 or len(paired) < PAIRED * len(lines):
        return None
    nested = any(x[0] == " " for x in paired) and any(x.rstrip().endswith(":") for x in lines)
    nested = nested or any(_P["inline"].match(x) for x in lines)
    if not nested and not (lines[0].startswith("- ") and any(x.startswith("  ") for x in paired)):
        return None
    import yaml

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _object(tree: Mapping[Any, Any], path: tuple[str, ...]) -> Iterator[Shape]:
    if len(path) > DEEPEST:
        return
    curve = _curve(tree)
    if curve is not None:
        columns = _axis_and_value(path[-1] if path else "value")
        yield rows_of(columns, curve, list(range(1, len(curve) + 1)), path=path, noun="entry")
        return
    lists = _side_by_side(tree)
    if lists:
        yield from _list([dict(zip(lists, row, strict=True)) for row in zip(*map(tree.get, lists), strict=True)], path)
    variants = _variants(tree)
    if variants:
        yield from _list([{"": k, **tree[k]} for k in variants], path)
    for key, value in tree.items():
        here = (*path, str(key))
        if isinstance(value, Mapping):
            if key not in variants:
                yield from _object(value, here)
        elif isinstance(value, list):
            if key not in lists:
                yield from _list(value, here)
        elif isinstance(value, str) and len(pairs := _printed(value, ".".join(here))) >= PRINTED:
            yield from (Reading((*path, *pair.path), pair.value, pair.unit, pair.place) for pair in pairs)
        elif value is not None:
            yield Reading(here, _leaf(value), place=".".join(here))


def _printed(text: str, place: str) -> list[Reading]:
    return (
        [pair for line in text.splitlines() for pair in pairs_in(line, place)]
        if text.count(":") + text.count("=") >= PRINTED
        else []
    )


def _side_by_side(tree: Mapping[Any, Any]) -> list[Any]:
    """Keys of lists that are equally long: the columns of one table, beside whatever else the object holds."""
    lists = [k for k, v in tree.items() if _are_leaves(v) and len(v) > 1 and over_places(str(k), []) is None]
    return lists if len(lists) > 1 and len({len(tree[k]) for k in lists}) == 1 else []


def _variants(tree: Mapping[Any, Any]) -> list[Any]:
    """Keys whose values are flat objects with the same keys: the variants of one thing."""
    flat = [
        k
        for k, v in tree.items()
        if isinstance(v, Mapping) and v and not any(isinstance(x, (Mapping, list)) for x in v.values())
    ]
    alike = max((_alike(tree, first, flat) for first in flat), key=len, default=[])
    shared = set.intersection(*({str(x) for x in tree[k]} for k in alike)) if alike else set()
    # beside other objects (the setup, the complaint) two that share a single key are no variants yet
    return alike if len(alike) >= 2 and (len(alike) == len(flat) or len(shared) >= 2) else []


def _alike(tree: Mapping[Any, Any], first: Any, flat: list[Any]) -> list[Any]:
    """The objects that have the keys of the first."""
    keys = {str(x) for x in tree[first]}
    return [
        k for k in flat
        if len(keys & {str(x) for x in tree[k]}) >= max(1, ALIKE * len(keys | {str(x) for x in tree[k]}))
    ]  # fmt: skip


def _axis_and_value(title: str) -> list[str]:
    """ "time by number of GPUs" -> the axis, then what is measured over it."""
    value, sign, axis = title.partition(" by ")
    return [axis if sign else "", value]


def _curve(tree: Mapping[Any, Any]) -> list[list[Cell]] | None:
    """{64: "45 ms", 128: "52 ms"}: a curve over numbers."""
    pairs: list[list[Cell]] = []
    for key, value in tree.items():
        place = cell_of(str(key))
        if not isinstance(place, float) or isinstance(value, (Mapping, list)):
            return None
        pairs.append([place, _leaf(value)])
    return pairs if len(pairs) >= 2 else None


def _list(items: list[Any], path: tuple[str, ...]) -> Iterator[Shape]:
    objects = [x for x in items if isinstance(x, Mapping)]
    if objects and len(objects) == len(items):
        yield from _table(objects, path)
        return
    numbers: list[Cell] = [_leaf(x) for x in items if x is not None and not isinstance(x, (Mapping, list))]
    if len(numbers) == len(items) and len(items) >= 2 and path:
        if len(items) > 2 and (over := over_places(path[-1], numbers)) is not None:
            yield over
            return
        yield rows_of([path[-1]], [[n] for n in numbers], list(range(1, len(items) + 1)), path=path[:-1], noun="item")
    else:
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                yield from _object(item, (*path, str(index)))
            elif isinstance(item, list):
                yield from _list(item, (*path, str(index)))


def _table(objects: list[Any], path: tuple[str, ...]) -> Iterator[Shape]:
    if len(objects) == 1:
        yield from _object(objects[0], path)
        return
    nested = _nests(objects)
    flat = [dict(leaves(o)) for o in objects] if nested else objects
    yield rows_in(*_columns(flat), list(range(1, len(flat) + 1)), path=path, noun="row")
    for index, item in enumerate(objects if nested else ()):  # lists inside records are tables of their own
        for key, value in item.items():
            if isinstance(value, list) and value and isinstance(value[0], Mapping):
                yield from _list(value, (*path, str(index), str(key)))


def leaves(tree: Mapping[Any, Any], above: str = "", *, texts: bool = False) -> Iterator[tuple[str, Any]]:
    """Plain values under their paths; where `texts` are wanted, a list of lines is one."""
    for key, value in tree.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping) and name.count(".") < DEEPEST:
            yield from leaves(value, name, texts=texts)
        elif not isinstance(value, (Mapping, list)):
            yield name, value
        elif texts and value and all(isinstance(x, str) for x in value):
            yield name + LINES, "\n".join(x.rstrip("\n") for x in value)


def _nests(rows: list[Any]) -> bool:
    kinds = {type(value) for row in rows for value in row.values()}
    return any(issubclass(kind, (Mapping, list)) for kind in kinds)


def _columns(rows: list[Any]) -> tuple[list[str], list[list[Cell]]]:
    """Records as columns: every key in the order of its first coming."""
    keys = list(dict.fromkeys(chain.from_iterable(rows)))
    return [str(key) for key in keys], [_leaves([row.get(key) for row in rows]) for key in keys]


def _leaves(values: list[Any]) -> list[Cell]:
    if set(map(type, values)) <= {int, float} and max(map(abs, values)) < MOST and not any(map(math.isnan, values)):
        return list(map(float, values))
    return [None if value is None else _leaf(value) for value in values]


def _leaf(value: Any) -> float | str | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and abs(value) < MOST:
        return float(value)
    return str(value)


def is_table(tree: Any) -> bool:
    """A list of alike flat objects: a table in other clothes."""
    if not isinstance(tree, list) or len(tree) < 1 or not all(isinstance(x, dict) and x for x in tree):
        return False
    first = set(tree[0])
    if _nests(tree):
        return False
    return all(len(first & keys) >= ALIKE * len(first) for keys in set(map(frozenset, tree)))


def table_of(tree: list[dict[str, Any]]) -> Rows:
    """The same as rows."""
    return rows_in(*_columns(tree), list(range(2, len(tree) + 2)))


def object_lines(tree: Any, path: str = "") -> Iterator[str]:
    """A document, one object a line: where it stands, and its pairs that hold no objects."""
    if isinstance(tree, list):
        if all(isinstance(one, dict) for one in tree) and not _nests(tree):  # records of a log: many, and plain
            yield from (f"{path}: " + " ".join([f"{k}={v}" for k, v in one.items()]) for one in tree)
            return
        for one in tree:
            yield from object_lines(one, path)
    elif isinstance(tree, dict):
        inner = [
            k
            for k, v in tree.items()
            if isinstance(v, dict) or (isinstance(v, list) and v[:1] and isinstance(v[0], dict))
        ]
        yield f"{path}: " + " ".join(f"{k}={v}" for k, v in tree.items() if k not in inner)
        for key, value in ((key, tree[key]) for key in inner):
            yield from object_lines(value, f"{path}.{key}" if path else str(key))
