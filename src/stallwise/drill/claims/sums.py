"""The numbers of an account against each other: comparisons, equations and factors that do not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.drill.calculator import calculate
from stallwise.drill.quantity import spelled
from stallwise.errors import BadRequest
from stallwise.units import Unit, readings_of

NEAR = 1.12  # two rounded numbers divided: 5% each, and what is left of "about"
_UNIT = r"(?:\s?(?:%|percent|[munµ]?s|min|h|x|[kMGT]i?B(?:/s)?|tok(?:ens?)?/s|[GTP]?FLOPS?(?:/s)?|GPUs?)(?![\w]))?"
_DIGITS = rf"(?:\d[\d,]*\d|\d)(?:\.\d+)?{_UNIT}(?![\w]|\.\d)"
_NUMBER = rf"(?<![\w.,/=^*x)(-]){_DIGITS}"  # not the end of a formula
_PLAIN = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s?(.*)")
_UP = r"more|higher|larger|greater|bigger|longer|above|slower"
_DOWN = r"less|lower|fewer|smaller|shorter|below|under|faster"
_RISES = r"rose|rises|grew|grows|went up|goes up|climbs|climbed|increased|increases"
_FALLS = r"fell|falls|dropped|drops|went down|goes down|sank|decreased|decreases|shrank"
_IS = r"(?:is|are|was|were|has|have|gives|means|stays?|became|has become|=)"
_WORDS = r"(?:\s+[^\s\d.,;:]+){0,3}?"  # at most three, in between
# "41% is less than the expected 22%": both ends have a number, a verb stands between.
_COMPARED = re.compile(
    rf"({_NUMBER}){_WORDS}\s+{_IS}\s+(?:[a-z]+\s+)?({_UP}|{_DOWN})\s+(?:[a-z]+\s+)?(?:than)?{_WORDS}\s*({_NUMBER})"
)
_MOVED = re.compile(rf"\b(?:({_RISES})|(?:{_FALLS}))\s+(?:[a-z]+\s+)?from\s+({_NUMBER})\s+to\s+({_NUMBER})")
_EQUATION = re.compile(
    rf"({_NUMBER}(?:\s?[*/x×]\s?{_DIGITS})+)\s*(?:=|is|gives|makes)\s*(?:about |some |~)?({_DIGITS})"
)
# "180 of 650, so 1.9x": two numbers side by side, and within a few words the factor that is drawn from them.
_FACTOR = re.compile(
    rf"({_NUMBER})\s*(?:->|\u2192|of|against|to|vs\.?|instead of|versus)\s*({_NUMBER})[^\d]{{0,60}}?"
    rf"\b(?:means?|so|is|are|that'?s|=|:)\s[^\d;]{{0,40}}?({_NUMBER})\s*"
    r"(times|-?fold|(?:percent|%) (?:longer|more|less|slower))?"
)


def false_sums(text: str) -> list[str]:
    """Every comparison, equation or factor that its own numbers refute, in words."""
    return [*false_comparisons(text), *_equations(spelled(text)), *_factors(spelled(text))]


def false_comparisons(text: str) -> Iterator[str]:
    """Numbers that are called more or less than they are."""
    text = spelled(text)
    for match in _COMPARED.finditer(text):
        one, word, other = _value(match[1]), match[2], _value(match[3])
        up = re.fullmatch(_UP, word) is not None
        if word in ("slower", "faster") and Unit.SECOND not in (one[1], other[1]):
            up = not up  # a rate
        if _comparable(one, other) and (one[0] < other[0] if up else one[0] > other[0]):
            yield f"{match[1].strip()} is not {word} than {match[3].strip()}"
    for match in _MOVED.finditer(text):
        one, other = _value(match[2]), _value(match[3])
        if _comparable(one, other) and (one[0] > other[0] if match[1] else one[0] < other[0]):
            yield f"from {match[2]} to {match[3]} is the other direction"


def _equations(text: str) -> Iterator[str]:
    for match in _EQUATION.finditer(text):
        try:
            holds = _same_digits(calculate(match[1].replace(" x ", " * ")), _value(match[2])[0])
        except BadRequest:
            continue
        if not holds:
            yield f"{match[1].strip()} is not {match[2].strip()}"


def _factors(text: str) -> Iterator[str]:
    for match in _FACTOR.finditer(text):
        one, other, claimed = (_value(match[n]) for n in (1, 2, 3))
        if one[0] and other[0] and claimed[0] and (match[4] or "factor" in match[0] or claimed[1] is Unit.RATIO):
            ratio = max(one[0], other[0]) / min(one[0], other[0])
            if not any(_same_digits(drawn, claimed[0]) for drawn in (ratio, 1 / ratio, ratio - 1, 1 - 1 / ratio)):
                yield f"{match[1].strip()} against {match[2].strip()} is {ratio:.3g} times, not {match[3].strip()}"


def _value(written: str) -> tuple[float, object]:
    """In SI, with what it measures."""
    found = _PLAIN.match(written.strip())
    if found is None:
        return 0.0, None
    number = float(found[1].replace(",", ""))
    for unit, factor in readings_of(found[2].strip()) if found[2].strip() else ():
        return number * factor, unit
    return number, None


def _comparable(one: tuple[float, object], other: tuple[float, object]) -> bool:
    return one[1] is other[1] or None in (one[1], other[1])


def _same_digits(one: float, other: float) -> bool:
    """Equal up to rounding and to the prefix of a unit that was left out."""
    if one <= 0 or other <= 0:
        return one == other
    return any(1 / NEAR <= one / other * 10.0**n <= NEAR for n in range(-15, 16))
