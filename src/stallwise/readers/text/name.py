"""Names a reading: which quantity a key speaks of, in which unit, of which run; or nothing, where it is not sure.

The key is cut into words; words of unit, statistic and scope are taken off; the rest is held against the lexicon, rare
words weighing more. The dimension must agree, keys above break ties, and what scores too low keeps no name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import fsum
from typing import NamedTuple

from stallwise.evidence.quantity import Quantity
from stallwise.readers.text.entries import Entry, by_word, entries, weights
from stallwise.readers.text.scopes import EXPECTED, scope_of, scope_words, without_phrases
from stallwise.readers.text.words import classed, is_statistic, listed, statistic_of, word_table, words_of
from stallwise.units import Unit, readings_of

UNITS = "units.toml"
SURE_ENOUGH = 0.62  # of the key's weight must be explained: one strange rare word in two spoils a name
ENOUGH_IN_PROSE = 0.5  # in a sentence the words around a number are not all its name
ABOVE = 0.75  # what a word of the keys above is worth against one of the key itself
UNKNOWN_WEIGHT = 4.0  # of a word that no quantity has
CONTEXT = 0.25  # what explaining the keys above adds
CONTEXT_IN_PROSE = 0.05  # in a sentence only the unit stands above, and what it implies is no word that was said
DISTINCTIVE_WORD = 3.2  # weight from which one word is a name of its own
_NEED_UNIT = (Unit.SECOND, Unit.FLOP_PER_S, Unit.SHARE, Unit.RATIO, Unit.PER_S, Unit.TOKEN_PER_S, Unit.BYTE)
# Keys that trackers flatten: "perf/mfu", "trainer.step_time_ms", "run-1 - system/gpu.0.powerWatts".
_STEP_DOWN = re.compile(r"[/.](?=[A-Za-z0-9_])")
_RUN_LABEL = re.compile(
    r"^.{0,200} (?:[-|·]|/(?! (?:step|it|iter|iteration|batch|token|request|sample|epoch|gpu|rank|s|sec)\b)) "
)  # a run's or a card's own name before the key
_REMARK = re.compile(r"\s{0,4}\([^()]{1,60}\)\s*$")
_BRACKET = re.compile(r"[(\[]([^()\[\]]{1,24})[)\]]\s*$")
_TEXTS = (Unit.TEXT, Unit.FLAG)
_KIN = ((Unit.COUNT, Unit.TOKEN), (Unit.SHARE, Unit.RATIO), (Unit.PER_S, Unit.HERTZ))  # written alike
_INHERITED = (Unit.SECOND, Unit.BYTE)  # of what is listed below a key; a rate's parts are rarely rates


class Name(NamedTuple):
    """What a key means."""

    quantity: Quantity
    scale: float
    scope: str = ""  # before, now, expected or nothing
    inverse: bool = False  # steps a second instead of seconds a step
    score: float = 1.0
    unit_known: bool = False


@lru_cache(maxsize=1 << 15)
def name(path: tuple[str, ...], unit: str = "", text: bool = False, in_prose: bool = False) -> Name | None:
    """The quantity under this path; `text` where the value is a word. None when no quantity fits well enough."""
    if not path:
        return None
    found = _named(path, unit, text, in_prose)
    if found is None and not in_prose:
        bare = _REMARK.sub("", path[-1])
        if bare and bare != path[-1] and (found := _named((*path[:-1], bare), unit, text, in_prose)) is not None:
            return found  # "all-reduce (profiler, per step)": what stands in brackets is said beside it
        own = _RUN_LABEL.sub("", path[-1])
        parts = _STEP_DOWN.split(own)
        if all(parts) and (len(parts) > 1 or own != path[-1]):
            found = _named((*path[:-1], *parts), unit, text, in_prose)
    return found


def _named(path: tuple[str, ...], unit: str, text: bool, in_prose: bool) -> Name | None:
    if len(path) > 1 and is_statistic(path[-1]):  # `iteration: {mean: 940}`
        path = (*path[:-2], f"{path[-1]} {path[-2]}")
    if len(path) > 1 and " ".join(words_of(path[-1])) in listed(UNITS, "how_many"):  # `gpus: {count: 8}`
        path = path[:-1]
    words, written = without_unit(path[-1])
    above = tuple(w for part in path[:-1] for w in words_of(part))
    scope = scope_of(words_of(path[-1])) or scope_of(above)
    statistic = statistic_of(words) or statistic_of(above)
    if statistic == "spread":
        return None
    scoping = scope_words()
    naming = tuple(w for w in _without_amounts(words) if w not in scoping)
    around = classed(tuple(w for w in without_phrases(above) if w not in scoping))
    own = classed(naming) if naming else around  # "measured" and "target" say of what nothing
    if not own:
        return None
    units = readings_of(unit) or readings_of(written) or _unit_above(path)
    around |= {
        w for u, _ in units for w in word_table(UNITS)["implied"].get(u.value if u is not None else "rate of steps", ())
    }
    best = _best(own, around - own, units, text, in_prose)
    if best is None:
        return None
    entry, score = best
    quantity = entry.quantity
    if statistic == "tail":
        if not entry.quantity.tail:
            return None
        quantity = entries()[entry.quantity.tail].quantity
    if scope == EXPECTED and entry.quantity.expected:
        quantity = entries()[entry.quantity.expected].quantity if entry.quantity.expected in entries() else quantity
    scale, inverse = _scale(quantity, units)
    return Name(quantity, scale, scope, inverse, score, bool(units))


def _without_amounts(words: tuple[str, ...]) -> tuple[str, ...]:
    """ "retrieval at 32k tokens", "at 4 QPS": a number with its unit says under which condition, and names nothing."""
    amounts = [w.rstrip("km").isdigit() for w in words]
    counted = [bool(readings_of(w)) and at > 0 and amounts[at - 1] for at, w in enumerate(words)]
    ends = [*counted[1:], False]
    return tuple(w for at, w in enumerate(words) if not counted[at] and not (amounts[at] and ends[at]))


def _unit_above(path: tuple[str, ...]) -> tuple[tuple[Unit | None, float], ...]:
    """The unit that a key above ends in, the nearest first: `step_breakdown_ms: {forward: 11.2}`."""
    for key in reversed(path[:-1]):
        above = readings_of(without_unit(key)[1])
        if any(u in _INHERITED for u, _ in above):
            return above
    return ()


def without_unit(key: str) -> tuple[tuple[str, ...], str]:
    """The words of a key and the unit it ends in, in the capitals of the key: Gbps is no GBps."""
    words, unit = _without_unit(key)
    at = key.replace("_", "/").lower().rfind(unit) if unit else -1
    return words, key[at : at + len(unit)].replace("_", "/") if at >= 0 else unit


def _without_unit(key: str) -> tuple[tuple[str, ...], str]:
    if bracket := _BRACKET.search(key):
        if " ".join(words_of(bracket[1])) in word_table(UNITS)["by_the_second"]:  # "Output Token Throughput (per sec)"
            before = words_of(key[: bracket.start()])
            return (*before, "rate"), "tokens/s" if "token" in classed(before) else "/s"
        if readings_of(bracket[1]):
            inside = bracket[1]
            return words_of(key[: bracket.start()] + (" " + inside if _is_rate(inside) else "")), inside
    words = without_phrases(words_of(key))
    for size in (3, 2):
        tail = words[-size:]
        if len(words) >= size and tail[0] != "per" and ("per" in tail or "/" in key):
            joined = "/".join(w for w in tail if w != "per")
            if readings_of(joined):
                return words, joined
    if len(words) > 2 and words[-2] == "per" and any(u is Unit.SECOND for u, _ in readings_of(words[-1])):
        return words, f"/{words[-1]}"  # "restarts_per_day": what follows "per" is never the unit by itself
    if len(words) > 1 and words[-1] in ("s", "sec", "second"):
        if words[-2] in listed(UNITS, "counted") and not listed(UNITS, "timed") & classed(words):
            return words, f"{words[-2]}/{words[-1]}"  # "user_tok_s", "requests_sec"
        if any(u is Unit.BYTE for u, _ in readings_of(words[-2])):
            return words[:-2], f"{words[-2]}/{words[-1]}"  # "read_MB_s"
    others = listed(UNITS, "not_in_keys")
    if words and words[-1] not in others and readings_of(words[-1]) and (len(words) > 1 or _is_rate(words[-1])):
        return (words if _is_rate(words[-1]) else words[:-1]), words[-1]
    for word in words:  # "tflops_per_gpu", "mfu_pct_avg"
        if len(word) > 2 and word not in others and readings_of(word) and word not in ("sec", "second"):
            return (words if _is_rate(word) else tuple(w for w in words if w != word)), word
    return words, ""


def _is_rate(unit: str) -> bool:
    """Units whose own words say what is measured: tokens/s, TFLOP/s, req/s."""
    return any(u in (Unit.FLOP_PER_S, Unit.TOKEN_PER_S, Unit.PER_S) for u, _ in readings_of(unit))


def _best(
    own: frozenset[str],
    around: frozenset[str],
    units: tuple[tuple[Unit | None, float], ...],
    text: bool,
    in_prose: bool,
) -> tuple[Entry, float] | None:
    weight = weights()
    own_weight = fsum(weight.get(w, UNKNOWN_WEIGHT) for w in own)
    around_weight = fsum(weight.get(w, UNKNOWN_WEIGHT) for w in around)
    found: dict[str, tuple[float, Entry]] = {}
    for word in own:
        for entry, phrase in by_word().get(word, ()):
            if not _agrees(entry.quantity.unit, units, text) or not phrase <= own | around:
                continue
            if "maximum" in own - phrase and entry.quantity.unit is Unit.COUNT:
                continue  # how many there may be, not how many there are
            matched = fsum(weight[w] for w in phrase & own) + ABOVE * fsum(weight[w] for w in phrase - own)
            if len(phrase) == 1 and not units and weight[word] < DISTINCTIVE_WORD and entry.quantity.unit in _NEED_UNIT:
                continue  # "rate", "achieved", "use" alone could be anything
            score = matched / (own_weight + fsum(weight[w] for w in phrase - own))
            score += (
                (CONTEXT_IN_PROSE if in_prose else CONTEXT)
                * fsum(weight[w] for w in phrase & around)
                / (around_weight or 1.0)
            )
            if score > found.get(entry.quantity.name, (0.0, entry))[0]:
                found[entry.quantity.name] = (score, entry)
    # Of equals a number is a measured time or share rather than a yes or no.
    ranked = sorted(
        found.values(), key=lambda x: (-x[0], x[1].quantity.unit is Unit.FLAG and not text, _plainness(x[1].quantity))
    )
    if not ranked or ranked[0][0] < (ENOUGH_IN_PROSE if in_prose else SURE_ENOUGH):
        return None
    return ranked[0][1], ranked[0][0]


def _plainness(quantity: Quantity) -> tuple[int, str]:
    """Of equals what a person says of a run comes first, counters of a kernel or card last."""
    family = quantity.name.partition(".")[0] if "." in quantity.name else ""
    order = {"": 0, "run": 1, "serve": 2, "layout": 2, "kernel": 3}
    return order.get(family, 4), quantity.name


def _agrees(unit: Unit, units: tuple[tuple[Unit | None, float], ...], text: bool) -> bool:
    if text:
        return unit in _TEXTS
    if not units:
        return unit is not Unit.TEXT
    kin = next((pair for pair in _KIN if unit in pair), (unit,))
    return any(u in kin or (u is None and unit is Unit.SECOND) for u, _ in units)


def _scale(quantity: Quantity, units: tuple[tuple[Unit | None, float], ...]) -> tuple[float, bool]:
    for unit, factor in units:
        if unit is None and quantity.unit is Unit.SECOND:
            return 1.0, True
        if unit is quantity.unit:
            return factor, False
    return (units[0][1] if units else 1.0), False
