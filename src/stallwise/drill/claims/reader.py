"""Free text into claims: which ideas of an incident a text affirms, denies or puts second, in the order in which it says them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

from stallwise.readers.text.groups import pattern_of, plain
from stallwise.tables import table

WINDOW = 220  # characters within which all words of an idea must stand: two lines of prose
JOINED = 0.1  # of the words: a third joins others in prose, a sixth in a plan of short orders, none in a list of terms
REPEATED = 0.8  # of a sentence's words stand in the question: little of it is the player's own
LEAST_WORDS = 6  # below it there is nothing to weigh

_SENTENCE = re.compile(r"(?<=[.!?;])(?:\s+|$)|\n+")
_STEP = re.compile(
    _SENTENCE.pattern + r"|,?\s{1,3}(?:and\s{1,3})?(?=(?:then|afterwards|after that|next|finally|later)\b)"
)
_CLAUSE = re.compile(
    r"[;:](?!\d)|,(?=\s)|\.\s|\s[\u2013\u2014-]{1,2}\s|\u2192|\b(?:but|while|although|though|however|whereas|because|since|so|as|"
    r"which|unless|until)\b"
)
_WORD = re.compile(r"[\w'/%.+-]+")
_JOINING = re.compile(
    r"\b(?:the|a|an|of|to|or|and|is|are|be|was|has|have|can|will|would|on|in|for|at|when|which|that|than|then|each|must|should|not|"
    r"no|it|its|with|from|by|so|as|if|i|i'd|because|does|isn't|don't|can't|only|every|into)\b"
)
# What stands before a word and denies it, with at most a few words between.
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:no|not|never|without|neither|nor|cannot|hardly|instead of|rather than|against|rules? out|ruled out|refuse to|avoid)\b|"
    r"n't\b|\bnothing to do with\b|\bsolves? another\b|\bdifferent problem\b)(?:\W+[\w/'-]+){0,5}\W*$"
)
# What stands behind it and denies it.
_DENIED_BEHIND = re.compile(
    r"^(?:[^.;:]{0,70}?)(?:\b(?:is|are|was|were|has|have|can|could|would|does|do|should|must|need|needs|will|as)\s+(?:not|no|"
    r"never|hardly|also not|certainly not)\b|\b(?:ca|do|does|did|is|are|was|were|has|have|could|would|should|must|need|wo)n't\b|"
    r"\bcannot\b|"
    r"\b(?:is|are|be|as|seems?|looks?) (?:irrelevant|unaffected|unrelated|pointless|useless|fine|healthy|innocent|excluded|"
    r"independent|moot|large enough|plenty|off the table|another|unlikely|less likely|improbable|ruled out|out of the question)\b|"
    r"\b(?:nothing to do with|solves? another|different problem|another problem|stays? (?:the same|either)|no lever|pointless|"
    r"irrelevant|unaffected))"
)
_ONLY = re.compile(
    r"\bnot only\b|\bnot just\b|\bno longer\b|\bno doubt\b|\bnothing but\b|\bnot (?:to|from) [\w ]{1,20}but\b"
)
# What offers a statement as one of several that are possible.
_GUESSED = re.compile(
    r"\b(?:could|can|may|might) (?:also |well |just )?be\b|\b(?:maybe|perhaps|possibly|either|potentially|candidates?)\b"
)


# A sentence in which something is to be done: a modal verb, an order, or a verb in its base form at its beginning.
_ORDER = re.compile(
    r"\b(?:i'd|i would|i'll|i will|we'd|we should|we would|should|let's|fix|fixes|remedy|remedies|cure|must|need to|needs to|want to|"
    r"plan|step one|action|order|start with|begin with)\b|"
    r"^\W*(?:(?:first|then|next|second|afterwards|finally|so|and|after that|later|[1-5])\b\W*)*(?:add|adopt|apply|ask|bring|build|buy|"
    r"calibrate|cap|change|check|choose|collect|compare|consider|cordon|cut|deploy|do|drain|drop|enable|even|evict|exclude|expand|"
    r"fall|find|force|get|give|go|have|hide|identify|increase|isolate|keep|kick|leave|let|limit|look|lower|make|measure|merge|move|"
    r"overlap|pack|pick|place|play|profile|pull|put|quarantine|raise|rank|rebalance|recalibrate|redistribute|redo|reduce|remove|"
    r"replace|rerun|reschedule|reserve|return|rewrite|run|search|separate|set|shard|shift|shrink|slice|split|stay|stop|swap|sweep|"
    r"switch|swizzle|take|test|throttle|time|trim|try|tune|turn|use|vary|verify|widen|write)\b"
)


@dataclass(frozen=True, slots=True)
class Idea:
    """Something a text can say: lines of word groups; all groups of one line within a sentence say it."""

    name: str
    says: str
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """An idea where a text says it."""

    idea: str
    at: int  # characters from the beginning: the order of the account
    denied: bool = False
    guessed: bool = False


@cache
def lexicon() -> dict[str, str]:
    """Words that say one thing, by the name under which lines use them."""
    return dict(table(files("stallwise.drill.claims") / "words.toml"))  # type: ignore[arg-type]


def idea_of(name: str, says: str, lines: Sequence[Sequence[str]]) -> Idea:
    """From a table's row."""
    return Idea(name, says, tuple(tuple(_spelled(group) for group in line) for line in lines))


def _spelled(group: str) -> str:
    parts = (lexicon()[p[1:]] if p.startswith("@") else p for p in group.split("|"))
    return "|".join(parts)


def is_prose(text: str) -> bool:
    """Whether words are joined to statements; a list of terms claims nothing."""
    words = _WORD.findall(text)
    return len(words) >= LEAST_WORDS and len(_JOINING.findall(text.lower().replace("\u2019", "'"))) >= JOINED * len(
        words
    )


def claims_in(text: str, ideas: Sequence[Idea], across: bool = False, steps: bool = False) -> list[Claim]:
    """Every claim, in the order of the text; an idea may be claimed more than once.

    `across`: its words may stand in two sentences; `steps`: in one step of a plan alone.
    """
    found = []
    parts = _sentences(text, _STEP if steps else _SENTENCE)
    if across:
        parts += [(a, f"{one} ; {two}") for (a, one), (_, two) in pairwise(parts)]
    for at, sentence in parts:
        for idea in ideas:
            claimed = [c for line in idea.lines if (c := _claimed(line, sentence, at, idea.name)) is not None]
            found += [
                c for c in claimed if not c.denied
            ] or claimed  # one wording that affirms it outweighs the others there
    return sorted(set(found), key=lambda c: (c.at, c.idea))


def guesses_in(text: str) -> int:
    """How often something is offered as one of several that are possible."""
    return len(_GUESSED.findall(_plain(text)))


def own_words(text: str, setup: str) -> str:
    """The text without the sentences that repeat the question."""
    given = set(_WORD.findall(_plain(setup)))
    kept = [
        s
        for _, s in _sentences(text)
        if (words := _WORD.findall(s)) and sum(w in given for w in words) < REPEATED * len(words)
    ]
    return "\n".join(kept)


def orders_in(text: str) -> str:
    """The text with only the sentences in which something is to be done; others are blanked, places stay."""
    cleaned = _plain(text)
    kept = " " * len(cleaned)
    for at, sentence in _sentences(text):
        if _ORDER.search(sentence):
            kept = kept[:at] + sentence + kept[at + len(sentence) :]
    return kept


def _sentences(text: str, ends: re.Pattern[str] = _SENTENCE) -> list[tuple[int, str]]:
    cleaned = _plain(text)
    found, at = [], 0
    for cut in ends.finditer(cleaned):
        found.append((at, cleaned[at : cut.start()]))
        at = cut.end()
    return [(a, s) for a, s in [*found, (at, cleaned[at:])] if s.strip()]


def _plain(text: str) -> str:
    spelled = (
        text.replace("\u00d7", "x")
        .replace("\u2265", ">=")
        .replace("\u2248", "~")
        .replace("\u2011", "-")
        .replace("\u2010", "-")
    )
    return "\n".join(plain(line) for line in spelled.split("\n"))


def _claimed(line: tuple[str, ...], sentence: str, at: int, name: str) -> Claim | None:
    """The closest stand of all words of a line; where it is denied, a denial."""
    places = [_places(group.removeprefix("!"), sentence) for group in line]
    if not all(places):
        return None
    own_denial = any(group.startswith("!") for group in line)
    best: Claim | None = None
    for start, end in places[0]:
        chosen = [(start, end)]
        for others in places[1:]:
            free = [p for p in others if p not in chosen] or others
            chosen.append(min(free, key=lambda p: abs(p[0] - start)))
        low, high = min(p[0] for p in chosen), max(p[1] for p in chosen)
        if high - low > WINDOW:
            continue
        denied = not own_denial and any(_denied(sentence, *p) for p in chosen)
        narrowest = min(zip(line, chosen, strict=True), key=lambda pair: pair[0].count("|"))[1]
        claim = Claim(name, at + narrowest[0], denied, bool(_GUESSED.search(_clause(sentence, low))))
        if best is None or (best.denied and not denied):
            best = claim
    return best


@cache
def _compiled(group: str) -> re.Pattern[str]:
    return pattern_of(group)


def _places(group: str, sentence: str) -> list[tuple[int, int]]:
    return [m.span() for m in _compiled(group).finditer(sentence)]


def _clause(sentence: str, at: int) -> str:
    start = max((m.end() for m in _CLAUSE.finditer(sentence, 0, at)), default=0)
    return sentence[start:at]


def _denied(sentence: str, start: int, end: int) -> bool:
    """Whether this word stands behind or before a denial within its clause."""
    before = _ONLY.sub(" ", _clause(sentence, start))
    if _DENIED_BEFORE.search(before):
        return True
    stop = _CLAUSE.search(sentence, end)
    return _DENIED_BEHIND.search(sentence[end : stop.start() if stop else len(sentence)]) is not None
