"""One line of a training log: its step, its clock and the values it prints, whatever the framework."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from stallwise.evidence.catalog import run
from stallwise.evidence.skeletons import TOKEN, Skeletons
from stallwise.readers._keys import Meaning, is_step, meaning_of

_NUMBER = r"[-+]?(?:nan|inf|\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?)"
# key: value and key = value, quoted or not, with up to five words and a unit in brackets.
_PAIR = re.compile(
    rf"(?<![\w/.@-])['\"]?([A-Za-z][\w/.@-]*(?: [A-Za-z][\w/.-]*){{0,4}}(?: ?\([^()]{{1,24}}\))?)['\"]?\s*[:=]\s*\[?['\"]?"
    rf"({_NUMBER})(?!\d|:\d|\.\d)\s*(%|[A-Za-zµ]+(?:/[A-Za-z]+)?(?![\w]*\s*[:=\"']|[\w]+))?",
    re.IGNORECASE,
)
# Words that often stand before their number without any sign between.
_BARE = re.compile(
    rf"(?<![\w/.'\"-])([a-z]+(?:_[a-z]+)+|time|dt|data|loader|train_loss|val_loss|eval_loss|loss|loss_scale"
    rf"|grad_norm|gnorm|lr|mfu|tps|tflops|mem|memory|rss)\s+({_NUMBER})\s*(%|[A-Za-zµ]+)?(?![\w])",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?:global_?step|(?<![\w./])(?:global[ _]step|train[ _]step|step|iteration|iter|batch|update|it))\s*[#:=]?\s*\[?\s*(\d+)(?:\s*/\s*(\d+))?",  # noqa: E501
    re.IGNORECASE,
)
_EPOCH_STEP = re.compile(r"[Ee]poch:?\s*\[(\d+)\]\s*\[\s*(\d+)/(\d+)\]|^e(\d+)-i(\d+)()")
_BAR = re.compile(r"(?<!\d)(\d+)/(\d+) \[(\d+(?::\d+)+)<")
_RATE = re.compile(
    r"(?<![\w.])(\d{1,12}(?:\.\d{0,12})?)\s?(s|ms|us|sec)\s?(?:/|per )\s?(it|iter|iteration|batch|step)\b|"
    r"(?<![\d.])(\d{1,12}\.?\d{0,12})\s?it/s"
)
_TOTAL = re.compile(r"(?<!\d)(\d+) (?:steps|iterations|batches|iters) in (\d+\.?\d*) ?(s|sec|seconds|ms|min)\b")
_LIST = re.compile(
    r"(?:step|iteration|iter|batch)\w* (?:durations?|times?)\s*\(?(ms|s|us)?\)?\s*:\s*\[?((?:\d+\.?\d*[, ]+){2,}\d+\.?\d*)",
    re.I,
)
_EPOCH = re.compile(r"\bepoch\s*[:#=\[]?\s*(\d+)", re.IGNORECASE)
_EPOCH_TIME = re.compile(
    r"(?:epoch[_ ]time|took|elapsed|time|duration|finished in|done in)\s*[:=]?\s*(\d+\.?\d*)\s*(s|sec|secs|seconds|min)\b"
    r"|\s(\d+\.?\d*)\s?(s)$",
    re.IGNORECASE,
)
_RETRIES = re.compile(r"(?<!\d)(\d+) CUDA memory allocation retries")
_CLOCK = re.compile(
    r"(?:(\d{4})[-/](\d\d)[-/](\d\d)[ T]|\b)(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6})\d*)?(?:(?=Z|[+-]\d\d)|\b)"
)
_RANK = re.compile(r"\[?rank[ _]?(\d+)\]?", re.IGNORECASE)
_STEP_TIME = "step_time"
_PLAIN_LOSS = re.compile(
    r"(?:^|[ /_.])(?:total|train|lm|training|reduced_train)?[ /_]?loss(?:/train/total)?$", re.IGNORECASE
)


@dataclass(slots=True)
class Line:
    """What one line said."""

    step: float | None = None
    rank: int | None = None
    values: list[tuple[Meaning, float]] = field(default_factory=list)


@dataclass(slots=True)
class _Plan:
    """How to read lines of one skeleton (a line without its digits): which number of the line is which value."""

    values: tuple[tuple[Meaning, int, float], ...]  # meaning, number of the line (-1: the constant), sign or constant
    step: int  # number of the line that is the step; -1 to look for it
    tokens: int
    has_step: bool
    rank: int  # number of the line that is the rank; -1 where it names none


def lines_in(
    text: Skeletons, wanted: Callable[[str], bool], heard: Callable[[int | None], bool]
) -> Iterator[tuple[int, Line]]:
    """Lines that say something, in order. Keys and units are looked up once for lines that differ in digits alone, and numbers
    are read only of ranks that are heard."""
    found: list[tuple[int, _Plan | None, list[str]]] = []
    for skeleton, first in enumerate(text.firsts):
        sample = text.lines[first]
        if not wanted(sample):
            continue
        plan = _plan(sample) if skeleton < MOST_PLANS else None
        if plan is not None and not plan.values and not plan.has_step:
            continue
        members = text.members(skeleton)
        rows = (
            text.numbers(skeleton, plan.tokens) if plan is not None and (plan.step >= 0 or not plan.has_step) else None
        )
        if rows is None:
            found += [(at, None, []) for at in members]
        else:
            found += [(at, plan, row) for at, row in zip(members, rows, strict=True)]
    found.sort(key=lambda x: x[0])
    for at, known, row in found:
        if known is None:
            line = parse_line(text.lines[at])
            if (line.values or line.step is not None) and heard(line.rank):
                yield at, line
        elif heard(int(row[known.rank]) if known.rank >= 0 and row[known.rank].isdigit() else None):
            values = [(m, _number(row[slot]) * sign if slot >= 0 else sign) for m, slot, sign in known.values]
            yield at, Line(_number(row[known.step]) if known.step >= 0 else None, None, values)


MOST_PLANS = 20_000  # skeletons; a log has a few dozen, prose has one a line


def _plan(text: str) -> _Plan | None:
    """How lines like this one are read; None where the numbers must be looked for each time."""
    places: list[int] = []
    line = parse_line(text, places)
    if (
        _LIST.search(text)
        or _TOTAL.search(text)
        or (line.step is None) != (step_of(text) is None)
        or len(places) != len(line.values)
    ):
        return None
    starts = [m.start() for m in TOKEN.finditer(text)]
    values: list[tuple[Meaning, int, float]] = []
    for (meaning, value), place in zip(line.values, places, strict=True):
        signed = text[place : place + 1] in "+-"
        at = place + signed
        if at in starts:
            values.append((meaning, starts.index(at), -1.0 if text[place : place + 1] == "-" else 1.0))
        elif value != value or value in (float("inf"), float("-inf")):
            values.append((meaning, -1, value))
        else:
            return None
    simple = None if _EPOCH_STEP.search(text) else (_BAR.search(text) or _STEP.search(text))
    slot = starts.index(simple.start(1)) if simple is not None and simple.start(1) in starts else -1
    ranked = _RANK.match(text)
    rank = starts.index(ranked.start(1)) if ranked is not None and ranked.start(1) in starts else -1
    return _Plan(tuple(values), slot, len(starts), line.step is not None, rank)


def parse_line(text: str, places: list[int] | None = None) -> Line:
    """Reads what it can; an empty Line for prose. `places` is filled with where each value's number starts."""
    places = [] if places is None else places
    line = Line(step=step_of(text), rank=_rank(text))
    spans: list[tuple[int, int]] = []
    plain_loss = False
    for match in _PAIR.finditer(text):
        meaning = _meaning(_bare_key(match[1]), match[3] or "")
        if meaning is None:
            continue
        spans.append(match.span())
        if meaning.quantity is run.LOSS:  # of several losses the plain or total one counts, not its parts
            plain = _PLAIN_LOSS.search(match[1]) is not None
            if plain and not plain_loss:
                kept = [i for i, (m, _) in enumerate(line.values) if m.quantity is not run.LOSS]
                line.values, places[:] = [line.values[i] for i in kept], [places[i] for i in kept]
            plain_loss = plain_loss or plain
        line.values.append((meaning, _number(match[2])))
        places.append(match.start(2))
    for match in _BARE.finditer(text):
        if any(a <= match.start() < b for a, b in spans):
            continue
        meaning = _meaning(_bare_key(match[1]), match[3] or "")
        if meaning is not None:
            line.values.append((meaning, _number(match[2])))
            places.append(match.start(2))
    for match in _RATE.finditer(text):
        if match[4]:
            meaning, value = meaning_of("it_s"), float(match[4])
        else:
            meaning, value = meaning_of(_STEP_TIME, match[2]), float(match[1])
        if meaning is not None:
            line.values.append((meaning, value))
            places.append(match.start(4) if match[4] else match.start(1))
    if retries := _RETRIES.search(text):
        meaning = meaning_of("alloc_retries")
        if meaning is not None:
            line.values.append((meaning, float(retries[1])))
            places.append(retries.start(1))
    if line.step is None and (epoch := _EPOCH.search(text)):
        _whole_epoch(line, float(epoch[1]), text)
    listed = _times_in(text)
    if listed:
        line.values = [(m, v) for m, v in line.values if m.quantity is not listed[0][0].quantity] + listed
    return line


def _whole_epoch(line: Line, epoch: float, text: str) -> None:
    """A line that sums up an epoch: its number is the place, and a bare duration is the epoch's."""
    line.step = epoch
    line.values = [(m, v) for m, v in line.values if m.quantity is not run.STEP_TIME]
    if match := _EPOCH_TIME.search(text.rstrip()):
        seconds = float(match[1] or match[3]) * (60.0 if (match[2] or "").lower() == "min" else 1.0)
        line.values.append((Meaning(run.EPOCH_TIME), seconds))


def _times_in(text: str) -> list[tuple[Meaning, float]]:
    """Step times that come as a list or as a total over many steps."""
    found: list[tuple[Meaning, float]] = []
    for match in _LIST.finditer(text):
        meaning = meaning_of(_STEP_TIME, match[1] or "s")
        if meaning is not None:
            found += [(meaning, float(v)) for v in re.split(r"[, ]+", match[2]) if v]
    for match in _TOTAL.finditer(text):
        meaning = meaning_of(_STEP_TIME, match[3])
        if meaning is not None and int(match[1]):
            found.append((meaning, float(match[2]) / int(match[1])))
    return found


def clock_of(text: str) -> float | None:
    """Seconds since midnight (or since 1970 where the date is printed)."""
    match = _CLOCK.search(text)
    if not match:
        return None
    seconds = int(match[4]) * 3600 + int(match[5]) * 60 + int(match[6]) + float(f"0.{match[7] or 0}")
    if match[1]:
        day = _day(match[1], match[2], match[3])
        return None if day is None else seconds + day
    return seconds


@lru_cache(maxsize=64)
def _day(year: str, month: str, day: str) -> float | None:
    try:
        return 86400.0 * date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None


def _rank(text: str) -> int | None:
    match = _RANK.match(text)
    return int(match[1]) if match else None


def _bare_key(word: str) -> str:
    return {"time": _STEP_TIME, "data": "data_time", "loader": "data_time"}.get(word.lower(), word)


def _meaning(key: str, unit: str) -> Meaning | None:
    bracket = re.search(r"\(([^()]*)\)$", key)
    if bracket:
        key, unit = key[: bracket.start()], unit if unit else bracket[1].split("/")[0]
    if is_step(key):
        return None
    found = meaning_of(key, unit)
    if found is None and bracket:  # "throughput per GPU (TFLOP/s/GPU)": the unit says what is meant
        found = meaning_of(bracket[1])
    while found is None and " " in key:  # words of the sentence before the key
        key = key.split(" ", 1)[1]
        found = None if is_step(key) else meaning_of(key, unit)
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", ""))


def step_of(text: str) -> float | None:
    """The step that a line names."""
    if match := _EPOCH_STEP.search(text):
        if match[1] is not None:
            return float(int(match[1]) * int(match[3]) + int(match[2]))
        return float(match[5])
    if match := _BAR.search(text):
        return float(match[1])
    if match := _STEP.search(text):
        return float(match[1])
    return None
