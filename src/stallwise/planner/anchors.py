"""Published runs of the same model on the same card: the newest one nearest in size is where a plan starts from.

The table ships with the product (`published_runs.csv`, facts with their source). What the planner gets wrong about a
run it gets wrong about its neighbours too, so a prediction beside an anchor is the anchor times a ratio.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from math import exp, log, sqrt

from stallwise.errors import StallwiseError
from stallwise.physics.costs.fitted import constants, table
from stallwise.physics.costs.spread import family_of
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.knobs import settings_of
from stallwise.planner.predict import mixed_log_s
from stallwise.planner.runs import Run, run_of

NEAR_SEQ_RATIO = 2.1  # a run at a sequence length within this factor is a neighbour
NEAR_SIZE_RATIO = 16.0  # and on so many times more or fewer GPUs


@dataclass(frozen=True)
class Anchor:
    """A published run beside the question."""

    source: str
    label: str
    gpus: int
    seq: int
    year: float
    tokens_per_s_per_gpu: float
    published_s: float
    predicted_s: float
    trust: float  # share of its deviation that its neighbours are believed to have too
    between: float  # doubt between publishers that is left beside it

    @property
    def scale(self) -> float:
        """Published over predicted."""
        return self.published_s / self.predicted_s

    @property
    def shrunk_scale(self) -> float:
        """What it says about its neighbours' predictions."""
        return exp(self.trust * log(self.scale))


@cache
def published() -> tuple[dict[str, str], ...]:
    """The table."""
    text = (files("stallwise.physics.costs") / "measured" / "published_runs.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def anchor_for(model: Model, cluster: Cluster, workload: Workload, recipe: Recipe) -> Anchor | None:
    """The newest published run of this model, card and precision near this size; None where there is none."""
    return _newest(
        shape_of(model), cluster.gpu.name, cluster.gpus, workload.seq, recipe.precision, bool(recipe.lora_rank),
        family_of(model, recipe), recipe.framework, cluster.gpu.power_w,
    )  # fmt: skip


def shape_of(model: Model) -> tuple[int, ...]:
    """What makes two models one for a machine, whatever they are called."""
    return (
        model.layers, model.hidden, model.heads, model.kv_heads, model.intermediate, model.vocab, model.experts,
        model.experts_per_token, model.expert_intermediate,
    )  # fmt: skip


@cache
def _run(row_id: str) -> Run | None:
    try:
        return next(run_of(row) for row in published() if row["row_id"] == row_id)
    except StallwiseError:
        return None


@lru_cache(maxsize=256)
def _newest(
    shape: tuple[int, ...],
    card: str,
    gpus: int,
    seq: int,
    precision: str,
    lora: bool,
    family: str,
    framework: str,
    power_w: float,
) -> Anchor | None:
    found: list[tuple[bool, float, float, dict[str, str], Run]] = []
    for row in published():
        run = _run(row["row_id"]) if row["gpu_name"] == card else None
        if run is None or shape_of(run.model) != shape:
            continue
        seq_ratio = max(run.workload.seq / seq, seq / run.workload.seq)
        size = max(run.cluster.gpus / gpus, gpus / run.cluster.gpus)
        same = run.recipe.precision == precision and bool(run.recipe.lora_rank) == lora
        same = same and run.cluster.gpu.power_w == power_w  # a card of another power limit is another card
        if same and seq_ratio <= NEAR_SEQ_RATIO and size <= NEAR_SIZE_RATIO:
            alike = run.recipe.framework == framework
            found.append((alike, run.recipe.software_year, -abs(log(size)) - abs(log(seq_ratio)), row, run))
    if not found:
        return None
    _, year, _, row, run = max(found, key=lambda f: f[:3])
    settings = settings_of(run, constants())
    seconds = exp(mixed_log_s(settings, constants())[0])
    rate = float(row["tokens_per_s_per_gpu"])
    measured = run.workload.tokens_per_step / rate / run.cluster.gpus
    label = settings.layouts[settings.likeliest].label
    spread = table()["spread"][family]
    trust = spread["between"] ** 2 / (spread["between"] ** 2 + spread["within"] ** 2)
    left = spread["between"] * sqrt(1 - trust)
    return Anchor(row["source"], label, run.cluster.gpus, run.workload.seq, year, rate, measured, seconds, trust, left)
