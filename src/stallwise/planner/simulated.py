"""The chosen layout's pipeline simulated slot by slot with its own stage times, beside the formula the search used."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.errors import StallwiseError
from stallwise.physics.costs.constants import INDEX, Array
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.step import STAGE_EXPOSED, one_microbatch
from stallwise.physics.costs.work import step_work
from stallwise.physics.sim.pipeline import PassTimes, run_program
from stallwise.physics.sim.schedules import schedule_named
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload

MOST_SLOTS = 60_000  # stages x chunks x microbatches beyond which a simulation takes longer than the whole search


@dataclass(frozen=True)
class SimulatedPipeline:
    """One step of the pipeline alone: no data-parallel traffic, no optimizer."""

    schedule: str
    step_s: float
    bubble_step_share: float
    bubble_useful_ratio: float
    slowest_stage: int


def simulate_pipeline(
    model: Model, cluster: Cluster, workload: Workload, layout: Layout, recipe: Recipe, values: Array | None = None
) -> SimulatedPipeline | None:
    """None where there is no pipeline, or it is too large to be worth it."""
    many = layout.micro_batches(workload)
    if layout.pp == 1 or layout.pp * layout.virtual_stages * many > MOST_SLOTS:
        return None
    k = constants() if values is None else values
    work = step_work(model, cluster, workload, grid_of([layout], workload), recipe)
    micro = one_microbatch(work, k)
    name = "interleaved" if layout.virtual_stages > 1 and layout.schedule == "1f1b" else layout.schedule
    module = schedule_named(name)
    virtual = module.CHUNKS or layout.virtual_stages  # a V has two of them, whatever else was asked for
    chunks = layout.pp * virtual
    layers = layers_per_chunk(model.layers, chunks, work_fewer=recipe.end_stage_layers)
    mean = model.layers / layout.pp
    weight = float(micro.gemm_time_b[0]) / 2
    rest = float(micro.backward[0] + micro.again[0] + micro.host[0] + micro.sharding[0]) - weight
    head = float(micro.head[0])
    last = [0.0] * (chunks - 1) + [1.0]
    times = PassTimes(
        forward_s=tuple(float(micro.forward[0]) * n / mean + head / 3 * x for n, x in zip(layers, last, strict=True)),
        input_grad_s=tuple(rest * n / mean + head / 3 * x for n, x in zip(layers, last, strict=True)),
        weight_grad_s=tuple(weight * n / mean + head / 3 * x for n, x in zip(layers, last, strict=True)),
        p2p_s=float(work.p2p[0]) * STAGE_EXPOSED * float(k[INDEX["messages"]]),
    )
    try:
        run = run_program(module.program(layout.pp, many, virtual, times), times)
    except StallwiseError:
        return None  # a schedule that cannot run these numbers: the formula stands
    busy = run.busy_s
    return SimulatedPipeline(
        name, run.step_s, run.bubble_step_share, run.bubble_useful_ratio, max(range(len(busy)), key=busy.__getitem__)
    )


def layers_per_chunk(layers: int, chunks: int, *, work_fewer: int = 0) -> list[float]:
    """Layers of each virtual stage in order: even, or one fewer at both ends where the numbers ask for it."""
    fewer = 1 if layers % chunks and (layers + 2) % chunks == 0 else work_fewer
    whole, left = divmod(layers + 2 * fewer, chunks)
    found = [float(whole + (1 if i < left else 0)) for i in range(chunks)]
    if chunks > 1:
        found[0] -= fewer
        found[-1] -= fewer
    return found
