"""No pattern may take longer than a line is worth: every compiled regex against long lines made to trip it.

Lines that trip many, and for each pattern those made of what it repeats itself: a row of the very sign that two neighbouring
repeats both take.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from re import _constants as sre_constants
from re._parser import SubPattern
from typing import Any

import pytest

import stallwise
from stallwise.evidence.skeletons import loosened
from stallwise.readers import _gpu_samples, _traceback
from stallwise.readers._patterns import document
from stallwise.readers.native._ncu_names import sentences
from stallwise.readers.shapes.lines import prefixes
from stallwise.readers.text.match import loudness
from stallwise.readers.text.message_patterns import message_patterns
from stallwise.readers.text.metric_catalogue import metric_catalogues
from stallwise.readers.text.words import turn
from stallwise.readers.text.words import word_table as table

UNASKED = ("__main__", "ncu_rep", "engine_ray", "nsys_sqlite")  # begins to work when imported; need an extra
LENGTH = 20_000  # characters
MOST_S = 0.5  # linear patterns take well under 10 ms; a quadratic one takes seconds
REPEATS = (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT)
CATEGORIES = {
    sre_constants.CATEGORY_DIGIT: r"\d", sre_constants.CATEGORY_NOT_DIGIT: r"\D", sre_constants.CATEGORY_SPACE: r"\s",
    sre_constants.CATEGORY_NOT_SPACE: r"\S", sre_constants.CATEGORY_WORD: r"\w", sre_constants.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
HOSTILE = (
    "a" * LENGTH, " " * LENGTH, "1" * LENGTH, "a " * (LENGTH // 2), "1," * (LENGTH // 2), "a_" * (LENGTH // 2),
    "key: " * (LENGTH // 5), "a=1 " * (LENGTH // 4), "(" * LENGTH, "[" * LENGTH, "1:" * (LENGTH // 2), "-" * LENGTH, "|" * LENGTH,
    "step " * (LENGTH // 5), "loss 1 " * (LENGTH // 7), "rank 1 " * (LENGTH // 7), "\t" * LENGTH, ". " * (LENGTH // 2),
    "error " * (LENGTH // 6), "memory " * (LENGTH // 7), "checkpoint " * (LENGTH // 11), "tokens " * (LENGTH // 7),
    ("1" * 999 + " ") * (LENGTH // 1000),
    "1.1 " * (LENGTH // 4), "a/b" * (LENGTH // 3), "# " * (LENGTH // 2), "a-" * (LENGTH // 2), "'a': " * (LENGTH // 5),
)  # fmt: skip


def _patterns() -> list[tuple[str, re.Pattern]]:
    found: list[tuple[str, re.Pattern]] = []
    for module in walk_packages(stallwise.__path__, "stallwise."):
        if module.name.endswith(UNASKED):
            continue
        for name, value in vars(import_module(module.name)).items():
            for pattern in _inside(value):
                found.append((f"{module.name.removeprefix('stallwise.')}.{name}", pattern))
    found += [(f"signature {s.id}", re.compile(s.pattern, re.IGNORECASE)) for s in message_patterns()]
    found += [(f"signature {s.id} unless", re.compile(s.unless, re.IGNORECASE)) for s in message_patterns() if s.unless]
    found += [
        (f"gauge {b.format} unless", re.compile(g.unless)) for b in metric_catalogues() for g in b.metrics if g.unless
    ]
    found += [(f"prefix {p.name}", p.pattern) for p in prefixes()]
    found += [(f"turn {name}", turn(name)) for name, said in table("turns.toml").items() if isinstance(said, str)]
    found.append(("loud lines", loudness()[1]))
    found += [
        (f"gauge {b.format}: {g.anchors[0]}", re.compile(g.pattern, 0 if g.cased else re.IGNORECASE))
        for b in metric_catalogues()
        for g in b.metrics
    ]
    found += [
        (f"signature {s.id}, any digits", re.compile(loosened(s.pattern), re.IGNORECASE))
        for s in message_patterns()
        if loosened(s.pattern) != s.pattern
    ]
    found += [*_made_when_needed(), *_in_functions({p.pattern for _, p in found})]
    return list({(p.pattern, p.flags): (name, p) for name, p in reversed(found)}.values())[::-1]


def _made_when_needed() -> Iterator[tuple[str, re.Pattern]]:
    """Expressions of books that are compiled when a text first asks for them."""
    yield from ((f"phase {name}", pattern) for name, pattern in _traceback._phases())
    yield from ((f"card {t}", pattern) for t in ("summed", "report") for pattern, _ in _gpu_samples.report_patterns(t))
    kinds = document("named_columns")["kind"]
    yield from ((f"title of {role['is']}", re.compile(role["match"])) for kind in kinds for role in kind["role"])
    yield from ((f"sentence of {row['is']}", pattern) for pattern, row in sentences())


def _in_functions(known: set[str | bytes]) -> Iterator[tuple[str, re.Pattern]]:
    """Expressions written where they are used; one that is only matched from the start is asked for no more."""
    root = Path(stallwise.__file__ or "").parent
    for file in sorted(root.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "re." not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
                continue
            written = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
            ours = isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
            if ours and isinstance(written, (str, bytes)) and call.func.attr != "escape" and written not in known:
                start = "^" if call.func.attr in ("match", "fullmatch") else ""
                pattern = written if isinstance(written, bytes) else f"{start}(?:{written})"
                yield f"{file.relative_to(root)}:{call.lineno}", re.compile(pattern)


def _inside(value: object, depth: int = 0) -> list[re.Pattern]:
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, (tuple, list)) and depth < 3:
        return [p for v in value for p in _inside(v, depth + 1)]
    return [p for v in value.values() for p in _inside(v, depth + 1)] if isinstance(value, dict) and depth < 3 else []


SIGNS = "= -_.,:;/\\|*+#~<>()[]{}'\"!?%&@$^`aZ0\t"
MOST_SIGNS = 6  # of a pattern: the first of each repeat


def repeated(pattern: re.Pattern) -> list[str]:
    """One sign of each repeat in it that HOSTILE has no row of."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    tried = {line[0] for line in HOSTILE if line == line[0] * LENGTH}
    found: list[str] = []
    for inside in _repeats(re._parser.parse(source, flags & ~re.DEBUG)):  # type: ignore[attr-defined]
        own = [chr(value) for what, value in inside if what is sre_constants.LITERAL]
        sign = next((c for c in (*own, *SIGNS) if c not in tried and _takes(inside, c, flags)), None)
        if sign is not None:
            tried.add(sign)
            found.append(sign)
    return found[:MOST_SIGNS]


def _repeats(parsed: Iterable[Any]) -> Iterator[list[Any]]:
    """What each unbounded repeat repeats, if it is a single sign."""
    for what, value in parsed:
        if what in REPEATS and value[1] > LENGTH // 10 and len(value[2]) == 1:
            yield list(value[2])
        for part in value if isinstance(value, (tuple, list)) else [value]:
            yield from _repeats(part) if isinstance(part, SubPattern) else ()
            if isinstance(part, list) and part and all(isinstance(x, SubPattern) for x in part):
                yield from (found for branch in part for found in _repeats(branch))


def _takes(inside: list[Any], sign: str, flags: int) -> bool:
    (what, value) = inside[0]
    if what in (sre_constants.LITERAL, sre_constants.NOT_LITERAL):
        return (chr(value) == sign) is (what is sre_constants.LITERAL)
    if what is sre_constants.ANY:
        return True
    return what is sre_constants.IN and re.fullmatch(_class(value), sign, flags & re.IGNORECASE) is not None


def _class(parts: list[Any]) -> str:
    """The same class, written anew."""
    said = ""
    for what, value in parts:
        if what is sre_constants.NEGATE:
            said += "^"
        elif what is sre_constants.LITERAL:
            said += re.escape(chr(value))
        elif what is sre_constants.RANGE:
            said += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            said += CATEGORIES[value]
    return f"[{said}]"


PATTERNS = _patterns()


@pytest.mark.parametrize(("name", "pattern"), PATTERNS, ids=[n for n, _ in PATTERNS])
def test_a_pattern_is_quick_on_hostile_lines(name: str, pattern: re.Pattern) -> None:
    for line in (*HOSTILE, *(sign * LENGTH for sign in repeated(pattern))):
        text = line.encode() if isinstance(pattern.pattern, bytes) else line
        # A loaded machine may make one search slow; a pattern that grows with the square is slow every time.
        assert _took_s(pattern, text) < MOST_S or _took_s(pattern, text) < MOST_S, (name, line[:12])


def _took_s(pattern: re.Pattern, text: str | bytes) -> float:
    began = time.process_time()
    pattern.search(text)
    return time.process_time() - began
