"""Assertion status: which words of a text are denied, cured, only possible, hypothetical, somebody else's or boilerplate.

After NegEx and ConText: trigger phrases with a status, a direction and an end (triggers.tsv, conditions.txt). No grammar: a scope ends
at punctuation or at a word that begins another clause. What is not marked is affirmed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

MOST_WORDS = 12  # of a scope: denials of lists ("no ECC errors, Xids or throttling") are this long
LONGEST_LINE = 4000  # characters that are looked at


class Status(Enum):
    """What the author says about a condition instead of asserting it."""

    ABSENT = "absent"
    CURED = "cured"
    POSSIBLE = "possible"
    HYPOTHETICAL = "hypothetical"
    OTHER = "other"
    BOILERPLATE = "boilerplate"


DENIED = frozenset((Status.ABSENT, Status.CURED))
NO_EVIDENCE = frozenset(Status)


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of the text that share one status."""

    start: int
    end: int
    status: Status
    number: bool = False  # a count of zero beside its key: no fault, yet a fact


@dataclass(frozen=True, slots=True)
class _Trigger:
    status: Status | None  # None: a phrase that looks like a trigger and is none
    scope: str
    any_words: bool


_SENTENCE = re.compile(r"[^.!?;\n]*(?:\.(?=\S)[^.!?;\n]*)*[.!?;\n]?")
# Where a clause ends. A comma ends it too, unless a list goes on behind it, which `_end` decides.
_TERMINATOR = re.compile(
    r"\b(?:but|however|yet|although|though|except|still|nevertheless|because|since|after|before|until|while|when|where|which|and then|"
    r"then|now|instead|so|only)\b|[:()\[\]]|\s[-\u2013\u2014]{1,2}\s",
    re.IGNORECASE,
)
_COMMA = re.compile(r",\s{0,8}(?:(?:and|or|nor)\s{1,8})?|\s{1,8}and\s{1,8}")
_NUMBER = re.compile(r"(?<![\w.])\d")
_PLACED = re.compile(r"\s{1,2}(?:at|with|on|under|for|in)\s")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|gets?|got|becomes?|became|turns?|fails?|failed|doubles?|doubled|explodes?|goes|went|takes?|took|runs?|ran|shows?|drops?|fell|falls?|rises?|rose|"
    r"grows?|grew|hangs?|stays?|reads?|sees?|saw|keeps?|kept|jumps?|dies|died|crash\w*|loses?|lost|stops?|stopped|slow\w*|uses?|looks?|diverge[sd]?|spikes|overflows|overheats|throttles|leaks)\b",
    re.IGNORECASE,
)
# Who does something has a verb behind it, whichever it is: "nobody changed anything, loss is fine" are two clauses.
_SUBJECT = re.compile(
    r"\b(?:nobody|nothing|no one|none of us|somebody|someone|everyone|we|i|they|he|she|you)\s{1,2}[a-z']{2,}",
    re.IGNORECASE,
)
_FAILS = re.compile(r"\w\s+OOMs?\Z")  # "long inputs OOM, short ones are fine": a verb there
_OPENS_CLAUSE = re.compile(
    r"(?:on|with|without|in|at|for|under|after|before|since|while|when|it|they|we|i|this|that|these|there|everything|all)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w'/%.+-]+")
_ZERO = re.compile(r"(?<![\w.,:/-])(?:0|zero)(?![\w])", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c][^\"\u201c\u201d\n]{40,600}[\"\u201d]")
_JOINING = re.compile(
    r"\b(?:the|a|an|of|to|or|and|is|are|be|on|in|for|when|which|that|each|must|should|not|no|it|with|from|by)\b",
    re.IGNORECASE,
)
JOINED = 0.2  # of a quote's words: in English prose four of ten join others, in a program's message one
# A flag, an address, and the line with which a program's help begins.
_FLAG = re.compile(
    r"(?<![\w-])--[A-Za-z][\w.-]{1,60}(?:[= ]\S{1,80})?|\bhttps?://\S{1,300}|^[ \t]{0,8}usage: [^\n]{1,2000}",
    re.MULTILINE,
)
_PAIR = re.compile(
    r"(?:^|(?<=[,;.(:]))[ \t|>*-]{0,60}(?P<key>[A-Za-z][^:=|\n]{1,80}?)(?<![ \t.])[ \t.|]*(?:[:=|]|\t| {2,})[ \t\"']*"
    r"(?P<value>0+(?:\.0+)?(?:[ \t]*%)?|none|no|n/?a|null|nil|false|off|ok|okay|pass(?:ed)?|clear|clean|normal|healthy|disabled|"
    r"inactive|not[ _]active|not[ _]supported|not[ _]present|-+)(?=[ \t\"'|,;}\])]*$|[ \t\"']*[,;.)](?:\s|$))",
    re.IGNORECASE | re.MULTILINE,
)


def spans_of(text: str) -> list[Span]:
    """Every part of the text that does not plainly assert what it names, in order; parts may touch, never overlap."""
    found = [Span(*m.span(), Status.BOILERPLATE) for m in _FLAG.finditer(text)]
    for pair in _PAIR.finditer(text):
        if _conditions().search(pair["key"]):
            found.append(Span(*pair.span(), Status.ABSENT, number=pair["value"][0] == "0"))
    if _ZERO.search(text):
        found += [Span(*m.span(), Status.ABSENT, number=True) for m in _zeros().finditer(text)]
    found += [Span(*m.span(), Status.OTHER) for m in _QUOTED.finditer(text) if _is_prose(m[0])]
    if _triggers_pattern().search(text):
        for sentence in _SENTENCE.finditer(text):
            if sentence.end() - sentence.start() <= LONGEST_LINE:
                found += _in_sentence(text, sentence.start(), sentence.end())
    return _merged(found)


def negated(text: str) -> str:
    """What stands behind a word of denial, whether it names a fault or not: "nobody waits", "no longer blocks"."""
    scopes = []
    for match in _triggers_pattern().finditer(text):
        trigger = _trigger(_plain(match[0]))
        if trigger.status is Status.ABSENT:
            low, high = _sentence_around(text, match)
            scopes.append(text[slice(*_scope(trigger, text, match, low, high))])
    return "\n".join(scopes)


def _sentence_around(text: str, match: re.Match[str]) -> tuple[int, int]:
    ends = [i for mark in ".!?;\n" if (i := text.rfind(mark, 0, match.start())) >= 0]
    stops = [i for mark in "!?;\n" if (i := text.find(mark, match.end())) >= 0]
    return max(ends, default=-1) + 1, min(stops, default=len(text))


def statuses(spans: list[Span]) -> frozenset[str]:
    """The ways in which parts of the text do not assert what they name."""
    return frozenset(s.status.value for s in spans)


def affirmed(text: str, spans: list[Span], *, numbers: bool = False) -> str:
    """The text with what is no evidence blanked; lines and columns stay where they are. `numbers` keeps counts of zero."""
    parts, at = [], 0
    for span in spans:
        if span.status in NO_EVIDENCE and not (numbers and span.number):
            parts += [text[at : span.start], re.sub(r"[^\n]", " ", text[span.start : span.end])]
            at = span.end
    return "".join([*parts, text[at:]])


def denied(text: str, spans: list[Span]) -> str:
    """Only what the author says is absent or over."""
    return "\n".join(text[s.start : s.end] for s in spans if s.status in DENIED)


def is_denied(spans: list[Span], start: int, end: int) -> bool:
    """Whether these characters lie in a part that is no evidence."""
    return any(s.status in NO_EVIDENCE and s.start < end and start < s.end for s in spans)


def _is_prose(quote: str) -> bool:
    """Sentences that somebody else wrote, not a message that a program printed."""
    words = _WORD.findall(quote)
    return len(_JOINING.findall(quote)) >= JOINED * len(words) and not quote[1:2].islower()


def _in_sentence(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _triggers_pattern().finditer(text, start, end):
        trigger = _trigger(_plain(match[0]))
        if trigger.status is None:
            continue
        low, high = _scope(trigger, text, match, start, end)
        if trigger.any_words or _conditions().search(text, low, high):
            yield Span(low, high, trigger.status)


def _scope(trigger: _Trigger, text: str, match: re.Match[str], start: int, end: int) -> tuple[int, int]:
    if trigger.scope == "sentence":
        return start, end
    after = _end(text, match.end(), end)
    if trigger.scope == "noun":  # "without no_grad runs out of memory": what the verb says is not denied
        verbs = (
            v.start() for v in _VERB.finditer(text, match.end(), after) if not _conditions().match(text, v.start())
        )
        return match.start(), next(verbs, after)  # "no hang since" has none: a fault's name is a noun there
    if trigger.scope == "forward":
        return match.start(), after
    ends = [m.end() for m in _TERMINATOR.finditer(text, start, match.start())]
    begin = max([start, *ends])
    for comma in _COMMA.finditer(text, begin, match.start()):
        # "memory, CPU and network are fine" is one list; "nan is what fp16 gives, bf16 is fine" and "..., on H100 it is fine" are two.
        # "host 22 GiB, pressure all zero" and "OOM at TP 4, ok at TP 8" are two: a number, or a place of its own.
        measured = _NUMBER.search(text, begin, comma.start()) and not _conditions().search(text, begin, comma.start())
        elsewhere = not text[comma.end() : match.start()].strip() and _PLACED.match(text, match.end())
        says = (
            _VERB.search(text, begin, match.start())
            or _SUBJECT.search(text, begin, comma.start())
            or _FAILS.search(text, begin, comma.start())
        )
        if measured or elsewhere or says or _OPENS_CLAUSE.match(text, comma.end()):
            begin = comma.end()
    return begin, after if trigger.scope == "clause" else match.end()


def _end(text: str, at: int, end: int) -> int:
    """Where a forward scope ends: at the next clause, at the end of its list, or after so many words."""
    limit = end
    if (stop := _TERMINATOR.search(text, at, end)) is not None:
        limit = stop.start()
    for comma in _COMMA.finditer(text, at, limit):
        # A list goes on behind its comma: "no ECC errors, Xids or throttling"; a clause with a verb or number of its own does not.
        following = _COMMA.search(text, comma.end(), limit)
        if text[comma.end() : comma.end() + 1].isdigit() or _VERB.search(
            text, comma.end(), following.start() if following else limit
        ):
            limit = comma.start()
            break
    words = list(_WORD.finditer(text, at, limit))
    return words[MOST_WORDS - 1].end() if len(words) > MOST_WORDS else limit


def _merged(spans: list[Span]) -> list[Span]:
    """In order; where two overlap the earlier, and of equals the longer, keeps the characters."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        start = max(span.start, kept[-1].end if kept else 0)
        if start < span.end:
            kept.append(Span(start, span.end, span.status, span.number))
    return kept


def _plain(phrase: str) -> str:
    return " ".join(phrase.lower().replace("\u2019", "'").split())


@cache
def _triggers() -> dict[str, _Trigger]:
    rows = Path(__file__).with_name("triggers.tsv").read_text(encoding="utf-8").splitlines()
    found = {}
    for row in rows:
        if row and not row.startswith(("#", "phrase\t")):
            phrase, status, scope, of = row.split("\t")
            found[phrase] = _Trigger(None if status == "none" else Status(status), scope, of == "any")
    return found


@cache
def _triggers_pattern() -> re.Pattern[str]:
    """All phrases, longest first, so that a pseudo trigger wins over the trigger inside it."""
    phrases = sorted(_triggers(), key=lambda p: (-len(p), p))
    glued = "|".join(_expression(p) for p in phrases if p.startswith("n'"))  # "isn't"
    # One group around all words: each with its own border would take ten times as long to compile.
    words = "|".join(_expression(p) for p in phrases if not p.startswith("n'"))
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-]|\s?[=:])|{glued}", re.IGNORECASE)


def _trigger(found: str) -> _Trigger:
    """The row whose phrase was found; one with a wildcard is tried after the others."""
    known = _triggers()
    return (
        known[found]
        if found in known
        else next(t for p, t in known.items() if "*" in p and re.fullmatch(_expression(p), found))
    )


def _expression(phrase: str) -> str:
    return re.escape(phrase).replace(r"\ ", r"[ \t\n]{1,3}").replace(r"\*", r"[\w-]{1,30}").replace("'", "['\u2019]")


@cache
def _zeros() -> re.Pattern[str]:
    """A count of zero beside the fault it counts: "0 bytes spill stores", "Graph Break Count 0", "CRC Errors: 0"."""
    fault = rf"(?:{_faults()})[\w-]{{0,20}}"
    zero = r"(?<![\w.,:/-])(?:0(?:\.0+)?|zero)(?![\w.,:/]*\d)(?:[ \t]*%)?"
    words = r"(?:[ \t]+[A-Za-z_-]{1,20})"
    return re.compile(
        rf"{zero}{words}{{0,2}}[ \t]+{fault}{words}{{0,1}}|"
        rf"(?:[A-Za-z_-]{{1,20}}[ \t]+){{0,2}}{fault}{words}{{0,2}}[ \t]*[:=]?[ \t]*{zero}(?![\w%]|[ \t]*(?:ms|us|s)\b)",
        re.IGNORECASE,
    )


@cache
def _conditions() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z])(?:{_faults()})", re.IGNORECASE)


@cache
def _faults() -> str:
    """Beginnings of words that name a fault, as one alternative."""
    rows = Path(__file__).with_name("conditions.txt").read_text(encoding="utf-8").splitlines()
    words = sorted((r for r in rows if r and not r.startswith("#")), key=len, reverse=True)
    return "|".join(map(re.escape, words))
