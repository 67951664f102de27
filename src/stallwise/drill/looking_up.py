"""Looks a question up that was asked in words: the concept, card, formula or cause whose page speaks most of it.

Pages are weighed like documents in a library (BM25): words that few pages use tell most, words of a page's own name and of the
question a card asks count more than words of its body. Nothing is guessed: too little in common, and there is no answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stallwise.doctor.catalogue import by_cause
from stallwise.drill.deck import all_cards
from stallwise.drill.explain import concepts
from stallwise.evidence.bag import stem, stems_of
from stallwise.physics.costs.formulas import all_formulas

SATURATES = 1.2  # BM25's k1: a word used often says little more than one used twice
LENGTH = 0.5  # BM25's b: how much a page's length is held against it
NAMED = 3.0  # a word of the page's name counts like this many in its body
ASKED = 2.0  # and a word of the question that a card asks
WHOLE = 1.0  # a name that stands in the question word for word counts once more
PAIRS = 0.5  # two words side by side, beside the two words themselves
# A cause's page tells of much beside what it is called.
CAUSE = 0.7
LEAST_SHARE = 0.2  # of what the question's words weigh: below it nothing on the page was asked for
IN_NAME = 5.0  # a term of a page's name is what the page is about
UNHEARD = 0.5  # a word that no page uses may be the subject or filling
SPELLED = (
    (re.compile(r"\bMoE\b"), "moe"),
    (re.compile(r"isation"), "ization"),
    (re.compile(r"ise\b"), "ize"),
    (re.compile(r"(?i)\ball[- ]?to[- ]?all"), "alltoall"),
    (re.compile(r"(?i)\ball[- ]?(reduce|gather)"), r"all\1"),
)
# Words of asking: they are in every question and on no subject.
ASKING = frozenset(
    stem(w)
    for w in "what why when where which describe explain tell do does doing did difference between against vs versus mean means "
    "meaning work works help helps use used using choose decide correctly right way always really matter matters during about "
    "like need needs want show shows walk "
    "through get gets give gives take takes make makes much many often best good better worth happens".split()
)


@dataclass(frozen=True, slots=True)
class Place:
    """A page that may answer."""

    kind: str  # concept, card, formula or cause
    name: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A page with how much of the question it speaks of."""

    place: Place
    score: float
    share: float  # of the weight of the question's words


def look_up(question: str, most: int = 8) -> list[Hit]:
    """The pages that speak most of a question, best first; none where too little is in common."""
    marks = frozenset(m for m in stems_of(_spelled(question)) if not ASKING & set(m.split()))
    weight = {mark: _rarity(mark) * (PAIRS if " " in mark else 1.0) for mark in marks}
    whole = sum(w for mark, w in weight.items() if " " not in mark)
    hits = []
    for place, page in _pages().items():
        shared = page.keys() & marks
        if shared:
            found = sum(weight[m] for m in shared if " " not in m)
            named = max(
                (sum(weight[m] for m in name) for name in _names().get(place, ()) if name and name <= marks),
                default=0.0,
            )
            score = sum(page[m] * weight[m] for m in shared) + WHOLE * named
            hits.append(Hit(place, score, found / whole if whole else 0.0))
    hits.sort(key=lambda h: (-h.score, h.place.kind, h.place.name))
    return [h for h in hits[:most] if h.share >= LEAST_SHARE]


def page_about(term: str) -> Place | None:
    """The page that speaks most of a term by which no page is called: "expandable_segments", ".item()", "GPipe"."""
    wanted = re.compile(rf"(?<![A-Za-z0-9]){re.escape(term.strip().strip('.'))}", re.IGNORECASE)
    found = {place: _share_about(wanted, name, text) for place, (name, text) in _texts().items()}
    best = max(found, key=lambda place: (found[place], place.kind == "concept", place.name))
    return best if len(term.strip()) > 1 and found[best] > 0.0 else None


def _share_about(wanted: re.Pattern[str], name: str, text: str) -> float:
    """How much of a page a term takes: mentions over the root of its length, its name above its body."""
    return (len(wanted.findall(text)) + IN_NAME * len(wanted.findall(name))) / math.sqrt(len(text) + 1.0)


@cache
def _texts() -> dict[Place, tuple[str, str]]:
    found = {Place("concept", c.name): (f"{c.title} {' '.join(c.also)}", c.page()) for c in concepts().values()}
    found |= {Place("card", c.id): (c.id, f"{c.ask} {c.answer} {c.corrects}") for c in all_cards()}
    return found | {Place("cause", r.cause): (r.cause.replace("-", " "), r.page) for r in by_cause().values()}


def _spelled(text: str) -> str:
    """One spelling of words that have two."""
    for one, other in SPELLED:
        text = one.sub(other, text)
    return text


def _rarity(mark: str) -> float:
    spread = _spread()[mark]
    return math.log(1.0 + len(_pages()) / (0.5 + spread)) * (1.0 if spread else UNHEARD)


@cache
def _spread() -> Counter[str]:
    return Counter(mark for page in _pages().values() for mark in page)


@cache
def _names() -> dict[Place, tuple[frozenset[str], ...]]:
    """What concepts and cards are called, as words."""
    called = {Place("concept", c.name): (c.name, c.title, *c.also) for c in concepts().values()}
    called |= {Place("card", c.id): (c.id,) for c in all_cards()}
    return {
        place: tuple(frozenset(m for m in stems_of(_spelled(n.replace("-", " "))) if " " not in m) for n in names)
        for place, names in called.items()
    }


@cache
def _pages() -> dict[Place, dict[str, float]]:
    raw = dict(_counted())
    mean = sum(sum(p.values()) for p in raw.values()) / len(raw)
    found = {}
    for place, page in raw.items():
        length = 1.0 - LENGTH + LENGTH * sum(page.values()) / mean
        scale = CAUSE if place.kind == "cause" else 1.0
        found[place] = {m: scale * n / (n + SATURATES * length) for m, n in page.items()}
    return found


def _counted() -> Iterable[tuple[Place, Counter[str]]]:
    for concept in concepts().values():
        names = (concept.name.replace("-", " "), concept.title, *concept.also)
        yield Place("concept", concept.name), _count(names, (concept.definition, concept.equation, concept.shows))
    for card in all_cards():
        yield Place("card", card.id), _count((card.id.replace("-", " "),), (card.answer, card.corrects), (card.ask,))
    for name, module in all_formulas().items():
        texts = (module.__doc__ or "", getattr(module, "FOLK", ""))
        yield Place("formula", name), _count((name.replace("-", " "),), texts)
    for rule in by_cause().values():
        head = rule.page.partition("## What else looks so")[0]
        yield Place("cause", rule.cause), _count((rule.cause.replace("-", " "),), (head,))


def _count(names: Iterable[str], body: Iterable[str], asked: Iterable[str] = ()) -> Counter[str]:
    counts: Counter[str] = Counter()
    for texts, weight in ((names, NAMED), (asked, ASKED)):
        for mark in {m for text in texts for m in stems_of(_spelled(text))}:
            counts[mark] += weight  # type: ignore[assignment]
    for text in body:
        for sentence in _spelled(text).replace("\n", " ").split(". "):
            for mark in stems_of(sentence):
                counts[mark] += 1
    return counts
