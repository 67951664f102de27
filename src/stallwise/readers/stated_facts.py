"""Facts that a person wrote down: a case file in TOML, in the words that `stallwise facts` lists.

symptom = "MFU fell and stayed low"
gpu = "h100"
gpus = 512
mfu = "22%"
[before]
mfu = "48%"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from stallwise.errors import BadRequest, UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import STATED, WHOLE, Note, Scope, Source
from stallwise.evidence.vocabulary import BEFORE, find, stated_items

FORMAT = "stated facts"
CAPTURE = "stallwise facts --template > case.toml"
EXCLUSIVE = True
SUMMARY_KEYS = {"summary", "nsight", "ncu"}  # a printout inside the file: its pairs are the lexicon's
IGNORED_KEYS = {"title", "name", "note", "notes", "description", "question"}
TABLES = {"stated", "facts", "case", "now", "bad", "artifact"}
KNOWN_SHARE = 0.4  # of the keys: below it the file is somebody else's TOML


def recognises(name: str, head: bytes) -> bool:
    """TOML whose keys are mostly words of ours."""
    if b"=" not in head or b"\x00" in head or len(head) > 1 << 18:
        return False
    try:
        data = tomllib.loads(head.decode("utf-8"))
    except (ValueError, RecursionError):
        return name.endswith("case.toml")
    keys = [key.removesuffix(f".{BEFORE}") for key, _, _ in _pairs(data, WHOLE)]
    known = sum(find(k) is not None or k in SUMMARY_KEYS for k in keys)
    return bool(keys) and known >= max(1, KNOWN_SHARE * len(keys))


def _pairs(data: Mapping[str, Any], scope: Scope) -> Iterator[tuple[str, Any, Scope]]:
    """Keys and values, those of inner tables of ours among them."""
    for key, value in data.items():
        if isinstance(value, Mapping) and (key in TABLES or key == BEFORE):
            yield from _pairs(value, Scope(run=BEFORE) if key == BEFORE else scope)
        elif key not in IGNORED_KEYS:
            yield key, value, scope


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts with the source "stated", each at its key."""
    try:
        data = tomllib.loads(artifact.text())
    except (ValueError, RecursionError) as error:  # of TOML, and of numbers with thousands of digits
        raise UnreadableInput(f"{artifact.name} is not TOML: {error}", hint="stallwise facts --template") from error
    for key, value, scope in _pairs(data, WHOLE):
        if key in SUMMARY_KEYS:
            continue
        if isinstance(value, Mapping) and find(key) is None and set(value) <= {BEFORE, "now"}:
            yield from stated_items({key if k == "now" else f"{key}.{BEFORE}": v for k, v in value.items()}, STATED)
            continue
        try:
            yield from stated_items({key: value}, STATED, scope)
        except BadRequest as error:
            yield Note(f"{error.problem}{': ' + error.hint if error.hint else ''}", Source(artifact.name, key))
