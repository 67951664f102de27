"""A diagnosis that may be shown to strangers: keys, host names, paths, code, models and prompts are replaced by stand-ins.

The same secret always gets the same stand-in, so the report still makes sense: `file-1.json.gz`, `host-2`, `code-3`.
Kernel names stay (they are the subject), unless they hold a path.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog.job import COMMAND, SCRIPT
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Series, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.words import is_label
from stallwise.render.secrets import (
    CLASS,
    CODE_LINE,
    KEY,
    KEYED,
    MODEL,
    SHORT_IPV6,
    is_public_class,
    is_public_model,
)
from stallwise.units import Unit

T = TypeVar("T")

_PROMPT = re.compile(
    r"""(\b(?:prompt|messages|content|input_text|completion)["']?\s*[:=]\s*)("[^"]*"|'[^']*'|\S.*?(?=, \w+[:=]|$))""",
    re.I,
)
_CODE = re.compile(r"(?<![\w./\\+-])[\w./\\+-]+\.(?:py|cu|cuh|cpp|cc|h|rs|ipynb|sh)\b(?:[:(]\d+\)?)?(?::? ?\w+)?")
_PATH = re.compile(r"(?<![\w.<])(?:~|[A-Za-z]:)?(?:[/\\][\w.@+=~-]+){2,}[/\\]?")
_URL = re.compile(r"\b(?:https?|s3|gs|gcs|hdfs|ssh|file)://[^\s'\"<>]+")
_HOST = re.compile(
    r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\b(?=[\w-]{0,255}[a-z])[\w-]{1,255}(?:\.[\w-]{1,255}){0,20}\.(?:com|net|org|io|ai|edu|gov|local|internal|cluster|lan|corp|svc)\b"
    r"|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b",
    re.I,
)
_HOST_WORD = re.compile(r"\b((?:host(?:name)?|node|server|pod|instance)[ =:]+)(?!\d+\b)([\w.-]*[\w])", re.I)
_MAIL = re.compile(r"\b[\w.+-]{1,255}@[\w-]{1,255}(?:\.[\w-]{1,255}){1,20}\b")
_QUOTED = re.compile(
    r"([\"'“])(?=[^\"'”]*\s[^\"'”]*\s)([^\"'”]{16,})([\"'”])"
)  # three words or more in quotes: somebody's text
_ENDLESS = re.compile(r"\S{2000,}")  # longer than any name of a kernel
_ORDINARY = frozenset(
    "node host server pod is are has and the to of in for or that work wait time memory clock".split()
)
_SECRET_FACTS = re.compile(r"command|path|code|line|place|prompt|model|checkpoint|file|host")


class _Names:
    """Stand-ins, one per secret."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self.words: dict[str, str] = {}  # literal texts to replace everywhere

    def of(self, kind: str, secret: str, tail: str = "") -> str:
        key = (kind, secret)
        if key not in self.known:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.known[key] = f"{kind}-{self.counts[kind]}{tail}"
        return self.known[key]


def shareable(diagnosis: Diagnosis) -> Diagnosis:
    """The same diagnosis without what strangers must not read."""
    names = _Names()
    for name in diagnosis.evidence.inputs:
        names.words[name] = _stand_in(names, name)
    placed: list[Fact | Table | Series] = [
        *_facts(diagnosis),
        *diagnosis.evidence.tables,
        *diagnosis.evidence.all_series,
    ]
    for item in placed:
        if item.scope.node:
            names.words[item.scope.node] = names.of("host", item.scope.node)
        if item.source.file and item.source.file != "stated" and item.source.file not in names.words:
            names.words[item.source.file] = _stand_in(names, item.source.file)
    for fact in _facts(diagnosis):
        if fact.quantity.name.endswith("model") and isinstance(fact.value, str) and not is_public_model(fact.value):
            names.words.setdefault(fact.value, names.of("model", fact.value))
    for fact in _facts(diagnosis):
        if fact.quantity in (COMMAND, SCRIPT):
            kind, tail = ("command", "") if fact.quantity is COMMAND else ("script", ".py")
            names.words.setdefault(str(fact.value), names.of(kind, str(fact.value), tail))
    for secret in sorted((w for w in names.words if not is_label(w)), key=len):
        short = PurePath(secret).name
        if len(short) > 3:
            names.words.setdefault(short, names.words[secret])
    clean = _Clean(names)
    return replace(_changed(diagnosis, clean), evidence=_evidence(diagnosis.evidence, clean))


def _facts(diagnosis: Diagnosis) -> list[Fact]:
    return [f for found in diagnosis.evidence.facts.values() for f in found]


def _stand_in(names: _Names, source: str) -> str:
    """For a file, or for the words that somebody typed in its place."""
    return names.of("text", source) if is_label(source) else names.of("file", source, _ending(source))


def _ending(name: str) -> str:
    found = re.search(r"(?:\.[A-Za-z][A-Za-z0-9]{0,7}){1,2}$", PurePath(name.split("!")[-1]).name)
    return found[0] if found else ""


class _Clean:
    """Replaces what must not be shown in any text."""

    def __init__(self, names: _Names) -> None:
        self.names = names
        words = sorted(names.words, key=len, reverse=True)
        self._literal = re.compile("|".join(rf"(?<![\w-]){re.escape(w)}(?![\w-])" for w in words)) if words else None

    def named(self, text: str) -> str:
        """With stand-ins for what is known by its name, and else as it was."""
        return self._literal.sub(lambda m: self.names.words[m[0]], text) if self._literal else text

    def __call__(self, text: str) -> str:
        if not text:
            return text
        names = self.names
        text = _ENDLESS.sub(lambda m: names.of("text", m[0]), text)
        text = KEYED.sub(lambda m: m[1] + names.of("secret", m[2]), text)
        text = KEY.sub(lambda m: names.of("secret", m[0]), text)
        text = self.named(text)
        text = _PROMPT.sub(lambda m: m[1] + names.of("text", m[2]), text)
        text = _URL.sub(lambda m: names.of("address", m[0]), text)
        text = _MAIL.sub(lambda m: names.of("person", m[0]), text)
        text = _CODE.sub(self._code, text)
        text = CODE_LINE.sub(lambda m: m[1] + names.of("text", m[2]), text)
        text = _PATH.sub(lambda m: names.of("path", m[0]), text)
        text = _HOST.sub(lambda m: names.of("host", m[0]), text)
        text = SHORT_IPV6.sub(lambda m: names.of("host", m[0]), text)
        text = MODEL.sub(lambda m: m[0] if is_public_model(m[0]) else names.of("model", m[0]), text)
        text = CLASS.sub(lambda m: m[0] if is_public_class(m[0]) else names.of("name", m[0]), text)
        text = _HOST_WORD.sub(self._host, text)
        return _QUOTED.sub(lambda m: m[1] + names.of("text", m[2]) + m[3], text)

    def _code(self, match: re.Match[str]) -> str:
        return match[0] if re.match(r"(?:file|code)-\d+", match[0]) else self.names.of("code", match[0])

    def _host(self, match: re.Match[str]) -> str:
        word = match[2]
        known = word.lower() in _ORDINARY or re.fullmatch(r"host-\d+|[a-z]+", word)
        return match[0] if known else match[1] + self.names.of("host", word)


def _changed(value: T, clean: _Clean) -> T:
    """The same value with every text inside it cleaned."""
    answer: Any = value
    if isinstance(value, str):
        answer = clean(value)
    elif isinstance(value, (Enum, Evidence, Quantity)):
        answer = value
    elif isinstance(value, Capture):  # our own words, but for the job's command
        answer = replace(value, command=clean.named(value.command))
    elif isinstance(value, Source):
        answer = Source(clean(value.file), clean(value.where))
    elif isinstance(value, Scope):
        node, run = (clean.names.words.get(w, clean(w)) if w else w for w in (value.node, value.run))
        answer = replace(value, node=node, run=run, layer=clean(value.layer) if value.layer else value.layer)
    elif isinstance(value, tuple):
        answer = tuple(_changed(v, clean) for v in value)
    elif isinstance(value, list):
        answer = [_changed(v, clean) for v in value]
    elif isinstance(value, dict):
        answer = {k: _changed(v, clean) for k, v in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        answer = replace(value, **{f.name: _changed(getattr(value, f.name), clean) for f in fields(value)})
    return answer  # type: ignore[no-any-return]


def _evidence(evidence: Evidence, clean: _Clean) -> Evidence:
    shown = Evidence(inputs=_changed(evidence.inputs, clean), formats=list(evidence.formats))
    for name, found in evidence.facts.items():
        shown.facts[name] = [_fact(f, clean) for f in found]
    shown.all_series = [
        replace(s, source=_changed(s.source, clean), scope=_changed(s.scope, clean)) for s in evidence.all_series
    ]
    shown.tables = [_table(t, clean) for t in evidence.tables]
    shown.ledgers = [
        replace(x, source=_changed(x.source, clean), scope=_changed(x.scope, clean)) for x in evidence.ledgers
    ]
    shown.notes = _changed(evidence.notes, clean)
    return shown


def _fact(fact: Fact, clean: _Clean) -> Fact:
    value = fact.value
    if isinstance(value, str):
        value = clean(value)
        if fact.quantity.unit is Unit.TEXT and _SECRET_FACTS.search(fact.quantity.name) and "/" in str(fact.value):
            value = clean.names.of("text", str(fact.value))
    return replace(
        fact, value=value, source=_changed(fact.source, clean), scope=_changed(fact.scope, clean), note=clean(fact.note)
    )


def _table(table: Table, clean: _Clean) -> Table:
    columns = {
        name: np.array([clean(v) if isinstance(v, str) else v for v in values.tolist()], dtype=object)
        if values.dtype == object
        else values
        for name, values in table.columns.items()
    }
    return Table(
        table.kind, columns, _changed(table.source, clean), _changed(table.scope, clean), _changed(table.meta, clean)
    )
