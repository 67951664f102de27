"""Fits the planner's eight constants to published runs and writes the file that ships.

    python bench/fit_constants.py [--intervals] path/to/training.csv [more tables] path/to/memory.csv [more of those]

Publishers count alike: each has a scale of its own, and beyond a few distinct runs its weight no longer grows. All
releases and tables of one publisher are one, and it is predicted by constants that never saw it. Prints errors by row
and by publisher, and writes what differs between and within publishers: the planner's intervals. With --intervals the
constants stay, and only what differs is counted anew.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from robust_fit import fit

from stallwise.errors import StallwiseError
from stallwise.physics.costs.constants import NAMES, PRIORS, prior_sigmas, prior_values
from stallwise.physics.costs.fitted import constants_without, publisher_of
from stallwise.physics.costs.published_kin import kind_of
from stallwise.physics.costs.step import time_step
from stallwise.physics.costs.work import Work, concatenate
from stallwise.physics.specs.recipe_text import read_recipe
from stallwise.planner.fit_words import memory_half_width
from stallwise.planner.knobs import settings_of
from stallwise.planner.measured import measured_step_s
from stallwise.planner.runs import Run, run_of
from stallwise.planner.scoring import Scored, read_rows
from stallwise.planner.validation import kind_named

TARGET = Path(__file__).parents[1] / "src/stallwise/physics/costs/measured/constants.toml"
FULL_WEIGHT_RUNS = 8.0  # beyond so many distinct runs a publisher says no more than this
SETUP = ("model", "gpu", "num_gpus", "precision", "tp", "pp", "seq", "micro_batch", "global_batch", "sharding")
BETWEEN = 0.12  # first guess of the scatter between publishers, for the fit
LEAST_ROWS = 3  # publishers of a kind of run needed to tell between from within
CALM = {
    "dense-bf16": (0.12, 0.10), "dense-fp8": (0.12, 0.10), "moe": (0.22, 0.20), "lora": (0.15, 0.15),
}  # beliefs, worth two publishers  # fmt: skip
BELIEF_PUBLISHERS = 2.0
ODD = 0.5  # of the logarithm: one odd run must not widen every interval
MEMORY_BELIEF = 0.10  # half a publisher in ten is off by more: other allocators, other releases


class Runs:
    """All rows that can be asked and were measured, every unsaid setting of each with its weight."""

    def __init__(self, paths: list[str]) -> None:
        works: list[Work] = []
        self.rows: list[dict[str, str]] = []
        self.runs: list[Run] = []
        self.weights: list[np.ndarray] = []
        self.seconds: list[float] = []
        for row in (
            row for path in paths for row in csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines())
        ):
            try:
                run = run_of(row)
                settings = settings_of(run, prior_values())
            except StallwiseError:
                continue
            measured = measured_step_s(row, run)
            if not measured:
                continue
            works.append(settings.work)
            self.weights.append(settings.weights)
            self.rows.append(row)
            self.runs.append(run)
            self.seconds.append(measured)
        self.work = concatenate(works)
        self.flat = np.concatenate(self.weights)
        self.first = np.cumsum([0, *(len(w) for w in self.weights)])[:-1]
        self.row = np.repeat(np.arange(len(works)), [len(w) for w in self.weights])
        self.publishers = np.array([publisher_of(r["source"]) for r in self.rows])
        self.families = np.array([r.family for r in self.runs])
        self.log_s = np.log(np.array(self.seconds))
        # Cards without a switch whose slots nobody describes have a width of their own.
        self.wired = np.array([r.cluster.gpus == 1 or r.cluster.wiring_known for r in self.runs])

    def predict_log(self, values: np.ndarray) -> np.ndarray:
        """Mean logarithm of seconds over each row's settings."""
        return np.add.reduceat(self.flat * np.log(time_step(self.work, values).total), self.first)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Scatter over each row's settings."""
        logs = np.log(time_step(self.work, values).total)
        mean = self.predict_log(values)
        return np.sqrt(np.maximum(np.add.reduceat(self.flat * (logs - mean[self.row]) ** 2, self.first), 0.0))

    def weight(self) -> np.ndarray:
        """One per distinct setup, no publisher more than FULL_WEIGHT_RUNS; vague rows count less."""
        setups = [(p, *(row[c] for c in SETUP)) for p, row in zip(self.publishers, self.rows, strict=True)]
        seen = Counter(setups)
        found = np.array([1.0 / seen[s] for s in setups]) / (1.0 + (self.spread(prior_values()) / 0.1) ** 2)
        for name in set(self.publishers):
            here = self.publishers == name
            found[here] *= min(1.0, FULL_WEIGHT_RUNS / found[here].sum())
        return found

    def fitted(self, use: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Constants from these rows."""
        groups = np.unique(self.publishers, return_inverse=True)[1]
        part = Part(self, use)
        return fit(
            part.predict_log, prior_values(), prior_sigmas(), self.log_s[use], weight[use],
            groups=groups[use], between=BETWEEN,
        )  # fmt: skip


class Part:
    """Some rows of the whole."""

    def __init__(self, whole: Runs, use: np.ndarray) -> None:
        inside = use[whole.row]
        self.work = whole.work.take(inside)
        self.flat = whole.flat[inside]
        lengths = np.array([len(w) for w in whole.weights])[use]
        self.first = np.cumsum([0, *lengths])[:-1]

    def predict_log(self, values: np.ndarray) -> np.ndarray:
        """As of the whole."""
        return np.add.reduceat(self.flat * np.log(time_step(self.work, values).total), self.first)


def left_out(runs: Runs) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Each publisher's rows predicted by constants that never saw it."""
    weight = runs.weight()
    predicted = np.zeros(len(runs.rows))
    sets = {}
    for name in sorted(set(runs.publishers)):
        here = runs.publishers == name
        sets[name] = runs.fitted(~here, weight)
        predicted[here] = runs.predict_log(sets[name])[here]
    return predicted, sets


def scatter(groups: list[np.ndarray], belief: float) -> float:
    """Root mean square, every group counting once, a belief worth two; beyond ODD a deviation weighs no more."""
    squares = [float(np.mean(np.minimum(np.abs(own), ODD) ** 2)) for own in groups]
    return float(np.sqrt((sum(squares) + BELIEF_PUBLISHERS * belief**2) / (len(squares) + BELIEF_PUBLISHERS)))


def components(residual: np.ndarray, publishers: np.ndarray, vague: np.ndarray, family: str) -> tuple[float, float]:
    """Scatter between and within publishers, pulled towards the belief where publishers are few."""
    means, deviations = [], []
    for name in sorted(set(publishers)):
        own = residual[publishers == name]
        middle = float(np.median(own))
        means.append(max(min(abs(middle), ODD) ** 2 - np.mean(vague[publishers == name] ** 2), 0.0))
        if len(own) >= LEAST_ROWS:
            deviations.append(own - middle)
    between, within = CALM[family]
    n = len(means)
    found = (sum(means) + BELIEF_PUBLISHERS * between**2) / (n + BELIEF_PUBLISHERS)
    return float(np.sqrt(found)), scatter(deviations, within)


def kin(runs: Runs, residual: np.ndarray) -> tuple[float, list[tuple[str, str, str, str, float, int]]]:
    """Middle residual of every publisher by kind, framework and generation, and the share of their scatter that is common."""
    cells: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for run, publisher, own in zip(runs.runs, runs.publishers, residual, strict=True):
        key = (kind_of(run.family), run.recipe.framework, run.cluster.gpu.architecture)
        cells.setdefault(key, {}).setdefault(str(publisher), []).append(float(own))
    means = {key: {name: float(np.median(own)) for name, own in part.items()} for key, part in cells.items()}
    dense = [np.array(list(part.values())) for key, part in means.items() if key[0] == "dense"]
    alone = sum((len(m) - 1) * m.var(ddof=1) for m in dense if len(m) > 1) / sum(len(m) - 1 for m in dense)
    share = float(np.clip(1 - alone / np.mean(np.concatenate(dense) ** 2), 0.0, 1.0))
    found = [(*key, name, mean, len(cells[key][name])) for key, part in means.items() for name, mean in part.items()]
    return share, sorted(found)


def _outside(scored: Scored, half_width: float) -> float:
    """ln(measured / predicted), against the nearer end where what is not stated leaves a range."""
    assert scored.measured and scored.low and scored.high
    least, most = scored.low * half_width, scored.high / half_width
    return float(np.log(scored.measured / np.clip(scored.measured, least, most)))


def memory_spread(paths: list[str]) -> dict[str, float]:
    """Scatter of ln(measured / predicted) peaks, every publisher counting once."""
    found: dict[str, dict[str, list[float]]] = {"full": {}, "adapters": {}}
    for path in paths:
        rows = read_rows(path)
        for row, scored in zip(rows, kind_named("memory").validate(rows, 0), strict=True):
            if scored.predicted and scored.measured and "%" not in row.get("quantity", ""):
                kind = "adapters" if read_recipe(row).lora_rank else "full"
                own = found[kind].setdefault(publisher_of(scored.source), [])
                own.append(_outside(scored, memory_half_width(kind == "adapters")))
    return {kind: scatter([np.array(x) for x in by.values()], MEMORY_BELIEF) for kind, by in found.items()}


def interval_lines(runs: Runs, residual: np.ndarray, peaks: dict[str, float]) -> list[str]:
    """What differs between and within publishers, by kind of run."""
    vague = runs.spread(prior_values())
    lines = ["[spread]  # of ln(measured / predicted), publishers left out"]
    for family in CALM:
        here = (runs.families == family) & runs.wired
        between, within = components(residual[here], runs.publishers[here], vague[here], family)
        lines.append(f"{family} = {{ between = {between:.4f}, within = {within:.4f} }}")
    lines += ["", "[memory]  # of ln(measured / predicted) peaks, by publisher"]
    return [*lines, *(f"{kind} = {sigma:.4f}" for kind, sigma in peaks.items())]


def intervals_anew(runs: Runs, peaks: dict[str, float]) -> None:
    """Each publisher by the constants that ship and never saw it."""
    predicted = np.zeros(len(runs.rows))
    for name in sorted(set(runs.publishers)):
        here = runs.publishers == name
        predicted[here] = runs.predict_log(constants_without(name))[here]
    text = TARGET.read_text(encoding="utf-8")
    first, rest = text.index("[spread]"), text.index("[known]")
    lines = interval_lines(runs, runs.log_s - predicted, peaks)
    TARGET.write_text(text[:first] + "\n".join(lines) + "\n\n" + text[rest:], encoding="utf-8")
    _print(runs, predicted)


def main() -> None:
    tables = [p for p in sys.argv[1:] if not p.startswith("--") and "memory" not in Path(p).name]
    peaks = memory_spread([p for p in sys.argv[1:] if "memory" in Path(p).name])
    runs = Runs(tables)
    if "--intervals" in sys.argv:
        intervals_anew(runs, peaks)
        return
    predicted, sets = left_out(runs)
    residual = runs.log_s - predicted
    everything = runs.fitted(np.ones(len(runs.rows), dtype=bool), runs.weight())
    lines = ["# Written by bench/fit_constants.py from published runs; see costs/constants.py for what each one means."]
    lines += ["[all]", *_lines(everything), "", *interval_lines(runs, residual, peaks)]
    architectures = Counter(r.cluster.gpu.architecture for r in runs.runs)
    frameworks = Counter(r.recipe.framework for r in runs.runs)
    lines += [
        "", "[known]  # what has rows enough to speak of",
        f"architectures = {sorted(k for k, v in architectures.items() if v >= 8)}".replace("'", '"'),
        f"frameworks = {sorted(k for k, v in frameworks.items() if v >= 8)}".replace("'", '"'),
        f"most_gpus = {max(r.cluster.gpus for r in runs.runs)}",
    ]  # fmt: skip
    share, found = kin(runs, residual)
    lines += [
        "",
        "[kin]  # of publishers with one framework and generation of cards, each left out of its own prediction",
    ]
    lines += [f"common_share = {share:.3f}  # of the variance between publishers", "runs = ["]
    for kind, framework, architecture, publisher, mean, rows in found:
        lines.append(
            f'  {{ kind = "{kind}", framework = "{framework}", architecture = "{architecture}", '
            f'publisher = "{publisher}", log_ratio = {mean:.4f}, rows = {rows} }},'
        )
    lines.append("]")
    for name, values in sets.items():
        lines += ["", f'[without."{name}"]', *_lines(values)]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _print(runs, predicted)


def _print(runs: Runs, predicted: np.ndarray) -> None:
    error = np.exp(predicted - runs.log_s) - 1
    for family in (*CALM, "all"):
        here = np.ones(len(error), dtype=bool) if family == "all" else runs.families == family
        by = [np.mean(np.abs(error[here & (runs.publishers == p)])) for p in sorted(set(runs.publishers[here]))]
        print(
            f"{family:12s} {here.sum():4d} rows  mean abs {np.mean(np.abs(error[here])):.1%}  median "
            f"{np.median(np.abs(error[here])):.1%}  bias {error[here].mean():+.1%}; {len(by)} publishers, mean {np.mean(by):.1%}"
        )


def _lines(values: np.ndarray) -> list[str]:
    return [f"{name} = {value:.4g}  # prior {PRIORS[name].value:g}" for name, value in zip(NAMES, values, strict=True)]


if __name__ == "__main__":
    main()
