"""Scores retold scenarios: each item's words and files go through `stallwise diagnose`, as JSON and as text.

    python bench/score_scenarios.py FOLDER [--stallwise CMD] [--totals] [--only ID,ID] [--workers 2]

FOLDER holds items.jsonl (fields: its README) and the files its items name. Four scores an item:

cause    the first of `ranked` is among the accepted slugs.
numbers  each number that an answer must have stands in the rendered text within its tolerance (at least half a unit of
         the last printed digit). A printed number has the unit that follows it, or that of the next number in
         "A -> B ms", "A to B", "A of B", "A against B"; times, bytes, rates and shares are compared in one base.
         Without a unit it counts where it has three significant digits (a column of a table), or, for an identity or
         a count, where a word of the number's name stands beside it ("rank 37", "2 configs", "BLOCK_K 32").
fix      a keyword stands in the first fix, or, where the answer proposes none, in the first artifact it asks for.
trap     a keyword of the trap stands in the first fix and is not denied there.

`--totals` prints sums by scenario and form alone: the way to score a half that must stay unread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0}
BYTES = {
    "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
RATES = {
    "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "TFLOPS": 1e12, "TFLOPs": 1e12, "tok/s": 1.0, "tokens/s": 1.0, "token/s": 1.0,
    "k tok/s": 1e3, "k tokens/s": 1e3, "req/s": 1.0, "MHz": 1e6, "GHz": 1e9, "Gb/s": 1e9 / 8, "Gbit/s": 1e9 / 8,
    "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
}  # fmt: skip
PLAIN = {
    "%": 1.0,
    "points": 1.0,
    "point": 1.0,
    "x": 1.0,
    "×": 1.0,
    "times": 1.0,
    "C": 1.0,
    "°C": 1.0,
    "ppl": 1.0,
    "nats": 1.0,
}
RATE_KINDS = (("FLOP", "flops"), ("tok", "tokens"), ("Hz", "hertz"), ("req", "requests"), ("", "bandwidth"))
KIND = (
    dict.fromkeys(TIME, "time")
    | dict.fromkeys(BYTES, "bytes")
    | {u: next(kind for part, kind in RATE_KINDS if part in u) for u in RATES}
    | {"%": "share", "points": "share", "point": "share", "x": "factor", "×": "factor", "times": "factor"}
    | {"C": "heat", "°C": "heat", "ppl": "ppl", "nats": "nats"}
)
BASE = TIME | BYTES | RATES | PLAIN
COUNTED = {"GPUs", "layer", "rank id", "stage", "configs", "modules", "heads", "tokens", "reqs", "index", "step", ""}
UNITS = "|".join(re.escape(u) for u in sorted(BASE, key=len, reverse=True))
NUMBER = re.compile(  # "16 x 32,768" is a product, not 16 times
    rf"(?<![\w.])([-−+]?)(\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
    rf"([kM]?)(?:[\s ]?({UNITS})(?![\w%])(?! \d))?(?![\w%])"
)
HANDED = re.compile(r"\s*(->|→|to|of|against|and|/|-|–|instead of|or|vs\.?)\s*(up to\s*)?$")
MATERIAL = 3  # significant digits from which a number without a unit is no accident


@dataclass(slots=True)
class Printed:
    """A number as it stands in the answer."""

    value: float
    half_digit: float
    unit: str
    start: int
    end: int
    digits: int


@dataclass(slots=True)
class Score:
    """What one item reached."""

    item: dict[str, Any]
    cause: bool = False
    fix: bool = False
    trap: bool = False
    first: str = ""
    first_fix: str = ""
    missing: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> bool:
        """All that an answer must have are there."""
        return not self.missing


def printed_numbers(text: str) -> list[Printed]:
    """Every number of a text, with its own unit or the one that the next number hands back."""
    found: list[Printed] = []
    for m in NUMBER.finditer(text):
        raw, thousands = m[2].replace(",", ""), {"": 1.0, "k": 1e3, "M": 1e6}[m[3]]
        mantissa, _, exponent = raw.partition("e")
        half = 0.5 * 10.0 ** (-len(mantissa.partition(".")[2]) + int(exponent or 0)) * thousands
        digits = len(mantissa.replace(".", "").lstrip("0"))
        found.append(Printed(float(raw) * thousands, half, m[4] or "", m.start(), m.end(), digits))
    for one, following in zip(reversed(found[:-1]), reversed(found[1:]), strict=True):
        if not one.unit and HANDED.fullmatch(text[one.end : following.start]):
            one.unit = following.unit
    return found


def stands(want: dict[str, Any], numbers: list[Printed], text: str) -> bool:
    """Whether a wanted number, or an equivalent one, is printed."""
    return any(_printed(o["value"], o["unit"], want, numbers, text) for o in (want, *want.get("also", ())))


def _printed(value: float, unit: str, want: dict[str, Any], numbers: Iterable[Printed], text: str) -> bool:
    unit = unit.split(" at ")[0].split(" (")[0].split(" over")[0].split(" of the")[0].split(" lost")[0].strip()
    factor, kind = BASE.get(unit, 1.0), KIND.get(unit)
    words = {w[:4].lower() for w in re.findall(r"[A-Za-z]{3,}", f"{want['name']} {unit}")} - {"the", "and", "ther"}
    for n in numbers:
        if n.unit and kind and KIND.get(n.unit) == kind:
            own = BASE[n.unit]
        elif not n.unit and (n.digits >= MATERIAL or unit in COUNTED):
            own = factor
        else:
            continue
        rounding = min(n.half_digit * own, 0.03 * abs(value * factor))
        if abs(n.value * own - value * factor) > max(want["tol_rel"] * abs(value * factor), rounding) + 1e-12:
            continue
        beside = text[max(0, n.start - 40) : n.end + 40].lower()
        if n.unit or (unit not in COUNTED and n.digits >= MATERIAL) or any(w in beside for w in words):
            return True
    return False


def denied(text: str, at: int) -> bool:
    """Whether the words just before a place take it back."""
    return bool(re.search(r"(?i)\b(not|never|no|instead of|before|without|rather than|leave)\b[^.;]{0,40}$", text[:at]))


def _holds(text: str, keyword: str) -> re.Match[str] | None:
    spelled = r"[\s_-]?".join(re.escape(w) for w in re.split(r"[\s_-]", keyword.strip()))
    return re.search(rf"(?i)(?<![A-Za-z]){spelled}", text)


def ask(command: list[str], folder: Path, item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The rendered answer and the JSON one."""
    what = [*item.get("paths", ()), *([item["text"]] if item.get("text") else [])]
    env = {**os.environ, "STALLWISE_CACHE": "off", "COLUMNS": "160"}
    base = [*command, "-q", "diagnose", *what, "--no-history"]
    run = {"capture_output": True, "text": True, "timeout": 300, "cwd": folder, "env": env}
    text = subprocess.run(base, **run)  # type: ignore[call-overload]
    data = subprocess.run([*base, "--json"], **run)  # type: ignore[call-overload]
    try:
        return text.stdout + text.stderr, json.loads(data.stdout)
    except json.JSONDecodeError:
        return text.stdout + text.stderr, {}


def ask_inside(folder: Path, item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same from this process: one diagnosis, drawn twice."""
    from stallwise.doctor.examine import diagnose
    from stallwise.render.json import to_dict
    from stallwise.render.text import to_text

    paths = [str(folder / path) for path in item.get("paths", ())]
    found = diagnose(*paths, *([item["text"]] if item.get("text") else []), workers=1, cache=False)
    return to_text(found, width=160), to_dict(found)


def first_fix(data: dict[str, Any]) -> str:
    """What the answer would have a person do first."""
    fixes = (data.get("findings") or [{}])[0].get("fixes") or []
    if fixes:
        return " ".join(str(fixes[0].get(k) or "") for k in ("action", "cost"))
    return " ".join(str(v) for v in ((data.get("next") or [{}])[0]).values())


def score(command: list[str], folder: Path, item: dict[str, Any]) -> Score:
    """One item, asked and marked."""
    text, data = ask(command, folder, item) if command else ask_inside(folder, item)
    flat = " ".join(text.split())
    numbers = printed_numbers(flat)
    first = (data.get("ranked") or ["(none)"])[0]
    fix = first_fix(data)
    traps = [m for k in item["trap"]["keywords"] if (m := _holds(fix, k))]
    return Score(
        item,
        cause=first in item["cause"]["acceptable"],
        fix=any(_holds(fix, k) for k in item["first_fix"]["keywords"]),
        trap=any(not denied(fix, m.start()) for m in traps),
        first=first,
        first_fix=fix,
        missing=[
            f"{n['name']} {n['value']:g} {n['unit']}" for n in item["numbers"] if n["must"] and not stands(n, numbers, flat)
        ],
    )  # fmt: skip


def summary(scores: list[Score]) -> str:
    """Totals by scenario, by form and over all."""
    groups = {
        f"scenario {s}": [x for x in scores if x.item["scenario"] == s]
        for s in sorted({x.item["scenario"] for x in scores})
    }
    groups |= {f: [x for x in scores if x.item["form"] == f] for f in sorted({x.item["form"] for x in scores})}
    groups["all"] = scores
    rows = [f"{'':12s} {'items':>5s} {'cause':>6s} {'numbers':>8s} {'fix':>5s} {'trap':>5s} {'each number':>12s}"]
    for name, group in groups.items():
        must = sum(n["must"] for x in group for n in x.item["numbers"])
        there = must - sum(len(x.missing) for x in group)
        counts = [sum(getattr(x, what) for x in group) for what in ("cause", "numbers", "fix", "trap")]
        shares = [f"{math.floor(100 * c / len(group) + 0.5)}%" for c in counts[:3]]
        rows.append(
            f"{name:12s} {len(group):5d} {shares[0]:>6s} {shares[1]:>8s} {shares[2]:>5s} {counts[3]:5d} {there:6d}/{must:d}"
        )
    return "\n".join(rows)


def main() -> None:
    """Reads the items, asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stallwise", default="", help="command of another tree; without it, in this process")
    parser.add_argument("--totals", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    items = [
        json.loads(line) for line in (options.folder / "items.jsonl").read_text(encoding="utf-8").splitlines() if line
    ]
    if options.only:
        items = [i for i in items if any(i["id"].startswith(o) for o in options.only.split(","))]
    with ThreadPoolExecutor(options.workers if options.stallwise else 1) as pool:
        scores = list(pool.map(lambda i: score(shlex.split(options.stallwise), options.folder, i), items))
    if not options.totals:
        for s in scores:
            faults = (
                [f"first {s.first}"] * (not s.cause) + [f"fix: {s.first_fix[:90]}"] * (not s.fix) + ["TRAP"] * s.trap
            )
            faults += [f"lacks {m}" for m in s.missing]
            print(f"{s.item['id']} {s.item['form']:5s} {'; '.join(faults) or 'all'}")
    print(summary(scores))


if __name__ == "__main__":
    main()
