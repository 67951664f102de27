"""Writes the table of published runs that ships with the product, from a full one.

    python bench/published_runs.py path/to/training.csv

Kept: runs of catalogued models with a stated cut and a measured rate, the newest release of each setup; facts only.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from stallwise.errors import StallwiseError
from stallwise.physics.specs.models import model_names
from stallwise.planner.measured import measured_step_s
from stallwise.planner.runs import run_of

TARGET = Path(__file__).parents[1] / "src/stallwise/physics/costs/measured/published_runs.csv"
COLUMNS = (
    "row_id", "source", "citation", "model", "model_name", "layers", "hidden", "heads", "kv_heads", "ffn", "gated_mlp",
    "vocab", "experts", "topk", "seq", "gpu", "gpu_name", "num_gpus", "tp", "pp", "vp", "cp", "ep", "sp", "sharding",
    "micro_batch", "global_batch", "recompute", "precision", "schedule", "tokens_per_s_per_gpu", "notes",
)  # fmt: skip


def main() -> None:
    known = set(model_names())
    newest: dict[tuple[object, ...], tuple[float, dict[str, object]]] = {}
    with Path(sys.argv[1]).open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            try:
                run = run_of(row)
            except StallwiseError:
                continue
            seconds = measured_step_s(row, run)
            if not seconds or run.model.name not in known or row.get("verified") != "yes":
                continue
            rate = run.workload.tokens_per_step / seconds / run.cluster.gpus
            found: dict[str, object] = {c: row.get(c, "") for c in COLUMNS}
            found |= {
                "model_name": run.model.name,
                "gpu_name": run.cluster.gpu.name,
                "tokens_per_s_per_gpu": f"{rate:.5g}",
            }
            setup = (run.model.name, run.cluster.gpu.name, run.cluster.gpus, run.workload.seq, run.recipe.precision)
            year = run.recipe.software_year
            if setup not in newest or year >= newest[setup][0]:
                newest[setup] = (year, found)
    with TARGET.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(found for _, found in newest.values())
    print(len(newest), "runs")


if __name__ == "__main__":
    main()
