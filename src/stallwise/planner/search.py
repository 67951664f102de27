"""The best layout and what surrounds it: the ranking, the frontier, why the next one lost, what each knob would do."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stallwise.errors import BadRequest
from stallwise.evidence.shown import Shown
from stallwise.physics.costs.constants import Array
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.flops import step_flops
from stallwise.physics.costs.grid import RECOMPUTE_CODE, Grid
from stallwise.physics.costs.memory import MOMENTS, Memory
from stallwise.physics.costs.step import Step
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.anchors import Anchor
from stallwise.planner.evaluate import evaluate, memories, steps
from stallwise.planner.fit_words import room_of
from stallwise.planner.ranking import EQUAL_SHARE, equals, order, picked_ratio, tiers
from stallwise.planner.relief import what_would_fit
from stallwise.planner.remarks import remarks_on
from stallwise.planner.run_cost import RunCost, run_cost
from stallwise.planner.simulated import SimulatedPipeline, simulate_pipeline
from stallwise.planner.space import Fixed, enumerate_layouts
from stallwise.planner.standing import Answer, AnswerSeconds, standing_of
from stallwise.planner.what_changes import what_would_change
from stallwise.progress import shown

USABLE_SHARE = 0.94  # of a GPU's memory that a plan may fill; above it fragmentation decides
STAGES = ("first", "last", "second")
LEADERS = 64  # layouts asked again in other worlds
PEAKS = {"mxfp8": "fp8", "nvfp4": "fp4"}  # an MFU is against the peak of the type that multiplies


@dataclass(frozen=True)
class Candidate:
    """One layout with its predicted time, memory and price."""

    layout: Layout
    seconds: float
    low_s: float
    high_s: float
    memory_bytes: float
    memory_low_bytes: float  # of its 90% interval
    memory_high_bytes: float
    fits: bool  # by the prediction itself
    fit: str  # by the interval: fits, may fit, does not fit
    mfu_share: float
    hfu_share: float
    mfu_against: str  # the peak of which both are shares
    tokens_per_s: float
    dollar_per_step: float | None
    parts: dict[str, float]
    memory_parts: dict[str, float]
    peak_moment: str
    peak_stage: str


@dataclass(frozen=True)
class Change:
    """One knob of the best layout moved by one step."""

    knob: str
    layout: Layout
    seconds: float
    memory_bytes: float
    fits: bool
    fit: str  # by the interval


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """The answer of a search."""

    model: Model
    cluster: Cluster
    workload: Workload
    recipe: Recipe
    considered: int
    feasible: int
    search_s: float
    best: list[Candidate]
    frontier: list[Candidate]
    lost: list[str]  # why each follower is slower than the first
    sensitivity: list[Change] = field(default_factory=list)
    pipeline: SimulatedPipeline | None = None  # the best one's schedule, simulated
    sizes: list[tuple[int, Candidate]] = field(default_factory=list)  # fewer GPUs: slower, and often cheaper
    fastest_s: float = 0.0  # of those that fit and are taken unforced; the first is simpler where it is not this one
    equal: int = 1  # layouts whose predictions cannot be told from the first's
    tight: bool = False  # nothing fits by the numbers; these may with care
    picked_ratio: float = 1.0  # what being picked among many may flatter
    would_change: list[str] = field(default_factory=list)
    would_fit: list[str] = field(default_factory=list)  # what to change where nothing fits by the numbers
    run: RunCost | None = None  # with failures, checkpoints and restarts
    remarks: list[str] = field(default_factory=list)  # about the question itself
    answers: list[AnswerSeconds] = field(
        default_factory=list
    )  # the first layout's, by how much is known of the cluster
    anchor: Anchor | None = None  # the newest published run of this model on this card

    def _line(self) -> str:
        best = f"{self.best[0].layout.label}, {self.best[0].seconds:.3g} s a step" if self.best else "nothing fits"
        return f"{self.model.name} on {self.cluster.gpus} x {self.cluster.gpu.name}: {best}"


def search(
    model: Model,
    cluster: Cluster,
    workload: Workload,
    recipe: Recipe | None = None,
    *,
    fixed: Fixed | None = None,
    keep: int = 5,
    values: Array | None = None,
) -> Plan:
    """Ranks every layout that fits."""
    recipe = recipe or Recipe()
    began = time.perf_counter()
    grid = enumerate_layouts(model, cluster, workload, fixed)
    seconds, needed = evaluate(model, cluster, workload, grid, recipe, values)
    standing = standing_of(model, cluster, workload, recipe, calibrated=values is not None)
    seconds = seconds * standing.ratio
    room = USABLE_SHARE * cluster.gpu.memory_bytes
    fits = needed <= room
    tight = not np.any(fits)
    limits = room_of(cluster.gpu.memory_bytes, recipe)
    relief: list[str] = []
    if tight:  # those whose interval reaches below the card may run, the leanest likeliest
        fits = needed / limits.half_width_ratio <= cluster.gpu.memory_bytes
        relief = what_would_fit(model, workload, grid, needed, recipe, room, cluster.gpus)
    if not np.any(fits):
        raise BadRequest(_does_not_fit(model, cluster, grid, needed, recipe, room), hint=", or ".join(relief))
    sure = needed * limits.half_width_ratio <= cluster.gpu.memory_bytes
    ranked = order(model, seconds, needed, fits, grid, cluster, workload, sure=sure)
    if tight:
        ranked = ranked[np.argsort(needed[ranked], kind="stable")]
    tier = tiers(model, grid, cluster, workload)
    picked = distinct_meshes(grid, ranked, keep)
    front = _frontier(seconds, needed, fits)
    flattery = picked_ratio(seconds, fits, grid)
    best = candidates(model, cluster, workload, grid.take(picked), recipe, values, picked=flattery)
    plan = Plan(
        model=model,
        cluster=cluster,
        workload=workload,
        recipe=recipe,
        considered=len(grid),
        feasible=int(fits.sum()),
        search_s=time.perf_counter() - began,
        best=best,
        frontier=candidates(model, cluster, workload, grid.take(front), recipe, values),
        lost=[why_slower(best[0], other) for other in best[1:]],
        fastest_s=float(seconds[fits & (tier == tier[ranked[0]])].min()),
        equal=int(np.sum(equals(seconds[fits & (tier == tier[ranked[0]])], best[0].seconds))),
        picked_ratio=flattery,
        tight=tight,
        answers=standing.in_seconds(best[0].seconds, picked=flattery),
        anchor=standing.anchor,
        would_fit=relief,
        remarks=remarks_on(cluster, workload, recipe),
        would_change=what_would_change(
            model, cluster, workload, recipe, grid.take(ranked[:LEADERS]), needed[ranked[:LEADERS]],
            constants() if values is None else values, room, _leaner(seconds, needed, fits, ranked[0], grid),
        ),
    )  # fmt: skip
    first = best[0].layout
    return replace(
        plan,
        sensitivity=sensitivity(plan, grid, seconds, needed, room),
        run=run_cost(model, cluster, recipe, workload.tokens / best[0].tokens_per_s),
        pipeline=simulate_pipeline(model, cluster, workload, first, recipe.at_zero(first.zero), values),
    )


HALVINGS = 4


def smaller_clusters(plan: Plan, *, fixed: Fixed | None = None, values: Array | None = None) -> Plan:
    """Adds the best layout on a half, a quarter, ... of the GPUs: the cost side of the frontier."""
    sizes = [(plan.cluster.gpus, plan.best[0])]
    for halving in shown(range(1, HALVINGS + 1), HALVINGS, "planning smaller clusters", "sizes"):
        gpus = plan.cluster.gpus >> halving
        if gpus < 1 or gpus << halving != plan.cluster.gpus:
            break
        try:
            less = search(
                plan.model, plan.cluster.of_size(gpus), plan.workload, plan.recipe, fixed=fixed, keep=1, values=values
            )
        except BadRequest:
            break  # it no longer fits, nor will any smaller one
        sizes.append((gpus, less.best[0]))
    return replace(plan, sizes=sizes)


def candidates(
    model: Model, cluster: Cluster, workload: Workload, grid: Grid, recipe: Recipe, values: Array | None = None,
    *, picked: float = 1.0,
) -> list[Candidate]:  # fmt: skip
    """The full picture of a few layouts; `picked` raises the upper end where they were picked for looking fast."""
    step = steps(model, cluster, workload, grid, recipe, values)
    used = memories(model, grid, workload, recipe)
    taken = standing_of(model, cluster, workload, recipe, calibrated=values is not None).taken
    step = step.scaled(taken.ratio or 1.0)
    return [_candidate(model, cluster, workload, grid, recipe, step, used, i, taken, picked) for i in range(len(grid))]


def _candidate(
    model: Model, cluster: Cluster, workload: Workload, grid: Grid, recipe: Recipe, step: Step, used: Memory,
    i: int, taken: Answer, picked: float,
) -> Candidate:  # fmt: skip
    layout = grid.layout(i, recipe.at_zero(int(grid.zero[i])))
    seconds = float(step.total[i])
    gpus = int(grid.gpus[i])
    multiplies = PEAKS.get(recipe.precision, recipe.precision)
    peak = cluster.gpu.peak(multiplies) * gpus * seconds
    frozen = recipe.lora_rank > 0
    price = cluster.price_per_gpu_hour
    device = float(used.device[i])
    limits = room_of(cluster.gpu.memory_bytes, recipe)
    return Candidate(
        layout=layout,
        seconds=seconds,
        low_s=seconds / taken.half_width_ratio,
        high_s=seconds * taken.half_width_ratio * picked,
        memory_bytes=device,
        memory_low_bytes=device / limits.half_width_ratio,
        memory_high_bytes=device * limits.half_width_ratio,
        fit=limits.word(device),
        fits=device <= USABLE_SHARE * cluster.gpu.memory_bytes,
        mfu_share=step_flops(model, workload, frozen=frozen) / peak,
        hfu_share=step_flops(model, workload, "hardware", recompute=layout.recompute, frozen=frozen) / peak,
        mfu_against=f"{multiplies} peak of {cluster.gpu.peak(multiplies) / 1e12:,.0f} TFLOP/s",
        tokens_per_s=workload.tokens_per_step / seconds,
        dollar_per_step=price * gpus * seconds / 3600 if price else None,
        parts={n: float(v[i]) for n, v in step.parts().items()},
        memory_parts={n: float(v[i]) for n, v in used.parts().items()},
        peak_moment=MOMENTS[int(used.moment[i])],
        peak_stage="only" if layout.pp == 1 else STAGES[int(used.stage[i])],
    )


def distinct_meshes(grid: Grid, ranked: Any, keep: int) -> Any:
    """The first of every mesh: layouts that differ in a microbatch alone would fill the list with one idea."""
    seen: set[tuple[int, ...]] = set()
    found = []
    for i in ranked:
        mesh = (int(grid.tp[i]), int(grid.pp[i]), int(grid.cp[i]), int(grid.ep[i]), int(grid.zero[i] >= 3))
        if mesh not in seen:
            seen.add(mesh)
            found.append(int(i))
        if len(found) == keep:
            break
    return np.array(found)


def _leaner(seconds: Array, needed: Array, fits: Any, first: int, grid: Grid) -> tuple[Grid, float, float] | None:
    """The fastest of those that need clearly less memory than the first: its layout, time and memory over the first's."""
    less = np.flatnonzero(fits & (needed < 0.9 * needed[first]))
    if not len(less):
        return None
    i = int(less[np.argmin(seconds[less])])
    return grid.take(np.array([i])), float(seconds[i] / seconds[first]), float(needed[i] / needed[first])


def _frontier(seconds: Array, needed: Array, fits: Any) -> Any:
    """Layouts that nothing beats in both time and memory, quickest first."""
    order = np.lexsort((needed, seconds))
    order = order[fits[order]]
    lowest = np.minimum.accumulate(needed[order])
    first = np.concatenate([[True], needed[order][1:] < lowest[:-1] * 0.98])  # 2% less is worth a line
    return order[first][:8]


def why_slower(best: Candidate, other: Candidate) -> str:
    """The parts that make a follower slower, largest first."""
    gap = other.seconds - best.seconds
    deltas = sorted(((other.parts[n] - best.parts[n], n) for n in best.parts), reverse=True)
    worse = [f"{n.replace('_', ' ')} +{d:.3g} s" for d, n in deltas[:2] if d > 0.05 * max(gap, 1e-9)]
    better = [f"{n.replace('_', ' ')} {d:.3g} s" for d, n in deltas[-1:] if d < -0.2 * max(gap, 1e-9)]
    if abs(gap) <= EQUAL_SHARE * best.seconds:
        simpler = other.seconds < best.seconds
        return f"equal ({gap / best.seconds:+.1%}, less than predictions err)" + (
            "; the first is simpler" if simpler else ""
        )
    text = f"{gap / best.seconds:+.1%}: " + (", ".join(worse) or "the same within rounding")
    return text + (f"; wins {better[0]}" if better else "")


KNOBS = ("tp", "pp", "cp", "ep", "vp", "mb", "zero", "recompute")


def sensitivity(plan: Plan, grid: Grid, seconds: Array, needed: Array, room: float) -> list[Change]:
    """The best layout with one axis moved to its nearest other values, DP taking up the difference.

    Where no layout differs in that axis alone, the virtual stages and experts' ranks that have to move are named too.
    """
    best = plan.best[0].layout
    now = {
        "tp": best.tp, "pp": best.pp, "cp": best.cp, "ep": best.ep, "vp": best.virtual_stages,
        "mb": best.micro_batch, "zero": best.zero, "recompute": RECOMPUTE_CODE[best.recompute],
    }  # fmt: skip
    limits = room_of(plan.cluster.gpu.memory_bytes, plan.recipe)
    changes: list[Change] = []
    for knob in KNOBS:
        others = {other: getattr(grid, other) == value for other, value in now.items() if other != knob}
        alone = np.logical_and.reduce(list(others.values()))
        loose = np.logical_and.reduce([same for other, same in others.items() if other not in ("vp", "ep")])
        column = getattr(grid, knob)
        for value in _neighbours(np.unique(column[loose if knob in ("tp", "pp", "cp") else alone]), now[knob]):
            here = np.flatnonzero(alone & (column == value))
            if not len(here):
                here = np.flatnonzero(loose & (column == value))
            i = int(here[np.argmin(np.where(needed[here] <= room, seconds[here], seconds[here] * 1e6))])
            layout = grid.layout(i, plan.recipe)
            moved = [n for n in ("vp", "ep") if n != knob and int(getattr(grid, n)[i]) != now[n]]
            name = f"{knob} and {' and '.join(moved)}" if moved else knob
            fit = limits.word(float(needed[i]))
            changes.append(Change(name, layout, float(seconds[i]), float(needed[i]), bool(needed[i] <= room), fit))
    return changes


def _neighbours(values: Any, now: int) -> list[int]:
    below, above = values[values < now], values[values > now]
    return [int(v) for v in (below[-1:], above[:1]) for v in v]


def _does_not_fit(model: Model, cluster: Cluster, grid: Grid, needed: Array, recipe: Recipe, room: float) -> str:
    i = int(np.argmin(needed))
    return (
        f"{model.name} does not fit on {cluster.gpus} x {cluster.gpu.name}: the leanest of {len(grid):,} layouts "
        f"({grid.layout(i, recipe).label}) needs {needed[i] / 2**30:.0f} GiB of {room / 2**30:.0f} GiB a GPU"
    )
