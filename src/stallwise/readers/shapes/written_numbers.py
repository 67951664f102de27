"""Numbers as people write them, told as digits with a unit: 2,9 s; 1h 22min; two thirds of; 3-4 s; 1024/128 (written_numbers.toml)."""

from __future__ import annotations

import re
from functools import cache

from stallwise.readers._patterns import document, patterns
from stallwise.units import Unit, readings_of

WIDE = 2.0  # ends of a range farther apart than this say that it varies, not what it is
_P, _DATA = patterns("written_numbers"), document("shapes/written_numbers")
_COUNTED = (Unit.COUNT, Unit.TOKEN)


def normalise_numbers(sentence: str) -> str:
    """The same sentence with every number as digits, a point and a unit."""
    if not any(c.isdigit() for c in sentence) and not _fractions().search(sentence) and not _tens().search(sentence):
        return sentence
    sentence = _tens().sub(_in_digits, sentence)
    sentence = _side_by_side(_P["arrow"].sub(" → ", sentence))
    text = _P["decimal_comma"].sub(lambda m: f"{m[1]}.{m[2]}" if _measures(m[3]) else m[0], sentence)
    text = _P["hours"].sub(lambda m: f"{int(m[1]) * 60 + int(m[2])} min", text)
    text = _P["minutes"].sub(lambda m: f"{int(m[1]) * 60 + int(m[2])} s", text)
    text = _P["between"].sub(lambda m: _middle(m[1], m[2], m[0], f" {m[3]}", "varying"), text)
    text = _P["range"].sub(lambda m: _middle(m[1], m[2], m[0], "", "") if _measures(m[3]) else m[0], text)
    text = _P["from_to"].sub(
        lambda m: f"{m[1]} {_middle(m[2], m[3], f'{m[2]} to {m[3]}', '', '')}" if _measures(m[4]) else m[0], text
    )
    text = _P["and_more"].sub("", text)
    text = _P["part"].sub(lambda m: f"{100 * int(m[1]) / int(m[2]):.4g}%" if 0 < int(m[1]) <= int(m[2]) else m[0], text)
    text = _fractions().sub(lambda m: f"{_share(m[1]):.4g}% of ", text)
    text = _P["chained"].sub(_same_value, text)
    text = _P["keys"].sub(_each_with_its_key, text)
    text = _P["of_most"].sub(_of_most, text)
    text = _written_out().sub(lambda m: f"{document('shapes/written_numbers')['number'][m[1].lower()]}{m[2]}", text)
    for pattern, means, where in _notations():
        if where.search(text):
            text = pattern.sub(means, text)
    return text


def _side_by_side(sentence: str) -> str:
    """ "64/128/512 GPUs: 45/52/340 ms": two lists of one length belong together; a single one may be a date or a path."""
    lengths = [m[0].count("/") for m in _P["slashed"].finditer(sentence)]
    if len(lengths) != len(set(lengths)):
        return _P["slashed"].sub(lambda m: ", ".join(p.strip() for p in m[0].split("/")), sentence)
    return sentence


def _measures(unit: str) -> bool:
    """A unit of something measured; not a thing that is counted, nor a word."""
    found = readings_of(unit)
    return bool(found) and all(dimension not in _COUNTED for dimension, _ in found)


def _middle(low: str, high: str, written: str, unit: str, varying: str) -> str:
    a, b = float(low), float(high)
    if not a < b:
        return written
    return f"{(a + b) / 2:.6g}{unit}" if b <= WIDE * a else varying


def _each_with_its_key(match: re.Match[str]) -> str:
    """ "ISL/OSL 1024/128" is ISL 1024, OSL 128."""
    keys, values = match["keys"].split("/"), match["values"].split("/")
    if len(keys) != len(values):
        return match[0]
    unit = f" {match['unit']}" if match["unit"] else ""
    return ", ".join(f"{match['head']}{k.strip()} {v.strip()}{unit}" for k, v in zip(keys, values, strict=True))


def _same_value(match: re.Match[str]) -> str:
    """ "M=N=K=4096" gives each of the keys this value."""
    keys = [key.strip() for key in match["keys"].split("=") if key.strip()]
    return ", ".join(f"{key}={match['value']}" for key in keys)


def _of_most(match: re.Match[str]) -> str:
    """ "310W/350W", "61/80 GB": so much of so much; not two values of one key."""
    same = match[2] in (None, match[4])
    fits = same and _measures(match[4]) and match[4] != "%" and float(match[1]) <= float(match[3])
    return f"{match[1]} {match[4]} of {match[3]} {match[4]}" if fits else match[0]


def _share(words: str) -> float:
    return 100.0 * float(_DATA["fraction"][" ".join(words.lower().split())])


@cache
def _fractions() -> re.Pattern[str]:
    words = "|".join(sorted(_DATA["fraction"], key=len, reverse=True))
    return re.compile(
        rf"(?<![\w-])(?<!by )({words})(?: of | (?=(?:{document('shapes/written_numbers')['whole']['words']})\b))",
        re.IGNORECASE,
    )


@cache
def _tens() -> re.Pattern[str]:
    tens, units = ("|".join(_DATA[key]) for key in ("tens", "unit"))
    return re.compile(rf"(?<![\w-])({tens})(?:[- ]({units}))?(?![\w-])", re.IGNORECASE)


def _in_digits(match: re.Match[str]) -> str:
    return str(_DATA["tens"][match[1].lower()] + (_DATA["unit"][match[2].lower()] if match[2] else 0))


@cache
def _written_out() -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w-])({'|'.join(_DATA['number'])})( (?:{_DATA['counted']['words']})\b)",
        re.IGNORECASE,
    )


@cache
def _notations() -> tuple[tuple[re.Pattern[str], str, re.Pattern[str]], ...]:
    return tuple(
        (re.compile(row["pattern"], re.IGNORECASE), row["means"], re.compile(row["where"], re.IGNORECASE))
        for row in _DATA["notation"]
    )
