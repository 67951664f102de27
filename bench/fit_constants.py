"""Fits the planner's constants to published runs and writes the file that ships.

    python bench/fit_constants.py path/to/training.csv

The same setup repeated over releases counts once, and a source of many runs is damped, so that no table outweighs the
rest by its length. Prints the error of every kind of run with its source left out.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from stallwise.costs.constants import NAMES, PRIORS, prior_sigmas, prior_values
from stallwise.costs.fit import fit
from stallwise.costs.grid import grid_of
from stallwise.costs.step import time_step
from stallwise.costs.work import Work, concatenate, step_work
from stallwise.errors import StallwiseError
from stallwise.search.knobs import settle
from stallwise.search.measured import measured_step_s
from stallwise.search.runs import Run, run_of

TARGET = Path(__file__).parents[1] / "src/stallwise/costs/measured/constants.toml"
FULL_WEIGHT_ROWS = 25.0  # beyond so many distinct runs a source's weight grows with the root only
SETUP = ("model", "gpu", "num_gpus", "precision", "tp", "pp", "seq", "micro_batch", "global_batch", "sharding")


def load(path: str) -> tuple[Work, np.ndarray, list[dict[str, str]], list[Run]]:
    """Every row that can be asked and was measured."""
    works, seconds, rows, runs = [], [], [], []
    with Path(path).open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            try:
                run = run_of(row)
            except StallwiseError:
                continue
            run = replace(run, layout=settle(run))
            measured = measured_step_s(row, run)
            if not measured:
                continue
            grid = grid_of([run.layout], run.workload)
            works.append(step_work(run.model, run.cluster, run.workload, grid, run.recipe))
            seconds.append(measured)
            rows.append(row)
            runs.append(run)
    return concatenate(works), np.array(seconds), rows, runs


def weights(rows: list[dict[str, str]]) -> np.ndarray:
    """One per distinct setup, damped per publisher."""
    publisher = np.array([row["source"].split(" ")[0] for row in rows])
    setups = [
        (p, *(row[c] for c in SETUP)) if p == "Megatron-Bridge" else row["row_id"]
        for p, row in zip(publisher, rows, strict=True)
    ]
    seen = Counter(setups)
    found = np.array([1.0 / seen[s] for s in setups])
    for name in set(publisher):
        here = publisher == name
        total = found[here].sum()
        if total > FULL_WEIGHT_ROWS:
            found[here] *= (FULL_WEIGHT_ROWS / total) ** 0.5
    return found


def main() -> None:
    work, seconds, rows, runs = load(sys.argv[1])
    weight, target = weights(rows), np.log(seconds)
    sources = np.array([row["source"] for row in rows])

    def fitted(use: np.ndarray) -> np.ndarray:
        part = work.take(use)
        return fit(lambda c: time_step(part, c).total, prior_values(), prior_sigmas(), target[use], weight[use])

    lines = ["# Written by bench/fit_constants.py from published runs; see costs/constants.py for what each one means."]
    lines += ["[all]", *_lines(fitted(np.ones(len(rows), dtype=bool)))]
    predicted = np.zeros(len(rows))
    for source in sorted(set(sources)):
        values = fitted(sources != source)
        here = sources == source
        predicted[here] = time_step(work.take(here), values).total
        lines += ["", f'[without."{source}"]', *_lines(values)]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    kinds = np.array([run.family for run in runs])
    for kind in sorted(set(kinds)):
        error = predicted[kinds == kind] / seconds[kinds == kind] - 1
        logs = np.abs(np.log1p(error))
        print(
            f"{kind:12s} {len(error):4d} rows  mean abs {np.mean(np.abs(error)):.1%}  bias {error.mean():+.1%}"
            f"  90% within x{np.exp(np.quantile(logs, 0.9)):.2f}"
        )


def _lines(values: np.ndarray) -> list[str]:
    return [
        f'"{name}" = {value:.4g}  # prior {PRIORS[name].value:g}' for name, value in zip(NAMES, values, strict=True)
    ]


if __name__ == "__main__":
    main()
