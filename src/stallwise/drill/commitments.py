"""What a player commits to, read from what was typed: numbers of lines, words, probabilities."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stallwise.drill.cause_profiles import chosen
from stallwise.drill.quantity import spelled
from stallwise.errors import BadRequest

STAGES = ("cause", "second", "number", "fixes", "falsifier", "not-first", "tell", "ticks")
NOTHING = frozenset(("-", "pass", "skip", "i do not know", "i don't know", "dont know", "don't know", "no idea", "?"))
_NONE = frozenset(("none", "no", "nothing", "no second", "only one", "0"))
_SURE = re.compile(
    r"(?:^|[\s=:,@(])(\d+(?:\.\d+)?|\.\d+)\s*(%|percent|pct)?\)?\s*(?:sure|certain|likely|probability)?\s*$",
    re.IGNORECASE,
)
_ONLY_SURE = re.compile(r"[\d.]+\s*(?:%|percent|pct)?\s*(?:sure|certain|likely|probability)?", re.IGNORECASE)
_TALK = re.compile(
    r"\b(?:options?|answers?|choices?|lines?|numbers?|no\.?|it is|it's|then|and|before|after that|finally|is|i|think|say|would|"
    r"choose|pick|take|definitely|probably|only|both|the|first|last|order|in|that|with|go|my|so|guess)\b|[#>,.;:()\[\]\-]"
)
LEAST_WORDS = 4  # letters of a piece of a line that name it
_ORDINALS = {w: n for n, w in enumerate("first second third fourth fifth sixth seventh eighth".split(), start=1)}


@dataclass(frozen=True, slots=True)
class Commitments:
    """Everything that was committed; what was left out is empty."""

    cause: Mapping[str, float] = field(default_factory=dict)  # probability by cause; the rest is "something else"
    second: str | None = None  # "" says: there is none; None: nothing was said
    number: float | None = None
    fixes: tuple[int, ...] = ()  # lines of the list, in order
    falsifier: int | None = None
    not_first: int | None = None
    debrief: str = ""
    ticks: tuple[bool, ...] = ()


def probabilities(text: str, among: Sequence[str]) -> dict[str, float]:
    """ "3 80%", "slow node 70%; 5 20%" and the like; what is left belongs to something else."""
    given: dict[str, float] = {}
    for part in _parts(text):
        match = _SURE.search(part)
        if match is None or not part[: match.start()].strip(" =:,@("):
            raise BadRequest(f"how sure are you of '{part.strip()[:60]}'?", hint="like: 3 80%   or   3 70%; 5 20%")
        name, share = part[: match.start()].strip(" =:,@("), _share(match[1], match[2])
        cause = chosen(name, tuple(among))
        if cause is None:
            raise BadRequest(f"'{name[:60]}' could be none or several of the list", hint="give its number: 3 80%")
        given[cause] = given.get(cause, 0.0) + share
    if not given:
        raise BadRequest("which cause, and how sure?", hint="like: 3 80%")
    if sum(given.values()) > 1.005:
        raise BadRequest(f"that adds up to {sum(given.values()):.0%}", hint="at most 100% in all")
    return given


def _parts(text: str) -> list[str]:
    """Several statements of one line; a decimal comma is none of them."""
    plain = re.sub(r"(?<=\d),(?=\d)", ".", spelled(text))
    parts: list[str] = []
    for part in (p for p in re.split(r";|\n|,\s|(?<!\s)\s{1,80}and\s{1,80}(?=\S.{0,400}\d)", plain) if p.strip()):
        if parts and _ONLY_SURE.fullmatch(part.strip()):
            parts[-1] += f" {part.strip()}"  # "a slow node, 90%"
        else:
            parts.append(part)
    return parts


def _share(digits: str, percent: str | None) -> float:
    value = float(digits)
    if percent or value > 1:
        value /= 100
    elif value == 1:
        raise BadRequest("is that 1% or 100%?", hint="write the percent sign")
    if not 0 <= value <= 1:
        raise BadRequest(f"{digits} is no probability", hint="between 0% and 100%")
    return value


def second_fault(text: str, among: Sequence[str]) -> str:
    """Another cause of the list, or "" for none."""
    if text.strip().lower().rstrip(".") in _NONE:
        return ""
    found = chosen(text, tuple(among))
    if found is None:
        raise BadRequest(f"'{text[:60]}' could be none or several of the list", hint="its number, or none")
    return found


def one_line(text: str, lines: Sequence[str]) -> int:
    """Which line of a list is meant: its number, or its own words."""
    found = lines_meant(text, lines)
    if len(found) != 1:
        raise BadRequest("which one?", hint=f"a number from 1 to {len(lines)}")
    return found[0]


def lines_meant(text: str, lines: Sequence[str]) -> tuple[int, ...]:
    """Lines in the order they were given: "2 1 4", "2, then 1", "b > a", the second, or their words after semicolons."""
    plain = text.strip().lower()
    whole = [n for n, line in enumerate(lines) if plain == line.lower()] or [
        n
        for n, line in enumerate(lines)
        if len(plain) >= LEAST_WORDS and re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", line.lower())
    ]
    if len(whole) == 1:
        return (whole[0],)
    named = [n for part in re.split(r"[;\n]", plain) for n, line in enumerate(lines) if part.strip() == line.lower()]
    if named:
        return tuple(dict.fromkeys(named))
    for word, number in _ORDINALS.items():
        plain = re.sub(rf"\b(?:the )?{word}\b(?: one)?(?!\s*:?\s*\d)", str(number), plain)
    plain = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", r"\1", spelled(plain))
    plain = _TALK.sub(" ", plain)
    found = []
    for token in plain.split():
        if re.fullmatch(r"[a-z]", token):
            place = ord(token) - ord("a")
        elif token.isdecimal() and len(token) < 6:
            place = int(token) - 1
        elif re.fullmatch(r"[a-h]{2,8}", token) and len(set(token)) == len(token):  # "bac"
            found += [ord(x) - ord("a") for x in token]
            continue
        else:
            raise BadRequest(f"'{token[:40]}' is not a line of the list", hint=f"numbers from 1 to {len(lines)}: 2 1")
        found.append(place)
    if not found or any(not 0 <= n < len(lines) for n in found):
        raise BadRequest("that is not a line of the list", hint=f"numbers from 1 to {len(lines)}: 2 1")
    return tuple(dict.fromkeys(found))


def ticked(text: str, count: int) -> tuple[bool, ...]:
    """Which of so many lines were said: "1 3", "all", "none"."""
    plain = text.strip().lower()
    if plain in ("all", "everything"):
        return (True,) * count
    if plain in _NONE or plain in NOTHING:
        return (False,) * count
    chosen = lines_meant(plain, tuple(f"line {n}" for n in range(count)))
    return tuple(n in chosen for n in range(count))


def to_json(value: object) -> str:
    """As the journal keeps it."""
    return json.dumps(value)
