"""Cards and models that a text mentions by name, with how many of them, and settings written as one word: TP8."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import cast

from stallwise.evidence.catalog import fabric, serving, stated
from stallwise.evidence.fact import Fact, Source
from stallwise.readers.text.name import name
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.words import word_table
from stallwise.units import Unit

_SETTING = re.compile(r"(?<![\w.@/-])([A-Za-z]{2,3})(\d{1,4})(?![\w.-])")
_FAMILY = re.compile(r"^(?:[a-z]{1,3}\d{2,4}[a-z]{0,2})$")
_NODES_OF = re.compile(
    r"(?<![\w.])(\d{1,5}) (?:nodes?|hosts?|servers?|machines?|boxes)(?: of| with|,)? ?[x×]? ?\(?$", re.IGNORECASE
)


def _written_out() -> dict[str, int]:
    return cast(dict[str, int], word_table("units.toml")["written_out"])


@cache
def _cards() -> re.Pattern[str]:
    """Family names of known cards, as words of their own."""
    from stallwise.physics.specs.hardware import all_gpus

    families = {part for gpu in all_gpus() for part in gpu.name.split("-") if _FAMILY.match(part)}
    families |= {gpu.name.replace("-", "[- ]?") for gpu in all_gpus() if gpu.name.startswith("rtx-")}
    return re.compile(
        rf"(?:(?<![\w.])(?P<count>\d{{1,6}}|{'|'.join(word_table('units.toml')['written_out'])})(?:\s?[x×]\s?|\s)(?:GPUs?\s)?|(?<![\w-]))(?:NVIDIA\s|AMD\s|Instinct\s|GeForce\s)*"
        rf"(?P<card>(?:{'|'.join(sorted(families, key=len, reverse=True))})(?:[- ](?:SXM\d?|PCIe|NVL|\d{{2,3}} ?GB))*)s?(?![\w])",
        re.IGNORECASE,
    )


# "Eight A100 in one node"; who compares it with several ("two nodes are slow") speaks of another job too.
_IN_ONE = re.compile(
    r"\s?(?:GPUs?|cards?)?\s(?:all\s)?(?:in|inside|within|on)\s(?:one|a single|a|the same)\s"
    r"(?:node|host|server|machine|box|chassis)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\b(?:two|both|three|four|several|multiple|other|\d{1,5})[ -](?:nodes|hosts|servers|machines)\b|"
    r"\bmulti-?node\b|\b(?:across|between) nodes\b",
    re.IGNORECASE,
)


def names_a_card(words: str) -> bool:
    """Whether they end with the name of a known card."""
    return any(match.end() == len(words[-40:]) for match in _cards().finditer(words[-40:]))


def begins_with_a_card(words: str) -> bool:
    """Whether they begin with the name of a known card: "64 H100s" counts them."""
    return _cards().match(words[:40]) is not None


def _settings(text: str, file: str) -> Iterator[Fact]:
    seen: set[str] = set()
    for match in _SETTING.finditer(text):
        word = match[1].lower()
        found = name((word,), "", False, True) if not axis_of(word) else None  # "gpu3" is which one, not how many
        if found is not None and found.quantity.unit is Unit.COUNT and found.quantity.name not in seen:
            seen.add(found.quantity.name)
            yield Fact(found.quantity, float(match[2]), Source(file, match[0], True))


@cache
def _models() -> re.Pattern[str]:
    families = "|".join(map(re.escape, word_table("statements.toml")["models"]["families"]))
    return re.compile(
        rf"(?<![\w/])((?:{families})[\w.]*(?:[- ]?[\w.]+)?[- ]\d+(?:\.\d+)?[bB](?:-[A-Za-z][\w.]*){{0,3}})(?![\w])",
        re.IGNORECASE,
    )


def mentions(text: str, file: str) -> Iterator[Fact]:
    """The first card, how many of them, the first model, and each setting that is written as one word with its number."""
    yield from _settings(text, file)
    card = _cards().search(text)
    if card is not None:
        source = Source(file, card[0].strip(), True)
        yield Fact(stated.GPU, card["card"], source)
        counted = next((m for m in _cards().finditer(text) if m["count"]), None)
        count = float(_written_out().get(counted["count"].lower(), counted["count"])) if counted else 0.0
        if counted is not None and count > 0:
            nodes = _NODES_OF.search(text[: counted.start()])
            source = Source(file, counted[0].strip(), True)
            if nodes is not None:  # "4 nodes x 8 A100"
                yield Fact(fabric.GPUS_PER_NODE, count, source)
            elif _IN_ONE.match(text, counted.end()) and not _SEVERAL.search(text):
                yield Fact(fabric.NODES, 1.0, source)
            yield Fact(stated.GPUS, count * (float(nodes[1]) if nodes is not None else 1.0), source)
    model = _models().search(text)
    if model is not None:
        yield Fact(serving.MODEL, model[1], Source(file, model[1], True))
