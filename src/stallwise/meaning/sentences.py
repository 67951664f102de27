"""What sentences say: numbers by the words around them, and statements without a number (said.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from stallwise.evidence.reading import Reading
from stallwise.meaning.blamed import QUANTITY as blamed_quantity
from stallwise.meaning.blamed import blamed_in
from stallwise.meaning.entries import by_word, entries, weights
from stallwise.meaning.groups import Line, clauses, line_of, plain, sayable, says
from stallwise.meaning.mentions import names_a_card
from stallwise.meaning.name import Name, _agrees, _scale, name
from stallwise.meaning.scopes import BEFORE, EXPECTED, NOW, is_past, scope_of, scope_words
from stallwise.meaning.words import book, classed, words_of
from stallwise.units import Unit, readings_of

UNIT_ALONE = 0.4  # how sure a name is that only the unit gives: any other number of that unit may know better
TOPIC_WEIGHT = 3.0  # what the words of a topic must weigh together: "mfu" does, "gpu" alone does not
_NEGATION = re.compile(
    r"\b(?:no|not|without|never|none|zero|isn't|aren't|wasn't|don't|doesn't|neither|nor)\b[\w' -]{0,24}$"
)
_BREAK = re.compile(r"[;,:()|.]| and | while | but | where | with | at ")
_JOINED = re.compile(r"(?:and|or|but|with|while|at|to)\b")
_WORD = re.compile(r"[A-Za-z][\w/'-]*|->|→|=>")
_ANSWERED_NO = re.compile(r"^\s{0,8}[:=]?\s{0,8}(?:none|no|0|false)\b")
_INDEXED = {
    "gpu",
    "rank",
    "node",
    "layer",
    "step",
    "iteration",
    "epoch",
    "line",
    "device",
    "card",
    "port",
    "version",
    "cuda",
    "expert",
}
_PER = re.compile(r"(?:per\b|/)", re.IGNORECASE)
_CHANGE = re.compile(r"(?:faster|slower|more|less|higher|lower|better|worse|longer|shorter)\b", re.IGNORECASE)
_CARD = re.compile(r"(?:gpus?|cards?|devices?)\b", re.IGNORECASE)
KEY_WORDS = 2  # right before a number: more are a sentence about it
NEAR = 4  # words behind a number that may still say of what it is: "100 % of one core"
_HOST = {"cpu", "cpus", "core", "cores"}
_ARROWS = {"to", "->", "→", "=>"}
_WAITS = {"wait", "waits", "waited", "waiting"}
_AWAITED = ("for", "until", "till", "on")
_ROUGHLY = r"(?: only| just| about| around| the usual)?$"
# Right before a number, what makes it the earlier value of the last one, the one that should be, or either as it is called.
_EARLIER = re.compile(
    rf"(?:\b(?:it|that|this) |^)(?:was|used to be|had been|(?:down|up) from){_ROUGHLY}", re.IGNORECASE
)
_INSTEAD = re.compile(rf"^(?:instead of|rather than){_ROUGHLY}", re.IGNORECASE)
_COMPARED = re.compile(rf"^(?:vs|versus|against|compared (?:to|with)){_ROUGHLY}", re.IGNORECASE)


def clause_after(text: str) -> str:
    """The words behind a number that still belong to it."""
    if _JOINED.match(text) or text.rstrip().endswith(("=", ":")):
        return ""  # "TP 8 and DP 64": what follows names the next number
    return " ".join(_WORD.findall(_BREAK.split(text)[0])[:4])


class Said(NamedTuple):
    """A statement without a number."""

    quantity: str
    value: str
    text: str


def named_in(reading: Reading, sentence: tuple[Reading, ...], taken: set[tuple[str, str]]) -> Name | None:
    """The quantity of a number in a sentence, from the words nearest to it; else the sentence's topic, once."""
    clause, after = words_of(reading.path[-1]), words_of(clause_after(reading.after))
    if reading.unit == "%" and _CHANGE.match(reading.after):
        return None  # "20% faster": by how much something changed, not how much it is
    card = _CARD.match(reading.after) or names_a_card(reading.path[-1])  # "80 GB GPUs", "A100 80GB"
    if card and Unit.BYTE in {unit for unit, _ in readings_of(reading.unit)}:
        return Name(entries()["memory.capacity"].quantity, _scale_of(reading.unit), "", False, 1.0, True)
    if (twin := _from_which(reading, sentence)) is not None:
        same = named_in(twin, sentence, set())
        return same._replace(scope=_compared_scope(reading) or NOW) if same is not None else None
    if (awaited := _awaited(clause, after)) is not None:
        return _of_what_is_awaited(awaited, reading, sentence, "request" in classed(clause))
    if not reading.unit and _PER.match(reading.after):
        after = ()  # "QPS 4, per-user throughput": a bare number is not counted per anything
    scope = _scope(reading, sentence)
    candidates: list[tuple[float, Name]] = []
    if clause and clause[-1] in _INDEXED and not reading.unit:
        return None  # "GPU 3", "step 100": which one, not how many
    near: list[Name] = []
    for size in range(1, min(len(clause), 6) + 1):
        if found := name((" ".join(clause[-size:]),), reading.unit, False, True):
            candidates.append((found.score + 0.01 * size, found))
            near += [found] if size <= KEY_WORDS else []
    runs_on = _runs_on(reading, sentence)
    if runs_on and any((c.quantity.name, scope or NOW) not in taken for c in near):
        after = ()  # "ISL 2000 OSL 300": each number follows its key
    unit_words = reading.unit if readings_of(reading.unit) and len(reading.unit) > 2 else ""
    alone = name((unit_words,), reading.unit, False, True) if unit_words else None
    tails = (" ".join((unit_words, *after[:size])).strip() for size in (1, 2, 3) if len(after) >= size)
    for tail in filter(None, dict.fromkeys(tails)):
        found = name((tail,), reading.unit, False, True)
        if found is not None and not (alone and found.quantity is alone.quantity):
            counted = found.quantity.unit in (Unit.COUNT, Unit.TOKEN)
            if runs_on and not reading.unit and not counted:
                continue  # "GPUs 8 step time 2 s": a time has a unit, and the next number does
            # "QPS 16 per-user throughput": what follows is the next number's
            if reading.unit or counted or not candidates:
                candidates.append((found.score + (0.1 if counted and not reading.unit else -0.05), found))
    best = max(candidates, key=lambda c: c[0], default=None)
    found = best[1] if best else None
    if found is None and alone is not None:
        found = alone._replace(score=UNIT_ALONE)  # "they get 22 tokens/s each"
    host = bool(
        _HOST & {*clause, *words_of(reading.after)[:NEAR]}
    )  # "one CPU core is at 100%" is not about the GPU of the same sentence
    if (
        found is None
        and not host
        and (only := _only_of(reading.unit)) is not None
        and _speaks_of_its_family(only, sentence)
    ):
        found = only  # "card 7 reaches 87 degrees"
    if found is None and not host:
        found = _topic_of(sentence, reading.unit)
        if found is not None and (found.quantity.name, scope or NOW) in taken:
            found = None
    if found is None:
        return None
    taken.add((found.quantity.name, scope or found.scope or NOW))
    hoped = entries()[found.quantity.name].expected if scope == EXPECTED and found.quantity.name in entries() else ""
    quantity = entries()[hoped].quantity if hoped in entries() else found.quantity
    return found._replace(scope=scope or found.scope, quantity=quantity)


def _runs_on(reading: Reading, sentence: tuple[Reading, ...]) -> bool:
    """Whether the words behind a number run on to the next one, so that they may be that one's key."""
    return sentence.index(reading) + 1 < len(sentence) and not _BREAK.search(f" {reading.after} ")


def _awaited(clause: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...] | None:
    """What is waited for: "they wait 4.2 s for the first token", "200 ms is waiting for the next batch"."""
    waits = next((at for at, word in enumerate(after[:2]) if word in _WAITS), None)
    if waits is not None and after[waits + 1 : waits + 2] and after[waits + 1] in _AWAITED:
        return after[waits + 2 :] or None
    return after[1:] if _WAITS & set(clause[-3:]) and len(after) > 1 and after[0] in _AWAITED else None


def _of_what_is_awaited(
    awaited: tuple[str, ...], reading: Reading, sentence: tuple[Reading, ...], asked: bool
) -> Name | None:
    """A wait is named by its end; a request's wait for something that has no name is its queue, anybody else's is not known."""
    phrases = (" ".join((*waits, *awaited[:size])) for size in range(len(awaited), 0, -1) for waits in (("wait",), ()))
    alone = name(("wait",), reading.unit, False, True)
    for found in (name((phrase,), reading.unit, False, True) for phrase in phrases):
        if found is not None and (alone is None or found.quantity is not alone.quantity):
            return found._replace(scope=_scope(reading, sentence) or found.scope)
    return alone if asked else None


def _scale_of(unit: str) -> float:
    return next(scale for dimension, scale in readings_of(unit) if dimension is Unit.BYTE)


@cache
def _only_of(unit: str) -> Name | None:
    """The one quantity of a unit that people judge by, where all of that unit are of one family: degrees, of a card."""
    dimensions = {dimension for dimension, _ in readings_of(unit)} if len(unit) > 1 else set()
    family = [entry for entry in entries().values() if entry.quantity.unit in dimensions]
    owners = [entry for entry in family if entry.better]
    if len(owners) != 1 or len({entry.quantity.name.partition(".")[0] for entry in family}) != 1:
        return None
    scale, inverse = _scale(owners[0].quantity, readings_of(unit))
    return Name(owners[0].quantity, scale, "", inverse, UNIT_ALONE, True)


def _speaks_of_its_family(found: Name, sentence: tuple[Reading, ...]) -> bool:
    """Whether a word of a sibling quantity is said: degrees beside a clock or a card are of heat, not of an angle."""
    family = found.quantity.name.partition(".")[0]
    said = classed(_words_in(sentence))
    return family in said or any(
        e.quantity.name.startswith(f"{family}.") for w in said for e, _ in by_word().get(w, ())
    )


def _from_which(reading: Reading, sentence: tuple[Reading, ...]) -> Reading | None:
    """The first number of "from 1.0 to 1.33 s", of "4.2 s, before it was 0.12 s" or "(was 0.12)": both are of the same thing."""
    at, between = sentence.index(reading), set(reading.path[0].split())
    if not at:
        return None
    if between and between <= _ARROWS:
        return sentence[at - 1] if sentence[at - 1].unit == reading.unit else None
    if not _compared_scope(reading):
        return None
    return next((r for r in reversed(sentence[:at]) if reading.unit in ("", r.unit)), None)


def _compared_scope(reading: Reading) -> str:
    """Whether a number is what the last one was, or should be, by the words right before it."""
    if _EARLIER.search(reading.path[0]):
        return BEFORE
    if _INSTEAD.search(reading.path[0]):
        return EXPECTED
    if not _COMPARED.search(reading.path[0]):
        return ""
    after = words_of(clause_after(reading.after))
    return BEFORE if is_past(after) or scope_of(after[:3]) == BEFORE else scope_of(after[:3])


def _scope(reading: Reading, sentence: tuple[Reading, ...]) -> str:
    before, after = words_of(reading.path[0]), words_of(clause_after(reading.after))
    at = sentence.index(reading)
    if reading.path[0].split()[-1:] and reading.path[0].split()[-1].lower() == "from":
        return BEFORE
    if reading.after.split()[:1] and reading.after.split()[0] in ("->", "→", "=>"):
        return BEFORE
    last = at + 1 == len(sentence)  # before another number the words are that one's
    if scope_of(before[-3:]) == EXPECTED or (last and scope_of(after[:3]) == EXPECTED):
        return EXPECTED
    if last and is_past(after):
        return BEFORE
    return scope_of(words_of(reading.path[-1]))


@lru_cache(maxsize=64)
def _words_in(sentence: tuple[Reading, ...]) -> tuple[str, ...]:
    return tuple(w for r in sentence for p in (*r.path[:1], r.after) for w in words_of(p))


@lru_cache(maxsize=64)
def _topic_of(sentence: tuple[Reading, ...], unit: str) -> Name | None:
    """Asked for each number of a sentence, and the same for all of one unit."""
    return topic(_words_in(sentence), unit)


def topic(words: tuple[str, ...], unit: str) -> Name | None:
    """The weightiest quantity of this unit whose words are all said somewhere in the text."""
    said, units, weight = classed(tuple(w for w in words if w not in scope_words())), readings_of(unit), weights()
    best: tuple[float, Name] | None = None
    for word in sorted(said):
        for entry, phrase in by_word().get(word, ()):
            heavy = sum(weight[w] for w in phrase)
            if phrase <= said and units and heavy >= TOPIC_WEIGHT and _agrees(entry.quantity.unit, units, False):
                if entry.quantity.unit not in (Unit.COUNT, Unit.TOKEN) and (best is None or heavy > best[0]):
                    scale, inverse = _scale(entry.quantity, units)
                    best = heavy, Name(entry.quantity, scale, "", inverse, 0.5, True)
    return best[1] if best else None


class _Saying(NamedTuple):
    quantity: str
    value: str
    phrases: re.Pattern[str] | None
    negatable: bool
    lines: tuple[Line, ...]  # words that say it together, in one clause


@cache
def _sayings() -> tuple[_Saying, ...]:
    found = []
    for row in book("said.toml")["said"]:
        phrases = sorted(row.get("phrases", ()), key=len, reverse=True)
        pattern = re.compile(r"(?<![\w-])(?:" + "|".join(re.escape(p) for p in phrases) + r")(?![\w])")
        lines = tuple(line_of(line, ordered=True) for line in row.get("words", ()))
        found.append(
            _Saying(
                row["quantity"], str(row["value"]), pattern if phrases else None, row.get("negatable", False), lines
            )
        )
    return tuple(found)


def said_in(text: str) -> Iterator[Said]:
    """Statements, each quantity once; a negation before a negatable one turns it around."""
    lowered = plain(text)
    parts = clauses(lowered)
    seen: set[str] = set()
    for saying in _sayings():
        if saying.quantity in seen:
            continue
        match = saying.phrases.search(lowered) if saying.phrases else None
        heard = sayable(saying.lines, lowered) if match is None else []
        part = next((p for p in parts for line in heard if says(line, p)), None)
        if match is None and part is None:
            continue
        seen.add(saying.quantity)
        if match is None:
            yield Said(saying.quantity, saying.value, (part or "").strip())
            continue
        before, behind = lowered[max(0, match.start() - 32) : match.start()], lowered[match.end() : match.end() + 16]
        negated = saying.negatable and bool(_NEGATION.search(before) or _ANSWERED_NO.match(behind))
        yield Said(saying.quantity, "no" if negated else saying.value, match[0])
    if (blamed := blamed_in(text)) is not None:
        yield Said(blamed_quantity, *blamed)
