"""Predicted gains and clean steps against measured ones: every H200 case whose fix, or whose untraced step, was timed.

    python bench/gains.py [FOLDER ...] [--only NAME] [--json FILE] [--ratios TABLE]

Always the cases under shared/data/h200; a FOLDER adds recordings: of bench/gpu/record_clean_and_traced.py or
record_fixes_in_turn.py (truth.json beside traces or tars of them), or bundles of `stallwise try` (trials.json). Nothing here is
read by the product. Ranges are made with the workload's own rows of measured/gain_ratios.csv left out. A gain counts as inside
when the measured seconds lie between the two ends, or when nothing is promised and less than runs differ by was won; a range
wider than twice its low end never counts. What is replayed for unfused chains is that all of them are fused, so that it is compared
with the compiled program, not with one in which a library call replaces the planted chain alone. Of two faults the order of the
predicted gains is compared with the measured one; where nothing was won and nothing is promised, the other comes first. Fixes timed
in turn won a part of the step of the same rounds, which is brought to the clean step around the trace: hosts drift between the
two. A gain missed though the middle half of its rounds reaches into the range is undecided, and counts as missed. A clean step was
timed before and after most recordings; where the two loops differ so much that one has the replay nearer and the other the trace,
neither is further off. How often the loop before a trace foretells the one after it within 10% is said beside: no trace can foretell
more.

`--ratios src/stallwise/physics/costs/measured/gain_ratios.csv` refits the ranges: it replaces the rows of all recordings
that were read by what they say now. Score with what was kept apart afterwards, not before.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import statistics
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Gain
from stallwise.doctor.measures import _replay_range
from stallwise.doctor.predictions import change_of
from stallwise.evidence.catalog import step
from stallwise.physics.costs import gain_doubt

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("STALLWISE_SHARED", HERE.parents[1] / "shared"))
WIDEST = 2.0
NOISE = 0.03  # of the step
ROUNDING = 1.005
PLANTED = {
    "loader_slow": "input-starved", "loader_bursty": "input-bursty", "h2d_pageable": "h2d-copy-exposed",
    "fp32_no_tf32": "tensor-cores-unused", "misaligned": "misaligned-shapes", "recompute": "recompute-unneeded",
    "ckpt_stall": "checkpoint-stall", "unfused_elementwise": "elementwise-unfused", "gc_pauses": "host-work-unattributed",
}  # fmt: skip
# What a recorded want calls otherwise, and causes that name the same fix.
ALIASES = {"attention-unfused": "attention-materialized", "gc_pauses": "python-gc-pauses"}
ALIKE = {
    "host-work-unattributed": ("python-gc-pauses", "input-starved"),
    "python-gc-pauses": ("host-work-unattributed",),
    "precision-headroom": ("tensor-cores-unused",),
    "tensor-cores-unused": ("precision-headroom",),
    "input-starved": ("input-bursty", "host-work-unattributed"),
}
# Fixes whose name says which of several wanted causes they take away.
CURES = {
    "foreach": ("optimizer-unfused",), "fused": ("optimizer-unfused",), "items": ("host-sync",), "no_item": ("host-sync",),
    "kept": ("host-sync",), "keep": ("recompute-unneeded",), "graph": ("launch-bound",),
    "channels_last": ("layout-copies",), "compile": ("elementwise-unfused",),
}  # fmt: skip
PROGRAMS = {  # clean seconds a step, from the programs' own clocks (h200/programs/README.md)
    "nano124_eager": ("elementwise-unfused", 0.130, 0.105),
    "lit_workers0": ("input-starved", 0.128, 0.0266),
}


@dataclass(frozen=True)
class Fix:
    """What was changed, the causes that it cures, and the seconds it won; between which the middle half of its rounds lay."""

    name: str
    causes: tuple[str, ...]
    won_s: float
    middle_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class Case:
    """One recording, and what each of its fixes won."""

    group: str
    name: str
    paths: tuple[str, ...]
    clean_s: float
    fixes: tuple[Fix, ...]
    loops_s: tuple[float, ...] = ()  # clean steps before and after the recording


@dataclass(frozen=True)
class Priced:
    """One fix: predicted and measured."""

    case: Case
    fix: str
    cause: str
    low_s: float
    high_s: float
    measured_s: float
    likely_s: float = float("nan")
    change: str = ""  # of a replayed gain
    middle_s: tuple[float, float] | None = None

    @property
    def inside(self) -> bool:
        """Found, in range, and the range means something; or nothing promised where nothing was won."""
        if not self.cause or self.high_s <= 0:
            return self.measured_s < NOISE * self.case.clean_s
        return bool(self.cause) and self.low_s <= self.measured_s <= self.high_s and not self.wide

    @property
    def settled(self) -> bool:
        """The middle half of its rounds lies within a promise's width: others teach nothing of how far promises lie off."""
        return self.middle_s is None or self.middle_s[1] <= WIDEST * self.middle_s[0]

    @property
    def undecided(self) -> bool:
        """Missed, though many of the rounds say otherwise."""
        if self.inside or self.wide or self.middle_s is None:
            return False
        return self.middle_s[0] <= max(self.high_s, NOISE * self.case.clean_s) and self.middle_s[1] >= self.low_s

    @property
    def verdict(self) -> str:
        """In a word: inside, or how it missed."""
        if not self.cause:
            missed = "nothing, rightly" if self.inside else "not seen"
        elif self.inside:
            missed = "inside"
        else:
            missed = (
                "too high"
                if self.measured_s < self.low_s
                else "TOO LOW"
                if self.measured_s > self.high_s
                else "too wide"
            )
        return missed + (" (undecided)" if self.undecided else "")

    @property
    def wide(self) -> bool:
        """More than twice its low end."""
        return self.high_s > WIDEST * ROUNDING * self.low_s


def shared_cases() -> Iterator[Case]:
    """What lies under shared/data/h200."""
    home = SHARED / "data/h200"

    def truth(case: Path) -> dict[str, object]:
        return dict(json.loads((case / "truth.json").read_text()))

    def beside(case: Path) -> tuple[str, ...]:
        return str(case / "trace.json.gz"), str(case / "nvidia_smi.csv")

    def steps(case: Path) -> list[float]:
        return [1e-3 * float(ms) for ms in truth(case)["clean_step_ms"]]  # type: ignore[attr-defined]

    healthy = statistics.median(steps(home / "train/healthy"))
    compiled = statistics.median(steps(home / "train/compiled_healthy"))
    for case in sorted((home / "train").iterdir()):
        fixes: tuple[Fix, ...] = ()
        if case.name in PLANTED:
            # Bursts and saves are rare events: the mean step counts.
            mended = compiled if case.name == "unfused_elementwise" else healthy
            fixes = (Fix("fix", (PLANTED[case.name],), statistics.mean(steps(case)) - mended),)
        if case.name == "healthy":
            fixes = (Fix("compile", ("elementwise-unfused",), healthy - compiled),)
        yield Case("train", case.name, beside(case), statistics.mean(steps(case)), fixes)
    for case in sorted((home / "more").glob("*/")):
        told = truth(case)
        clean = 1e-3 * float(told["clean_step_ms"])  # type: ignore[arg-type]
        yield Case("more", case.name, beside(case), clean, _fixes(told, clean))
    for name, (cause, before, after) in PROGRAMS.items():
        bundle = str(home / "programs" / name / "bundle")
        yield Case("programs", name, (bundle,), before, (Fix("fix", (cause,), before - after),))
    table = (home / "profiler_cost/profiler_overhead.csv").read_text()
    for row in csv.DictReader(table.splitlines()):
        trace = home / "profiler_cost" / f"{row['workload']}.{row['options'].replace('+', '_')}.json.gz"
        if trace.exists():
            loops = (1e-3 * float(row["clean_before_ms"]), 1e-3 * float(row["clean_after_ms"]))
            name = trace.name.removesuffix(".json.gz")
            yield Case("profiler_cost", name, (str(trace),), statistics.mean(loops), (), loops)


def _fixes(told: dict[str, Any], clean_s: float) -> tuple[Fix, ...]:
    """Fixes in the order of the wants; those of both faults together are left aside."""
    wants = [tuple(ALIASES.get(w, w) for w in part.split("|")) for part in str(told["want"]).split(",")]
    if "gain_ms" in told:
        part = clean_s / told["in_turn_ms"]["fault"]
        won = {fix: tuple(part * ms for ms in quartiles) for fix, quartiles in told["gain_ms"].items()}
    else:
        won = {fix: (clean_s - 1e-3 * ms,) for fix, ms in told.get("fixed_step_ms", {}).items()}
    alone = {fix: gain for fix, gain in won.items() if fix != "all"}
    return tuple(
        Fix(fix, wants[k], statistics.median(gain), (gain[0], gain[-1]) if len(gain) > 1 else None)
        for k, (fix, gain) in enumerate(alone.items())
        if k < len(wants)
    )


def recorded(folder: Path, unpacked: Path) -> Iterator[Case]:
    """Recordings in a folder: traces with a truth, or bundles with trials."""
    for trials in sorted(folder.glob("**/trials.json")):
        yield from _tried(trials)
    told_in = folder / "truth.json"
    if not told_in.exists():
        return
    here = unpacked / folder.name
    here.mkdir(exist_ok=True)
    for tar in sorted(folder.glob("*.tar")):
        with tarfile.open(tar) as packed:
            packed.extractall(here, filter="data")
    traces = [*sorted(folder.glob("*.json.gz")), *sorted(here.glob("*.json.gz"))]
    told = json.loads(told_in.read_text())
    cleans: dict[str, list[float]] = defaultdict(list)
    if (folder / "overhead.csv").exists():
        for row in csv.DictReader((folder / "overhead.csv").read_text().splitlines()):
            key = f"{row['workload']}.{row['options'].replace('+', '_').replace(' ', '_')}"
            cleans[key] += [1e-3 * float(row["clean_before_ms"]), 1e-3 * float(row["clean_after_ms"])]
    for trace in traces:
        name = trace.name.removesuffix(".json.gz")
        workload, _, options = name.partition(".")
        if workload not in told:
            continue
        clean = statistics.mean(cleans[name]) if cleans[name] else 1e-3 * told[workload]["clean_step_ms"]
        usual = options == told[workload].get("kept", "").replace("+", "_")
        fixed_from = clean if "gain_ms" in told[workload] else 1e-3 * told[workload]["clean_step_ms"]
        fixes = _fixes(told[workload], fixed_from) if usual else ()
        yield Case(folder.name, name, (str(trace),), clean, fixes, tuple(cleans[name]))


def _tried(trials: Path) -> Iterator[Case]:
    fixes = []
    for row in json.loads(trials.read_text()).get("trials", ()):
        if row.get("ratio", 0) > 0 and row.get("state") == "faster":
            fixes.append(Fix(row["name"], tuple(row.get("causes", ())), row["before_s"] * (1 - 1 / row["ratio"])))
    paths = [*trials.parent.glob("rank-*.jsonl"), *trials.parent.glob("rank-*/*"), trials.parent / "log.txt"]
    found = tuple(str(p) for p in paths if p.exists())
    if fixes and any("trace" in p for p in found):
        yield Case("try", trials.parent.name, found, float("nan"), tuple(fixes))


def priced(case: Case, diagnosis: Diagnosis) -> Iterator[Priced]:
    """What the diagnosis promises for each fix that was timed; trials of one cause count once, by the best."""
    if case.group == "try":
        yield from _best_trials(case, diagnosis)
        return
    for fix in case.fixes:
        yield _promise(case, diagnosis, fix)


def _promise(case: Case, diagnosis: Diagnosis, fix: Fix) -> Priced:
    causes = CURES.get(fix.name, fix.causes)
    alike = (*causes, *(other for c in causes for other in ALIKE.get(c, ())))
    for cause in alike:
        for finding in diagnosis.findings:
            if finding.cause == cause and finding.gain is not None:
                return _priced(case, fix, cause, finding.gain)
    return Priced(case, fix.name, "", 0.0, 0.0, fix.won_s, middle_s=fix.middle_s)


def _priced(case: Case, fix: Fix, cause: str, gain: Gain) -> Priced:
    likely = gain.likely_s if gain.likely_s is not None else (gain.low_s + gain.high_s) / 2
    return Priced(
        case, fix.name, cause, gain.low_s, gain.high_s, fix.won_s, likely, change_of(gain.basis), fix.middle_s
    )


def _best_trials(case: Case, diagnosis: Diagnosis) -> Iterator[Priced]:
    for finding in diagnosis.findings:
        won = [fix for fix in case.fixes if finding.cause in fix.causes]
        if won and finding.gain is not None:
            yield _priced(case, max(won, key=lambda fix: fix.won_s), finding.cause, finding.gain)


def main() -> None:
    """Prints every row and the totals."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", nargs="*", type=Path)
    options.add_argument("--only", default="", help="only cases whose group/name fits this expression")
    options.add_argument("--json", type=Path, help="write all rows here")
    options.add_argument("--ratios", type=Path, help="write measured over replayed gains here, as a table")
    asked = options.parse_args()
    rows: list[Priced] = []
    steps: list[tuple[Case, float, float, float, float]] = []
    with tempfile.TemporaryDirectory() as unpacked:
        cases = [*shared_cases(), *(c for f in asked.folders for c in recorded(f, Path(unpacked)))]
        for at, case in enumerate(cases):
            if not re.search(asked.only, f"{case.group}/{case.name}"):
                continue
            print(f"\r{at + 1} of {len(cases)} {case.name:40s}", end="", file=sys.stderr)
            leaving_out(workload_of(case))
            diagnosis = diagnose(*case.paths, cache=False, workers=1)
            rows += priced(case, diagnosis)
            evidence = diagnosis.evidence
            traced, replayed = evidence.get(step.TRACED_STEP), evidence.get(step.REPLAYED_STEP)
            if traced is not None and case.clean_s == case.clean_s and case.group not in ("programs",):
                clean = replayed or traced
                steps.append((case, traced.number, clean.number, clean.low or clean.number, clean.high or clean.number))
    print(file=sys.stderr)
    _say_gains(rows)
    _say_orders(rows)
    _say_steps(steps)
    if asked.ratios:
        write_ratios(asked.ratios, rows)
    if asked.json:
        asked.json.write_text(
            json.dumps({"gains": [_row(r) for r in rows], "steps": [_step(*s) for s in steps]}, indent=1)
        )


def write_ratios(target: Path, rows: list[Priced]) -> None:
    """What each fix won over what its replay said; one row for a workload's fix. Rows of what was not read now stay."""
    read = {(workload_of(r.case), r.case.group) for r in rows}
    head, *known = target.read_text().splitlines() if target.exists() else ["change,workload,recorded,ratio"]
    lines = {line for line in known if tuple(line.split(",")[1:3]) not in read}
    for r in rows:
        if r.change and r.likely_s > 0 and r.settled:  # a fix that lost time has a ratio below zero
            lines.add(f"{r.change},{workload_of(r.case)},{r.case.group},{r.measured_s / r.likely_s:.3f}")
    target.write_text("\n".join((head, *sorted(lines))) + "\n")


def workload_of(case: Case) -> str:
    """The program, whatever the options it was recorded with."""
    return case.name.partition(".")[0]


def leaving_out(workload: str) -> None:
    """Ranges are made without what is known of this workload."""
    _replay_range.__dict__["doubt_of"] = lambda change: gain_doubt.doubt_of(change, workload)


def _row(r: Priced) -> dict[str, object]:
    return {
        "group": r.case.group, "case": r.case.name, "fix": r.fix, "cause": r.cause, "low_s": r.low_s,
        "high_s": r.high_s, "likely_s": r.likely_s, "measured_s": r.measured_s, "change": r.change, "inside": r.inside,
    }  # fmt: skip


def _step(case: Case, traced: float, replayed: float, low: float, high: float) -> dict[str, object]:
    return {
        "group": case.group, "case": case.name, "clean_s": case.clean_s, "traced_s": traced, "replayed_s": replayed,
        "low_s": low, "high_s": high,
    }  # fmt: skip


def _say_gains(rows: list[Priced]) -> None:
    print(f"{'case':44s} {'fix':16s} {'cause':24s} {'predicted ms':>20s} {'measured':>9s}")
    for r in rows:
        shown = f"{1e3 * r.low_s:.2f} to {1e3 * r.high_s:.2f}" if r.cause else "no finding"
        name = f"{r.case.group}/{r.case.name}"
        print(f"{name:44s} {r.fix:16s} {r.cause:24s} {shown:>20s} {1e3 * r.measured_s:9.2f} {r.verdict}")
    for group in dict.fromkeys(r.case.group for r in rows):
        here = [r for r in rows if r.case.group == group]
        print(f"{group:24s} {sum(r.inside for r in here)} of {len(here)} inside")
    found = [r for r in rows if r.cause]
    print(f"all: {sum(r.inside for r in rows)} of {len(rows)} inside; of the {len(found)} that were named "
          f"{sum(r.inside for r in found)}; {sum(r.undecided for r in rows)} missed undecided; "
          f"{sum(r.wide for r in found)} ranges wider than {WIDEST:g}x\n")  # fmt: skip


def _say_orders(rows: list[Priced]) -> None:
    by_case: dict[str, list[Priced]] = defaultdict(list)
    for r in rows:
        if r.case.group != "try":
            by_case[f"{r.case.group}/{r.case.name}"].append(r)
    pairs = {name: pair for name, pair in by_case.items() if len(pair) == 2}
    right = 0
    for name, (one, two) in pairs.items():
        same = (one.low_s + one.high_s > two.low_s + two.high_s) == (one.measured_s > two.measured_s)
        same &= all(r.cause or r.inside or r.undecided for r in (one, two)) and bool(one.cause or two.cause)
        right += same
        print(f"order {name:40s} {'as measured' if same else 'WRONG'}")
    print(f"order of two faults: {right} of {len(pairs)}\n")


def _say_steps(steps: list[tuple[Case, float, float, float, float]]) -> None:
    near = worse = undecided = held = 0
    twice = [case.loops_s for case, *_ in steps if len(case.loops_s) == 2]
    for case, traced, replayed, low, high in steps:
        off = abs(replayed / case.clean_s - 1)
        near += off <= 0.1
        held += low <= case.clean_s <= high
        further = _further(traced, replayed, case.clean_s)
        decided = all(_further(traced, replayed, clean_s) for clean_s in case.loops_s)
        worse, undecided = worse + further, undecided + (further and not decided)
        note = (
            ""
            if not further
            else " WORSE than the trace"
            if decided
            else " worse than the trace by one of its clean loops"
        )
        if note or off > 0.1:
            name = f"{case.group}/{case.name}"
            loops = " and ".join(f"{1e3 * s:.2f}" for s in case.loops_s)
            print(f"{name:44s} clean {1e3 * case.clean_s:8.2f} traced {1e3 * traced:8.2f} replayed {1e3 * replayed:8.2f}"
                  f" ({1e3 * low:.2f} to {1e3 * high:.2f}){f' loops {loops}' if note and loops else ''}{note}")  # fmt: skip
    print(f"clean step: {near} of {len(steps)} within 10%, {worse} further off than the trace, {undecided} of these by one of their"
          f" two clean loops only, {held} inside their own range; one clean loop foretells the next within 10% in"
          f" {sum(abs(a / b - 1) <= 0.1 for a, b in twice)} of {len(twice)}")  # fmt: skip


def _further(traced_s: float, replayed_s: float, clean_s: float) -> bool:
    """Whether believing the trace had been better."""
    return abs(replayed_s / clean_s - 1) > abs(traced_s / clean_s - 1) + 1e-3


if __name__ == "__main__":
    main()
