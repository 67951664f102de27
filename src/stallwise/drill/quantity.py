"""Numbers as people type them: units, number words, decimal commas, "about"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stallwise.errors import BadRequest
from stallwise.units import Unit, example, parse, readings_of

_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {w: 10 * (i + 2) for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())}
_LARGE = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {
    "half": 0.5, "third": 1 / 3, "thirds": 1 / 3, "quarter": 0.25, "quarters": 0.25, "fifth": 0.2, "fifths": 0.2, "tenth": 0.1,
    "tenths": 0.1,
}  # fmt: skip
_SOFT = re.compile(
    r"^(?:\s*(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|nearly|some|~|≈|=|"
    r"it is|it's|its|i say|rank|gpu|node|step|code|xid|number))+\s*",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"(?<![\d,])(\d+),(\d{1,2}|\d{4,})(?![\d,])")
_NUMBER = re.compile(r"^\s*([-+]?(?:\d{1,3}(?:[ ,_]\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+)\s*(.*?)[\s.!]*$")
_OF = re.compile(
    r"(?:^|\s)(?:of|in|from|for|lost|more|less|slower|faster|longer|idle)\b.*$"
)  # "two thirds of the step"
BARE = (Unit.COUNT, Unit.RATIO, Unit.TOKEN)  # numbers that need no unit to be meant
_SHORTHAND = tuple(
    (re.compile(pattern, re.IGNORECASE), instead)
    for pattern, instead in (
        (r"\btwice\b|\bdouble\b", "2x"), (r"\bthrice\b|\btriple\b", "3x"), (r"\bhalf an? ", "half "),
        (r"\band an? (half|third|quarter)\b", r"and \1"), (r"^an? (half|third|quarter|fifth|tenth)\b", r"one \1"),
    )
)  # fmt: skip
_FRACTION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*/\s*([1-9]\d*(?:\.\d+)?)(?![\w/])")  # "4/3", but not "4/s"
_RANGE = re.compile(r"^\s*[\d.,]+\s*(?:-|–|to|\.\.)\s*[\d.,]+")


def typed(text: str, unit: Unit, *, bare: bool = False) -> float:
    """The value in SI. A number without its unit is refused where a unit exists, unless `bare` numbers are in SI."""
    plain = re.sub(r"^\$\s*([\d.,]+)", r"\1 $", spelled(_SOFT.sub("", text.strip())))
    plain = _FRACTION.sub(lambda m: f"{float(m[1]) / float(m[2]):.9g}", plain)
    if _RANGE.match(plain):
        raise BadRequest("that is a range", hint="commit to one number")
    match = _NUMBER.match(plain)
    if match is None:
        raise BadRequest(f"'{text[:60]}' is not a number", hint=f"write it like {example(unit)}")
    if re.fullmatch(r"[-+]?\d{1,3},\d{3}", match[1]) and unit not in (Unit.COUNT, Unit.TOKEN):
        one, other = match[1].replace(",", "."), match[1].replace(",", "")
        raise BadRequest(f"is {match[1]} meant as {one} or as {other}?", hint="write it without the comma")
    number, tail = float(re.sub(r"[,_ ]", "", match[1])), _OF.sub("", match[2].lstrip("- ")).strip()
    if not tail:
        if unit is Unit.SHARE and abs(number) <= 1.0:
            return number
        if unit not in BARE and not bare:
            raise BadRequest(f"{match[1]} of what?", hint=f"write the unit too, like {example(unit)}")
        return number
    scale = _scale(tail, unit)
    if scale is None:
        raise BadRequest(f"'{tail[:40]}' is not a unit of this", hint=f"write it like {example(unit)}")
    return number * scale


def _scale(tail: str, unit: Unit) -> float | None:
    """The factor to SI: as the table of forms writes it, then as people type it in a hurry."""
    for cut in range(len(tail.split()), 0, -1):
        written = " ".join(tail.split()[:cut])
        for measured, factor in readings_of(written):
            if measured is unit or (unit is Unit.RATIO and measured is Unit.SHARE):
                return factor
        try:
            return parse(f"1 {written}", unit)
        except BadRequest:
            continue
    if unit in BARE and re.fullmatch(r"[A-Za-z][\w /-]*", tail) and not readings_of(tail.split()[0]):
        return 1.0  # "7 of them", "12 stages": a counted thing
    return None


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


_ONES, _TENS = [w for w in _WORDS if 0 < _WORDS[w] < 10], [w for w in _WORDS if _WORDS[w] >= 20]
_SMALL = rf"(?:{_any(_TENS)}(?:[ -]{_any(_ONES)})?|{_any(w for w in _WORDS if _WORDS[w] < 20)})"
_HUNDREDS = rf"{_SMALL}(?:[ -]hundred(?:[ -](?:and[ -])?{_SMALL})?)?"
_RUN = re.compile(
    rf"\b{_HUNDREDS}(?:[ -]{_any(w for w in _LARGE if w != 'hundred')}(?:[ -](?:and[ -])?{_HUNDREDS})?)*"
    rf"(?: point(?: {_any(_WORDS)})+)?(?:[ -](?:and[ -])?{_any(_PARTS)})?\b|\b{_any(_PARTS)}\b",
    re.IGNORECASE,
)


def spelled(text: str) -> str:
    """Number words and decimal commas as digits: "twenty-two", "21,9", "two and a half", "a third"."""
    plain = _DECIMAL_COMMA.sub(r"\1.\2", text)
    for pattern, instead in _SHORTHAND:
        plain = pattern.sub(instead, plain)
    plain = _RUN.sub(lambda m: f" {_worth(re.split(r'[ -]', m[0].lower())):g} ", plain)
    return re.sub(r"\s+", " ", plain).strip()


def _worth(words: list[str]) -> float:
    """The value of a run of number words."""
    whole, part, joined = 0.0, 0.0, False
    decimals: str | None = None
    for word in words:
        if word == "point":
            decimals = ""
        elif decimals is not None and word in _WORDS:
            decimals += str(_WORDS[word])
        elif word in _WORDS:
            part += _WORDS[word]
        elif word in _PARTS:  # "two and half" adds, "two thirds" multiplies
            part = part + _PARTS[word] if joined else (part or 1) * _PARTS[word]
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in _LARGE:
            whole, part = (whole + (part or 1)) * _LARGE[word], 0.0
        joined = word == "and"
    return whole + part + (float(f"0.{decimals}") if decimals else 0.0)


_WITH_UNIT = re.compile(r"(?<![\w.])([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([%µ°A-Za-z/]*(?:\s?/\s?[A-Za-z]+)?)")


def numbers(text: str) -> list[tuple[object, float]]:
    """Values in SI with what they measure; a bare number measures nothing and equals any."""
    found: list[tuple[object, float]] = []
    for match in _WITH_UNIT.finditer(spelled(text.replace("×", "x"))):
        value, unit = float(match[1]), match[2].strip(".,")
        known = readings_of(unit) if unit else ()
        found += [(measured, value * factor) for measured, factor in known] or [(None, value)]
    return found
