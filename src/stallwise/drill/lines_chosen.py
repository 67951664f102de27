"""Lines of a list as people mean them: numbers, ordinals or their own words; and how sure somebody is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stallwise.drill.quantity import spelled
from stallwise.errors import BadRequest

NOTHING = frozenset(("-", "pass", "skip", "i do not know", "i don't know", "dont know", "don't know", "no idea", "?"))
_SURE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(%|percent|pct)?", re.IGNORECASE)
_TALK = re.compile(
    r"\b(?:options?|answers?|choices?|lines?|numbers?|no\.?|it is|it's|then|and|before|after that|finally|is|i|think|say|would|"
    r"choose|pick|take|definitely|probably|only|both|the|first|last|order|in|that|with|go|my|so|guess)\b|[#>,.;:()\[\]\-]"
)
LEAST_WORDS = 4  # characters of a piece of a line that name it
_ORDINALS = {w: n for n, w in enumerate("first second third fourth fifth sixth seventh eighth".split(), start=1)}


def how_sure(text: str) -> float:
    """A probability, typed as 80%, 0.8 or "80 percent sure"."""
    found = _SURE.search(spelled(text))
    if found is None:
        raise BadRequest(f"how sure is '{text.strip()[:40]}'?", hint="like: 80%")
    return _share(found[1], found[2])


def _share(digits: str, percent: str | None) -> float:
    value = float(digits)
    if percent or value > 1:
        value /= 100
    elif value == 1:
        raise BadRequest("is that 1% or 100%?", hint="write the percent sign")
    if not 0 <= value <= 1:
        raise BadRequest(f"{digits} is no probability", hint="between 0% and 100%")
    return value


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
