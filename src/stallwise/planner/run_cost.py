"""What a planned run costs with its failures: checkpoint, interval, restart, restart on another topology, useful hours."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.errors import BadRequest
from stallwise.physics.costs.adapters import trained_share
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import OPTIMIZERS
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.planner.cost import CHECKPOINT_BYTES_PER_PARAM, CostQuestion, answer_cost

MASTER_AND_WEIGHTS = CHECKPOINT_BYTES_PER_PARAM - OPTIMIZERS["adamw"]  # an fp32 copy and 16-bit weights


@dataclass(frozen=True)
class RunCost:
    """One table of a plan; rates and failures are those of published fleets."""

    checkpoint_bytes: float
    write_s: float
    interval_s: float
    failures_per_day: float
    goodput_share: float
    goodput_low_share: float
    goodput_high_share: float
    storage_byte_per_s: float  # that checkpoints take while they are written
    storage_mean_byte_per_s: float  # over the interval between them
    reshard_s: float  # reading the checkpoint into another topology
    dollar_per_useful_hour: float
    dollar_per_failure: float
    run_wall_s: float | None
    run_dollar: float | None
    basis: str


def run_cost(model: Model, cluster: Cluster, recipe: Recipe, useful_s: float = 0.0) -> RunCost | None:
    """None where failures leave no time for work."""
    per_param = MASTER_AND_WEIGHTS + OPTIMIZERS.get(recipe.optimizer, OPTIMIZERS["adamw"])
    size = model.parameters().total * per_param * trained_share(model, recipe)
    try:
        found = answer_cost(CostQuestion(cluster, size, useful_s=useful_s))
    except BadRequest:
        return None
    good, money = found["goodput"], found["money"]
    return RunCost(
        size, found["checkpoint"]["write_s"], good["interval_s"], found["failures_per_day"], good["goodput_share"],
        good["low_share"], good["high_share"], size / max(found["checkpoint"]["write_s"], 1e-9),
        size / max(good["interval_s"], 1e-9), found["reshard_s"], money["dollar_per_useful_hour"],
        money["dollar_per_failure"], money.get("run_wall_s"), money.get("run_dollar"), found["basis"],
    )  # fmt: skip
