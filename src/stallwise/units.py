"""Numbers with units: what people type into SI, and SI into what people read.

Inside stallwise every number is SI (seconds, bytes, FLOP/s) and its name carries the unit. Prefixes, GiB and
microseconds exist only in this file.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path

from stallwise.errors import BadRequest
from stallwise.tables import table


class Unit(Enum):
    """The unit of a fact, always SI or dimensionless."""

    SECOND = "s"
    BYTE = "B"
    BYTE_PER_S = "B/s"
    FLOP = "FLOP"
    FLOP_PER_S = "FLOP/s"
    HERTZ = "Hz"
    WATT = "W"
    JOULE = "J"
    CELSIUS = "°C"
    COUNT = "count"
    TOKEN = "token"
    PER_S = "1/s"
    TOKEN_PER_S = "token/s"
    SHARE = "share"
    RATIO = "ratio"
    DOLLAR = "$"
    DOLLAR_PER_HOUR = "$/h"
    TEXT = "text"
    FLAG = "flag"


_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
LONGEST_NUMBER = 200  # letters of a number with its unit
_QUANTITY = re.compile(r"^\s*([-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*$")


def parse(text: str | float | int, unit: Unit) -> float:
    """Reads "80 GiB", "58ms", "22%", "989 TFLOP/s" as SI; a bare number is already SI."""
    if isinstance(text, (int, float)):
        return _finite(text, unit)
    match = _QUANTITY.match(text) if isinstance(text, str) and len(text) <= LONGEST_NUMBER else None
    if not match:
        raise BadRequest(f"'{str(text)[:LONGEST_NUMBER]}' is not a number", hint=f"write it like {example(unit)}")
    number = _finite(match[1].replace(",", "").replace("_", ""), unit)
    suffix = match[2]
    if not suffix:
        return number
    scale = _scale(suffix, unit)
    if scale is None:
        raise BadRequest(f"'{suffix}' is not a unit of {unit.value}", hint=f"write it like {example(unit)}")
    return number * scale


def _finite(number: str | float, unit: Unit) -> float:
    try:
        found = float(number)
    except (OverflowError, ValueError):
        found = math.inf
    if not math.isfinite(found):
        raise BadRequest(f"'{str(number)[:40]}' is no number of this world", hint=f"write it like {example(unit)}")
    return found


def _scale(suffix: str, unit: Unit) -> float | None:
    if unit is Unit.SECOND:
        return factor(suffix, unit)
    if unit in (Unit.SHARE, Unit.RATIO):
        return {"%": 0.01, "percent": 0.01, "pct": 0.01, "x": 1.0}.get(suffix)
    if unit is Unit.CELSIUS:
        return 1.0 if suffix in ("C", "°C", "c") else None
    if unit in (Unit.BYTE, Unit.BYTE_PER_S):
        return _bytes_scale(suffix, per_second=unit is Unit.BYTE_PER_S)
    tails = {
        Unit.FLOP_PER_S: ("FLOP/s", "FLOPS", "FLOPs", "FLOPs/s", "flop/s", "flops", "F/s", "OP/s", "OPS", "TOPS"),
        Unit.FLOP: ("FLOP", "FLOPs", "flop", "flops"),
        Unit.HERTZ: ("Hz", "hz"),
        Unit.WATT: ("W", "w"),
        Unit.JOULE: ("J",),
        Unit.PER_S: ("/s", "qps", "rps", "QPS", "req/s", "1/s"),
        Unit.TOKEN_PER_S: ("tok/s", "token/s", "tokens/s", "t/s", "tps"),
        Unit.TOKEN: ("tok", "token", "tokens"),
        Unit.COUNT: ("",),
        Unit.DOLLAR: ("$", "USD"),
        Unit.DOLLAR_PER_HOUR: ("$/h", "USD/h"),
    }.get(unit, ())
    for tail in (*tails, ""):
        if suffix.endswith(tail):
            prefix = suffix[: len(suffix) - len(tail)].strip()
            if prefix in _DECIMAL:
                return _DECIMAL[prefix]
            if prefix in ("B", "b") and unit in (Unit.COUNT, Unit.TOKEN):  # "70B parameters"
                return 1e9
    return None


def _bytes_scale(suffix: str, *, per_second: bool) -> float | None:
    body = suffix
    if per_second:
        for tail in ("/s", "ps", "/sec"):
            if body.endswith(tail):
                body = body[: -len(tail)]
                break
    body = body.removesuffix("ytes").removesuffix("yte")
    if per_second and body.lower().endswith("bits"):  # rates are told in bits, sizes hardly: "16 bits" is a width
        per, body = 1 / 8, body[:-4]
    elif body.lower().endswith("bit"):
        per, body = 1 / 8, body[:-3]
    elif body.endswith("B"):
        per, body = 1.0, body[:-1]
    elif body.endswith("b"):  # Gb is gigabit; a lone "b" or "gb" typed in a hurry is bytes
        per, body = (1 / 8 if per_second and body[:-1] in ("G", "M", "K", "T") else 1.0), body[:-1]
    else:
        per = 1.0
    body = body.strip()
    for prefixes in (_BINARY, _DECIMAL):
        if body in prefixes:
            return prefixes[body] * per
    upper = body[:1].upper() + body[1:]
    return next((table[upper] * per for table in (_BINARY, _DECIMAL) if upper in table), None)


def example(unit: Unit) -> str:
    """One way to type a value of this unit."""
    return {
        Unit.SECOND: "58ms or 1.5s", Unit.BYTE: "80GB or 80GiB", Unit.BYTE_PER_S: "3.35TB/s",
        Unit.FLOP_PER_S: "989TFLOP/s", Unit.FLOP: "2.1PFLOP", Unit.SHARE: "22% or 0.22", Unit.RATIO: "1.5",
        Unit.HERTZ: "1980MHz", Unit.WATT: "700W", Unit.PER_S: "16/s", Unit.TOKEN_PER_S: "180 tok/s",
        Unit.TOKEN: "8192", Unit.COUNT: "512", Unit.CELSIUS: "83C", Unit.FLAG: "yes or no", Unit.TEXT: "a word",
    }.get(unit, "12.5")  # fmt: skip


def show(value: float, unit: Unit) -> str:
    """A value as a person would write it."""
    if not math.isfinite(value):
        return "unknown" if value != value else "endless" if value > 0 else "-endless"
    if unit is Unit.SECOND:
        return _show_seconds(value)
    if unit is Unit.SHARE:
        return f"{value:.0%}" if abs(value) >= 0.1 or value == 0 else f"{value:.1%}"
    if unit is Unit.RATIO:
        return f"{value:.2f}x"
    if unit is Unit.BYTE:
        return _with_prefix(value, "B")
    if unit is Unit.CELSIUS:
        return f"{value:.0f} °C"
    if unit in (Unit.COUNT, Unit.TOKEN):
        return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
    if unit is Unit.DOLLAR:
        return f"${value:,.2f}"
    if unit is Unit.FLAG:
        return "yes" if value else "no"
    return _with_prefix(value, unit.value)


def _show_seconds(value: float) -> str:
    size = abs(value)
    if size == 0:
        return "0 s"
    if size < 1e-6:
        return f"{value * 1e9:.3g} ns"
    if size < 1e-3:
        return f"{value * 1e6:.3g} us"
    if size < 1:
        return f"{_three(value * 1e3)} ms"
    if size < 120:
        return f"{_three(value)} s"
    if size < 7200:
        return f"{_three(value / 60)} min"
    if size < 172800:
        return f"{_three(value / 3600)} h"
    return f"{_three(value / 86400)} d"


def _three(value: float) -> str:
    """Three significant digits without exponents."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{value:,.{digits}f}"


def _with_prefix(value: float, tail: str) -> str:
    for prefix in ("P", "T", "G", "M", "k"):
        if abs(value) >= _DECIMAL[prefix]:
            return f"{_three(value / _DECIMAL[prefix])} {prefix}{tail}"
    return f"{value:.3g} {tail}"


# Units as people and programs write them (unit_forms.toml): what is measured, and the factor to SI.
STEPS_A_SECOND = "step/s"  # the inverse of a time; no quantity carries it
_COUNTS = {
    "count": Unit.COUNT,
    "count of thousands": Unit.COUNT,
    "count of millions": Unit.COUNT,
    "count of billions": Unit.COUNT,
}
_PER = re.compile(r"\s{0,9}(?:/|\bper\b|\ba\b)\s{0,9}", re.IGNORECASE)


@cache
def _forms() -> dict[str, tuple[tuple[str, float], ...]]:
    """Surface form -> (what, factor), several where a form is ambiguous ("B", "M")."""
    found: dict[str, tuple[tuple[str, float], ...]] = {}
    for what, forms in table(Path(__file__).with_name("unit_forms.toml")).items():
        for form, factor in forms.items():
            found[form] = (*found.get(form, ()), (what, float(factor)))
            low = form.lower()
            if low not in forms and (what, float(factor)) not in found.get(low, ()):
                found[low] = (*found.get(low, ()), (what, float(factor)))
    return found


@lru_cache(maxsize=4096)
def readings_of(written: str) -> tuple[tuple[Unit | None, float], ...]:
    """What this unit may measure; (None, 1) is steps a second. Empty for a word that is no unit."""
    plain = _PER.sub("/", written.strip().strip("()[]"))
    forms = _forms()
    found = (
        forms.get(plain) or forms.get(plain.lower()) or forms.get(plain.removesuffix("/gpu").removesuffix("/GPU")) or ()
    )
    return tuple(
        (None if what == STEPS_A_SECOND else _COUNTS.get(what) or Unit(what), factor) for what, factor in found
    )


def factor(written: str, unit: Unit) -> float | None:
    """What a number with this unit is multiplied by to be in SI; None for a word that is no such unit."""
    return next((found for what, found in readings_of(written) if what is unit), None)
