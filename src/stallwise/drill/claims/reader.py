"""Free text into claims: which ideas of an incident a text affirms, denies or offers as a guess, and in which order."""

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
TURNED = 3  # words before a thing in which stands what becomes of it
REPEATED = 0.8  # of a sentence's words stand in the question: little of it is the player's own
LEAST_WORDS = 6  # below it there is nothing to weigh
_SPELLED = str.maketrans({"\u00d7": "x", "\u2265": ">=", "\u2248": "~", "\u2011": "-", "\u2010": "-"})

_SENTENCE = re.compile(r"(?<=[.!?;])(?<!\b[ie]\.[eg]\.)(?:\s+|$)|\n+")
STEP = re.compile(
    _SENTENCE.pattern + r"|,?\s{1,3}(?:and\s{1,3})?(?=(?:then|afterwards|after that|next|finally|later)\b)"
)
_CLAUSE = re.compile(
    r"[;:(](?!\d)|,(?=\s)|\.\s|\s[\u2013\u2014-]{1,2}\s|\u2192|\b(?:but|while|although|though|however|whereas|because|since|so|as|"
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
    r"n't\b|\bnothing to do with\b|\bsolves? another\b|\bdifferent problem\b)(?=(?:\W+[\w/'-]+){0,5}\W*$)"
)
# What stands before a remedy and takes it away.
_UNDONE_BEFORE = re.compile(
    r"\b(?:turn off|switch off|disabl\w+|remov\w+|fewer|stop using|give up|get rid of)(?=(?:\W+[\w/'-]+){0,3}\W*$)"
)
# What stands behind it and denies it.
_DENIED_BEHIND = re.compile(
    r"^(?:(?!\b(?:it|we|you|they|i)\b)[^.;:]){0,70}?(?P<no>"
    r"\b(?:is|are|was|were|has|have|can|could|would|does|do|should|must|need|needs|will|as)\s+(?:not|no|"
    r"never|hardly|also not|certainly not)\b|\b(?:ca|do|does|did|is|are|was|were|has|have|could|would|should|must|need|wo)n't\b|"
    r"\bcannot\b|"
    r"\b(?:is|are|be|as|seems?|looks?) (?:irrelevant|unaffected|unrelated|pointless|useless|fine|healthy|innocent|excluded|"
    r"independent|moot|large enough|plenty|off the table|another|unlikely|less likely|improbable|ruled out|out of the question)\b|"
    r"\b(?:nothing to do with|solves? another|different problem|another problem|stays? (?:the same|either)|no lever|pointless|"
    r"irrelevant|unaffected)|\bno(?=\s?(?:[,.;]|$)))"
)
_TAKEN_BACK = re.compile(r"^[^.;:,]{0,40}?\bwhich (?:is|are|was|were) (?:not|never)\b")
# What stands before a thing that is no subject: "with K = 32 the loads aren't hidden" denies no K.
_ASIDE = re.compile(r"\b(?:with|given|despite)(?=(?:\W+[\w/'-]+){0,3}\W*$)")
_ONLY = re.compile(
    r"\bnot only\b|\bnot just\b|\bno longer\b|\bno doubt\b|\bnothing but\b|\bnot (?:to|from) [\w ]{1,20}but\b"
)
# What offers a statement as one of several that are possible.
_GUESSED = re.compile(
    r"\b(?:could|can|may|might) (?:also |well |just )?be\b|\b(?:maybe|perhaps|possibly|either|potentially|candidates?)\b"
)
# What asserts nothing: a condition, an assumption, a question.
_SUPPOSED = re.compile(r"\b(?:if|unless|would|assum\w*|suppos\w*|were to|holds? for|meant for|whether)\b|\?")
# Where an account begins to say what is to be done: under a heading, else at a modal verb or a first step.
_HEADING = re.compile(
    r"\b(?:(?:fix(?:es)?|remed(?:y|ies)|cures?|actions?|plan|order)\b[^.:;]{0,30}[:=]|(?:do|act)\s?:)"
)
_OPENS = re.compile(
    r"\b(?:i'd|i would|i'll|i will|we'd|we should|we would|should|let's|(?:we|i|you) must|(?:we|i|you|just|only) needs?|want to|"
    r"start with|begin with|(?:remedy|fix|cure|answer|solution) (?:is|would be)|is to)\b|"
    r"(?:^|[.;:,]\s|\n)\W{0,8}(?:first|firstly|1[.):]|(?:so|hence|thus):)(?!\w)|(?:->|=>|\u2192)\s?(?=[a-z])|\b(?:first|second)(?=\s?[.,;:)\n])"
)
# A further step: what stands before it was one too.
_GOES_ON = re.compile(
    r"(?:^|[.;:,]\s|\n)\W{0,8}(?:only\s)?(?:then|next|second|secondly|afterwards|finally|after that|later)(?!\w)"
)
# What may stand before the verb that orders something, and before a step whose verb is left out ("then interleaving depth").
_LEAD = re.compile(
    r"(?:if\b[^,;]{0,40},)?\W{0,8}(?:(?:and|or|but|so|i|we|then|next|hence|thus|therefore|first|second|third|finally|afterwards|"
    r"after that|later|[1-9])\b\W{0,8}){0,8}"
)
_ELIDED = " (do, tune, check)"


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
    ordered: bool = False  # its verb begins the sentence


@cache
def lexicon() -> dict[str, str]:
    """Words that say one thing, by the name under which lines use them."""
    return dict(table(files("stallwise.drill.claims") / "words.toml"))  # type: ignore[arg-type]


@cache
def opposites() -> dict[str, tuple[int, int]]:
    """Word: which pair of opposites it belongs to, and on which side."""
    pairs = [pair.split("/") for pair in lexicon()["opposites"].split("|")]
    sides = ((n, side, words) for n, pair in enumerate(pairs) for side, words in enumerate(pair))
    return {word: (n, side) for n, side, words in sides for word in words.split(",")}


def idea_of(name: str, says: str, lines: Sequence[Sequence[str]]) -> Idea:
    """From a table's row."""
    return Idea(name, says, tuple(tuple(_spelled(group) for group in line) for line in lines))


def _spelled(group: str) -> str:
    parts = (lexicon()[p[1:]] if p.startswith("@") else p for p in group.split("|"))
    return "|".join(parts)


def is_prose(text: str) -> bool:
    """Whether words are joined to statements; a list of terms claims nothing."""
    words = _WORD.findall(text)
    joined = _JOINING.findall(text.lower().replace("\u2019", "'"))
    return len(words) >= LEAST_WORDS and len(joined) >= JOINED * len(words)


def claims_in(text: str, ideas: Sequence[Idea], across: bool = False, steps: bool = False) -> list[Claim]:
    """Every claim, in the order of the text; an idea may be claimed more than once.

    `across`: its words may stand in two sentences; `steps`: in one step of a plan alone, and what takes a remedy away denies it.
    """
    found = []
    parts = sentences(text, STEP if steps else _SENTENCE)
    if steps:
        parts = [(at, part + _ELIDED if _lead(part).strip() or _HEADING.search(part) else part) for at, part in parts]
    if across:
        parts += [(a, f"{one} ; {two}") for (a, one), (_, two) in pairwise(parts)]
    for at, sentence in parts:
        for idea in ideas:
            claimed = [c for line in idea.lines if (c := _claimed(line, sentence, at, idea.name, steps)) is not None]
            # One wording that affirms it outweighs the others there.
            found += [c for c in claimed if not c.denied] or claimed
    return sorted(set(found), key=lambda c: (c.at, c.idea))


def asserted(text: str, ideas: Sequence[Idea]) -> list[Idea]:
    """Ideas that a sentence asserts outright: neither denied, nor a condition, an assumption or a question."""
    plainly = "\n".join(s for _, s in sentences(text) if not _SUPPOSED.search(s) and not _GUESSED.search(s))
    claimed = {c.idea for c in claims_in(plainly, ideas) if not c.denied}
    return [i for i in ideas if i.name in claimed]


def guesses_in(text: str) -> int:
    """How often something is offered as one of several that are possible."""
    return len(_GUESSED.findall(_plain(text)))


def own_words(text: str, setup: str) -> str:
    """The text without the sentences that repeat the question."""
    given = set(_WORD.findall(_plain(setup)))
    kept = [
        s
        for _, s in sentences(text)
        if (words := _WORD.findall(s)) and sum(w in given for w in words) < REPEATED * len(words)
    ]
    return "\n".join(kept)


def planned(text: str, actions: Sequence[Idea]) -> tuple[int, list[str]]:
    """Where the text begins to say what is to be done, and what that is, in the order of the text, each once."""
    claims = [c for c in claims_in(text, actions, steps=True) if not c.denied]
    headed, first = plan_start(text, claims)
    # What is looked at before a heading is part of the plan, after what stands under it.
    order = [c.idea for c in sorted(claims, key=lambda c: c.at < first) if headed or c.at >= first]
    return first, list(dict.fromkeys(order))


def plan_start(text: str, claims: Sequence[Claim] | None = None) -> tuple[bool, int]:
    """Whether a heading announces the plan, and where it begins; with claims, at a sentence that holds one."""
    cleaned = _plain(text)
    if heading := _HEADING.search(cleaned):
        return True, heading.start()
    begun = [m.end() - 1 for m in _OPENS.finditer(cleaned)] + [
        p for m in _GOES_ON.finditer(cleaned) for p in (m.start(), m.end() - 1)
    ]
    begun += [c.at for c in claims or () if c.ordered]
    starts = (
        at
        for at, sentence in sentences(text)
        for end in (at + len(sentence),)
        if any(at <= b <= end for b in begun) and (claims is None or any(at <= c.at <= end for c in claims))
    )
    return False, min(starts, default=0)


def steps_of(text: str) -> list[tuple[int, str]]:
    """The steps of a plan, also those that commas part."""
    return [
        (at + m.start(), m[0])
        for at, step in sentences(text, STEP)
        for m in re.finditer(r"[^,]+(?:,(?=\S)[^,]*)*", step)
    ]


def sentences(text: str, ends: re.Pattern[str] = _SENTENCE) -> list[tuple[int, str]]:
    """Each with the place where it begins, in lower case."""
    cleaned = _plain(text)
    found, at = [], 0
    for cut in ends.finditer(cleaned):
        found.append((at, cleaned[at : cut.start()]))
        at = cut.end()
    return [(a, s) for a, s in [*found, (at, cleaned[at:])] if s.strip()]


def _plain(text: str) -> str:
    return "\n".join(plain(line) for line in text.translate(_SPELLED).split("\n"))


def _claimed(line: tuple[str, ...], sentence: str, at: int, name: str, action: bool) -> Claim | None:
    """The closest stand of all words of a line; where it is denied, a denial."""
    places = [[m.span() for m in pattern_of(group).finditer(sentence)] for group in line]
    if not all(places):
        return None
    best: Claim | None = None
    for place in places[0]:
        chosen = [place]
        for others in places[1:]:
            free = [p for p in others if p not in chosen] or others
            chosen.append(min(free, key=lambda p: abs(p[0] - place[0])))
        low, high = min(p[0] for p in chosen), max(p[1] for p in chosen)
        if high - low > WINDOW:
            continue
        denied = any(_denied(sentence, place, chosen, action) for place in chosen)
        narrowest = min(zip(line, chosen, strict=True), key=lambda pair: pair[0].count("|"))[1]
        guessed = bool(_GUESSED.search(sentence, _clause_start(sentence, low), low))
        claim = Claim(name, at + narrowest[0], denied, guessed, _orders(sentence))
        if best is None or (best.denied and not denied):
            best = claim
    return best


def _lead(step: str) -> str:
    found = _LEAD.match(step)
    return found[0] if found else ""


def _orders(step: str) -> bool:
    """Whether it begins with a verb that says what to do, or with the number of a step."""
    lead = _lead(step)
    verb = pattern_of(lexicon()["orders"]).match(step, len(lead))
    return verb is not None or re.search(r"[1-9][.):]", lead) is not None


def _clause_start(sentence: str, at: int) -> int:
    return max((m.end() for m in _CLAUSE.finditer(sentence, 0, at)), default=0)


def _turned_round(before: str, own: Sequence[str]) -> bool:
    """Whether right before a thing stands the opposite of what the idea says of it: "raise the micro-batch" for "a smaller one"."""
    sides = {opposites()[w] for w in own if w in opposites()}
    near = [opposites()[w] for w in _WORD.findall(before)[-TURNED:] if w in opposites()]
    return any((n, 1 - side) in sides for n, side in near[-1:])


def _denied(sentence: str, place: tuple[int, int], own: Sequence[tuple[int, int]], action: bool) -> bool:
    """Whether a word stands behind or before a denial within its clause; a denial that is part of the idea is none."""
    start, end = place
    low = _clause_start(sentence, start)
    if action and _turned_round(sentence[low:start], [sentence[slice(*o)] for o in own]):
        return True
    before = sentence[:low] + _ONLY.sub(lambda m: " " * len(m[0]), sentence[low:start])
    for denial in (_DENIED_BEFORE, _UNDONE_BEFORE) if action else (_DENIED_BEFORE,):
        found = denial.search(before, low)
        if found and not any(o[0] < found.end() and found.start() < o[1] for o in own):
            return True
    if _TAKEN_BACK.search(sentence[end:]):
        return True
    if _ASIDE.search(before, low):
        return False
    stop = _CLAUSE.search(sentence, end)
    behind = _DENIED_BEHIND.search(sentence[end : stop.start() if stop else len(sentence)])
    return behind is not None and not any(
        o[0] < end + behind.end("no") and end + behind.start("no") < o[1] for o in own
    )
