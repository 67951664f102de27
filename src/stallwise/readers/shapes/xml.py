"""XML: elements as keys, attributes beside them; elements that repeat with the same parts are rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.evidence.reading import Reading, Rows, Shape, cell_of
from stallwise.readers.shapes import tree

MAX_TEXT = 16 << 20
DEEPEST = 64
UNIT = "unit"  # the attribute in which a value's unit stands


def recognises(name: str, text: str) -> bool:
    """Markup with a root element; pages for people (HTML) are none."""
    start = text[:2000].lstrip("\ufeff \t\r\n")
    return (
        start.startswith("<")
        and start[1:2] in ("?", "!", *_LETTERS)
        and "<html" not in start.lower()
        and len(text) <= MAX_TEXT
    )


_LETTERS = tuple("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


def read(text: str) -> Iterator[Shape]:
    """The same as a tree of keys; a cut file gives what came before the cut."""
    root = parsed(text)
    if not isinstance(root, dict):
        return
    for shape in tree.shapes_of(root):
        yield shape if isinstance(shape, Rows) else _with_unit(shape)


def _with_unit(reading: Reading) -> Reading:
    """ "180 TFLOP/s", put together from an element and its attribute, apart again."""
    if not isinstance(reading.value, str):
        return reading
    number, _, unit = reading.value.partition(" ")
    value = cell_of(number)
    return Reading(reading.path, value, unit, reading.place) if unit and isinstance(value, float) else reading


def parsed(text: str) -> Any:
    """Elements as dicts, repeated ones as lists, leaves as their text; None where entities are declared."""
    from xml.parsers import expat

    root: dict[str, Any] = {}
    stack: list[tuple[str, dict[str, Any], list[str]]] = [("", root, [])]
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) > DEEPEST:
            raise expat.ExpatError("too deep")
        stack.append((tag, dict(attributes), []))

    def end(tag: str) -> None:
        _, inside, words = stack.pop()
        written = " ".join("".join(words).split())
        unit = inside.pop(UNIT, "") if written else ""
        value: Any = {**inside, **({"value": written} if written else {})} if inside else f"{written} {unit}".strip()
        above = stack[-1][1]
        if tag in above:
            above[tag] = [*above[tag], value] if isinstance(above[tag], list) else [above[tag], value]
        else:
            above[tag] = value

    def refuse(*_: object) -> None:
        raise expat.ExpatError("entities")  # they can stand for gigabytes, and no tool of ours writes any

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda data: stack[-1][2].append(data)
    parser.EntityDeclHandler = refuse
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        if str(error) == "entities":
            return None
        while len(stack) > 1:
            end(stack[-1][0])
    return root
