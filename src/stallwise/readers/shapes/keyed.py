"""Pairs of a key and a value in a line: `k: v`, `k=v`, `k (unit): v`, `k   v unit`, a few of them or many."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.reading import Cell, Reading, Rows, rows_of
from stallwise.readers._cells import number_of
from stallwise.readers._patterns import patterns
from stallwise.units import readings_of

NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
# A unit right after its number: letters, a sign, or a rate. Longer words follow in sentences and are no units.
UNIT = r"%|°C|(?<=\d)[x×](?!\w)|(?!x\b)[A-Za-zµμ]{1,8}(?:/[A-Za-z]{1,10}){0,2}"
_PAIR = re.compile(
    rf"(?<![\w#/.@])(?<![\w.]-)(?P<key>[A-Za-z#][\w#/.@%-]{{0,60}}"
    rf"(?: [A-Za-z0-9#(][\w#/.@%()-]*){{0,6}}?(?: ?[(\[][^()\[\]]{{1,24}}[)\]])?)"
    rf"(?:\s{{0,4}}[:=]\s{{0,40}}| ?\.{{3,80}} ?(?=[-+]?\d)|\s{{2,80}}(?=[-+]?\.?\d))"
    rf"['\"]?(?P<value>{NUMBER})(?![\w.]*[-:/]\d)\s*(?P<unit>(?:{UNIT})(?![\w.-]{{0,40}}\s{{0,4}}[:=]))?",
)
_WORD_PAIR = re.compile(
    r"^[ \t]{0,16}[-*•]?[ \t]{0,4}\**(?P<key>[A-Za-z][\w /().+-]{0,48}?)\**[ \t]{0,40}[:=][ \t]{0,40}(?P<value>\S.{0,120}?)$"
)
_TRIPLE = re.compile(
    rf"^\s*(?P<key>[A-Za-z][\w /().:%+-]*?)\s{{2,}}(?P<unit>%|[A-Za-zµ][\w/%.]{{0,20}})\s{{2,}}(?P<value>{NUMBER})\s*$"
)
_ANY_NUMBER = re.compile(rf"(?<![\w.]){NUMBER}(?![\w])")
LONGEST = 4000
_P = patterns("keyed")


def triple_in(text: str, place: str) -> Reading | None:
    """A row of a report: name, unit, number."""
    match = _TRIPLE.match(text[:LONGEST])
    return Reading((match["key"],), float(match["value"].replace(",", "")), match["unit"], place) if match else None


def all_paired(text: str, pairs: list[Reading]) -> bool:
    """True when every number of the line stands under a key."""
    return bool(pairs) and len(pairs) >= len(_ANY_NUMBER.findall(text[:LONGEST]))


def pair_matches(text: str) -> Iterator[re.Match[str]]:
    """Every pair, with its key, value and unit; a word that is no unit may begin the next key."""
    at = 0
    while match := _PAIR.search(text, at, LONGEST):
        yield match
        at = match.end() if readings_of(match["unit"] or "") else match.end("value")


def pairs_in(text: str, place: str) -> Iterator[Reading]:
    """Every pair of the line with a number, under the line's heading; keys are as written, the words before them cut at signs."""
    found = list(pair_matches(text))
    headed = _P["heading"].match(text[:LONGEST]) if found else None
    above = (headed["head"].strip(),) if headed is not None and found[0].start("key") >= headed.end() else ()
    for at, match in enumerate(found):
        value = float(match["value"].replace(",", ""))
        taken = any(following.start("key") <= match.start("unit") for following in found[at + 1 : at + 2])
        yield Reading((*above, match["key"].strip()), value, "" if taken else match["unit"] or "", place)


def word_pair(text: str, place: str) -> Reading | None:
    """A line that is one pair of a key and words."""
    match = _WORD_PAIR.match(text[:LONGEST])
    return Reading((match["key"].strip(),), match["value"].strip(), "", place) if match else None


def parts_in(text: str, place: str) -> list[Reading]:
    """A line of one key and several values, each with words of its own: "loss: 2.28 before, 2.31 now"."""
    whole = word_pair(text, place)
    if whole is None or any(c.isdigit() for c in whole.path[0]):
        return []
    found = []
    for written in _P["between"].split(str(whole.value)):
        part = _P["part"].fullmatch(written.strip())
        unit, _, after = part["rest"].partition(" ") if part is not None else ("", "", "")
        unit, after = (unit, after) if readings_of(unit) else ("", part["rest"] if part is not None else "")
        if part is None or bool(part["before"]) == bool(after):
            return []
        found.append(Reading((*whole.path, part["before"] or after), f"{part['value']} {unit}".strip(), "", place))
    return found if len(found) > 1 else []


def over_places(key: str, numbers: list[Cell], line: int = 0) -> Rows | None:
    """A list of one number a place, such as "tokens per rank", as rows of the place and its number; None for any other key."""
    over = _P["over"].match(key.strip())
    if over is None:
        return None
    value = over["value"] + (f" ({over['unit']})" if over["unit"] else "")
    records: list[list[Cell]] = [[float(at), number] for at, number in enumerate(numbers)]
    places = [line or at for at in range(1, len(numbers) + 1)]
    return rows_of([over["axis"].rstrip("s"), value], records, places, noun="line" if line else "item")


def list_in(text: str, line: int) -> Rows | None:
    """The same of a line."""
    found = _P["list"].match(text[:LONGEST])
    if found is None:
        return None
    key = found["key"] if not found["unit"] else f"{found['key']} ({found['unit']})"
    numbers = [number_of(number) for number in found["numbers"].split(",")]
    return over_places(key, [n for n in numbers if n is not None], line) if None not in numbers else None
