"""Likeness to pages: which cause's own page shares most with what the inputs say.

Every rule has a page that tells in plain words what its cause means, costs and asks for, declares the quantities it reads
and the symptoms it explains; `knowledge/told` adds how people and programs tell of it. Marks that few pages hold and few
cases show weigh more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from stallwise.evidence.bag import stem, stems_of
from stallwise.findings.rule import Rule
from stallwise.knowledge.fitted import told
from stallwise.knowledge.rarity import rarity
from stallwise.rules import all_rules

SATURATES = 1.2  # a word that a page uses often says little more than one used twice (BM25's k1)
LENGTH = 0.4  # how much a page's length is held against it (BM25's b)
COMMON = 0.5  # of all pages: words in more of them tell nothing apart
DECLARED = 2.0  # a quantity that a rule reads counts like a word that its page uses twice
TOLD = 2.0  # so does a word that people use of it
# A page speaks of its rivals under "What else looks so", and of much beside the cause where it tells what to do.
SECTIONS = {"What else looks so": 0.3, "Fix": 0.5, "How the gain is found": 0.5}
FEW_WORDS = 25.0  # a sentence is no surer than this many words make it
SHOWN = 5  # words in common that the reason names


def page_scores(marks: frozenset[str]) -> dict[str, float]:
    """By cause. Long texts share more with every page: scores count against the root of the number of marks."""
    scale = math.sqrt(FEW_WORDS + len(marks))
    known = marks.intersection(_vocabulary())  # a long text has far more words than the pages
    weight = {mark: rarity(mark) for mark in known}
    return {
        cause: math.fsum(page[mark] * weight[mark] for mark in known.intersection(page)) / scale
        for cause, page in pages().items()
    }


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(mark for page in pages().values() for mark in page)


def in_common(cause: str, marks: frozenset[str]) -> str:
    """The marks that say most, in words."""
    page = pages().get(cause, {})
    shared = sorted(marks.intersection(page), key=lambda w: (-page[w] * rarity(w), w))
    words = [_plain(mark) for mark in shared if not mark.startswith(("s:", "e:"))]
    return ", ".join(dict.fromkeys(words[:SHOWN]))


def _plain(mark: str) -> str:
    return " ".join(_whole_words().get(part, part) for part in mark.removeprefix("q:").split())


@cache
def _whole_words() -> dict[str, str]:
    """A word for each stem, as the pages write it."""
    texts = (" ".join([rule.page, *told().get(rule.cause, ())]) for rule in all_rules())
    found: dict[str, str] = {}
    for word in (w for text in texts for w in re.findall(r"[a-z]{3,40}", text.lower())):
        found.setdefault(stem(word), word)
    return found


@cache
def pages() -> dict[str, dict[str, float]]:
    """What each page holds, with its weight there."""
    raw = {r.cause: _counted(r) for r in all_rules() if r.explains or r.needs or r.clues}
    spread = Counter(word for page in raw.values() for word in page)
    sizes = {cause: math.fsum(page.values()) for cause, page in raw.items()}
    mean = math.fsum(sizes.values()) / len(sizes)
    found = {}
    for cause, page in raw.items():
        length = 1.0 - LENGTH + LENGTH * sizes[cause] / mean
        found[cause] = {
            word: math.log((len(raw) + 1) / (spread[word] + 0.5)) * count / (count + SATURATES) / length
            for word, count in page.items()
            if spread[word] < COMMON * len(raw)
        }
    return found


def _counted(rule: Rule) -> Mapping[str, float]:
    counts: Counter[str] = Counter()
    for title, text in _sections(rule.page):
        _repeat(counts, text, SECTIONS.get(title, 1.0))
    names = [rule.cause.replace("-", " "), *(s.value for s in rule.explains), *(c.says for c in rule.clues)]
    _repeat(counts, ". ".join(names), 1.0)
    _repeat(counts, ". ".join(told().get(rule.cause, ())), TOLD)
    floats: dict[str, float] = dict(counts)
    for quantity in {*rule.needs, *(q for c in rule.clues for q in c.reads)}:
        floats[f"q:{quantity.name}"] = DECLARED
    floats.update({f"s:{symptom.name}": DECLARED for symptom in rule.explains})
    return floats


def _sections(page: str) -> list[tuple[str, str]]:
    parts = re.split(r"^## +([^\n]*)\n", f"{page}\n", flags=re.MULTILINE)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def _repeat(counts: Counter[str], text: str, weight: float) -> None:
    """Adds the stems with how many sentences hold each."""
    for sentence in text.replace("\n", " ").split(". "):
        for word in stems_of(sentence):
            counts[word] += weight  # type: ignore[assignment]
