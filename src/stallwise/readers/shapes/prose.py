"""Numbers in sentences: each with the words before and after it, up to the next number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from stallwise.evidence.reading import Reading
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.written_numbers import normalise_numbers
from stallwise.units import Unit, readings_of

_P = patterns("prose")
THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6}
MONEY = ("$", "€", "£")
MOST_BEFORE = 7
ARROW = "→"
LONGEST_AFTER = 100


def sentences(text: str) -> list[str]:
    """Sentences and lines."""
    return [s.strip() for s in _P["sentence"].split(text) if s.strip()]


def numbers_in(sentence: str, place: str) -> Iterator[Reading]:
    """Every number of a sentence; `path` holds the words before it and those of its own clause, `after` what follows."""
    sentence = normalise_numbers(_P["formula"].sub(" ", sentence))
    for match in _P["product"].finditer(sentence):  # rows, columns and inner dimension
        for key, digits in zip("mnk", match.groups(), strict=True):
            yield Reading(("gemm", key), float(digits), "", place)
    sentence = _P["product"].sub(" ", sentence)
    matches = list(_P["number"].finditer(sentence))
    last_end, maps = 0, _maps(matches, sentence)
    for at, match in enumerate(matches):
        value, unit, end = _measured(match, sentence)
        if not maps and at + 1 < len(matches) and _P["to"].fullmatch(sentence[end : matches[at + 1].start()]):
            next_unit = _measured(matches[at + 1], sentence)[1]
            if not unit:
                unit = next_unit  # "from 180 to 22 tokens/s"
            elif unit in THOUSANDS and next_unit not in THOUSANDS:
                value, unit = value * THOUSANDS[unit], next_unit  # "from 3.1k to 1.2k samples/s"
        stop = matches[at + 1].start() if at + 1 < len(matches) else len(sentence)
        if value == 0.0 and _P["bound"].search(sentence[last_end : match.start()]):
            continue  # "num_workers greater than 0" says that there are some, not how many
        text = sentence[last_end : match.start()].rstrip(" :=~≈<>|")
        before = _P["word"].findall(text)[-MOST_BEFORE:]
        clause = _P["word"].findall(_P["break"].split(f"{text} ")[-1])[-MOST_BEFORE:]
        identifier = _P["identifier"].search(text)
        if identifier is not None:  # "port_xmit_wait 1201": one name, not three words of a sentence
            yield Reading((identifier[0],), value, unit, place)
            last_end = end
            continue
        after = sentence[end:stop].strip()[:LONGEST_AFTER]
        yield Reading((" ".join(before), " ".join(clause)), value, unit, place, in_prose=True, after=after)
        last_end = end


def _maps(matches: list[re.Match[str]], sentence: str) -> bool:
    """ "64 GPUs → 45 ms, 128 → 52 ms": arrows from a count to a measure are no change of one number, so no unit is shared."""
    for one, other in pairwise(matches):
        (_, unit, end), (_, next_unit, _) = _measured(one, sentence), _measured(other, sentence)
        if sentence[end : other.start()].strip() == ARROW and _counts(unit) and next_unit and not _counts(next_unit):
            return True
    return False


def _counts(unit: str) -> bool:
    """Whether a unit is a thing that is counted."""
    dimensions = {dimension for dimension, _ in readings_of(unit)}
    return bool(dimensions) and dimensions <= {Unit.COUNT, Unit.TOKEN}


def _measured(match: re.Match[str], sentence: str) -> tuple[float, str, int]:
    """A number, its unit and where both end; "1.2k samples/sec" is 1,200 of them."""
    value = float(match["value"].replace(",", ""))
    unit, end = _unit(match)
    if sentence[max(0, match.start() - 1) : match.start()] in MONEY:
        return value * THOUSANDS.get(unit, 1.0), "$", end if unit in THOUSANDS else match.end("value")
    if (
        unit == "B"
        and match["unit"]
        and not _P["of_a_model"].match(sentence, end)
        and sentence[match.end("value")] == " "
    ):
        unit = "bytes"  # "8 B latency"; a model's billions are written in one word, or named
    if unit in THOUSANDS and (rate := _P["rate"].match(sentence, end)) is not None:
        written = _P["per"].sub("/", rate[0].strip())
        if any(u in (Unit.TOKEN_PER_S, Unit.PER_S) for u, _ in readings_of(written)):
            return value * THOUSANDS[unit], written, rate.end()
    return value, unit, end


def _unit(match: re.Match[str]) -> tuple[str, int]:
    """The unit after a number and where it ends; words that are no unit are not taken."""
    if match["times"] or match["glue"]:
        return match["times"] or match["glue"], match.end()
    written = match["unit"] or ""
    if written in ("x", "×"):  # "512 x H100", "TP 8 x DP 64": a product, not a ratio
        return "", match.end("value")
    while written:
        if readings_of(_P["per"].sub("/", written)):
            return _P["per"].sub("/", written), match.start("unit") + len(written)
        cut = max(written.rfind(" "), written.rfind("/"))
        written = written[:cut].removesuffix(" per").rstrip("/ ") if cut > 0 else ""
    return "", match.end("value")
