"""What one layout needs on each kind of stage, what its activations are made of, and which knob frees how much."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallwise.physics.costs.activations import kept_tensors, tensor_bytes
from stallwise.physics.costs.grid import grid_of, recipe_of
from stallwise.physics.costs.memory import MOMENTS, memory, over_step, stage_memories, stages_of
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import Layout, check
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.fit_words import room_of
from stallwise.planner.search import USABLE_SHARE


@dataclass(frozen=True)
class StageMemory:
    """One kind of stage: its bytes by name."""

    stage: str
    device_bytes: float
    allocated_bytes: float
    moment: str
    parts: dict[str, float]
    course: list[tuple[str, dict[str, float]]]  # the same parts through a step, moment by moment


@dataclass(frozen=True)
class Knob:
    """A change and the memory it frees on the fullest GPU."""

    change: str
    freed_bytes: float
    device_bytes: float
    fits: bool
    costs: str


@dataclass(frozen=True)
class MemoryAnswer:
    """The whole answer."""

    model: Model
    cluster: Cluster
    workload: Workload
    layout: Layout
    recipe: Recipe
    room_bytes: float
    stages: list[StageMemory]
    tensors: dict[str, float]  # of one microbatch, all layers of a stage
    knobs: list[Knob]

    @property
    def worst(self) -> StageMemory:
        """The fullest stage."""
        return max(self.stages, key=lambda s: s.device_bytes)

    @property
    def fits(self) -> bool:
        """Whether the fullest stage leaves room."""
        return self.worst.device_bytes <= self.room_bytes

    @property
    def fit(self) -> str:
        """By the interval: fits, may fit, does not fit."""
        return room_of(self.cluster.gpu.memory_bytes, self.recipe).word(self.worst.device_bytes)

    @property
    def interval_bytes(self) -> tuple[float, float]:
        """90% of what other publishers measured lies between these."""
        ratio = room_of(self.cluster.gpu.memory_bytes, self.recipe).half_width_ratio
        return self.worst.device_bytes / ratio, self.worst.device_bytes * ratio


def memory_answer(
    model: Model, cluster: Cluster, workload: Workload, layout: Layout, recipe: Recipe | None = None
) -> MemoryAnswer:
    """Bytes of one layout; raises with the nearest valid value where the layout cannot be."""
    check(layout, model, workload, cluster.gpus)
    recipe = recipe or recipe_of(layout)
    grid = grid_of([layout], workload)
    stages = [
        StageMemory(
            name,
            float(found.device[0]),
            float(found.allocated[0]),
            MOMENTS[int(found.moment[0])],
            {part: float(values[0]) for part, values in found.parts().items()},
            [
                (when, {part: float(v[0]) for part, v in parts.items()})
                for when, parts in over_step(grid, recipe, stage)
            ],
        )
        for (name, found), (_, stage) in zip(
            stage_memories(model, grid, workload, recipe), stages_of(model, grid, workload, recipe), strict=True
        )
    ]
    tokens = grid.mb * workload.seq / grid.cp
    tensors: dict[str, float] = {}
    for attention, mlp, layers in model.kinds:
        for tensor in kept_tensors(model, attention, mlp, workload.seq, recipe, layout.recompute):
            size = float(tensor_bytes(tensor, grid, tokens)[0]) * layers / layout.pp
            tensors[tensor.name] = tensors.get(tensor.name, 0.0) + size
    room = USABLE_SHARE * cluster.gpu.memory_bytes
    now = max(s.device_bytes for s in stages)
    return MemoryAnswer(
        model,
        cluster,
        workload,
        layout,
        recipe,
        room,
        stages,
        tensors,
        _knobs(model, workload, layout, recipe, now, room),
    )


def _knobs(model: Model, workload: Workload, layout: Layout, recipe: Recipe, now: float, room: float) -> list[Knob]:
    tries: list[tuple[str, Layout, Recipe, str]] = []
    for level, cost in (("selective", "a few percent of time"), ("full", "about a third more compute")):
        if layout.recompute == "none" or (layout.recompute == "selective" and level == "full"):
            tries.append((f"recompute {level}", replace(layout, recompute=level), recipe, cost))
    if not recipe.flash_attention:
        fused = replace(layout, attention="")
        tries.append(
            ("fused attention (FlashAttention)", fused, replace(recipe, attention=""), "none: it is faster too")
        )
    if layout.tp > 1 and not layout.sequence_parallel:
        split = replace(layout, sequence_parallel=True)
        tries.append(
            (
                "sequence parallelism",
                split,
                recipe,
                "none: all-gather and reduce-scatter move what the all-reduce moved",
            )
        )
    if layout.micro_batch > 1:
        half = layout.micro_batch // 2
        tries.append((f"microbatch {half}", replace(layout, micro_batch=half), recipe, "smaller matrix products"))
    if layout.zero < 3 and layout.dp * layout.cp > 1:
        costs = ("one all-gather per step", "a reduce-scatter per microbatch", "an all-gather per layer and pass")[
            layout.zero
        ]
        tries.append((f"ZeRO {layout.zero + 1}", replace(layout, zero=layout.zero + 1), recipe, costs))
    if model.heads % (2 * layout.tp) == 0 and layout.dp % 2 == 0:
        wider = replace(layout, tp=2 * layout.tp, dp=layout.dp // 2, sequence_parallel=True)
        tries.append((f"TP {wider.tp}", wider, recipe, "more messages, narrower GEMMs"))
    if layout.dp % 2 == 0 and 2 * layout.pp * layout.virtual_stages <= model.layers:
        deeper = replace(layout, pp=2 * layout.pp, dp=layout.dp // 2)
        tries.append((f"PP {deeper.pp}", deeper, recipe, "a larger bubble"))
    if recipe.optimizer == "adamw":
        tries.append(("8-bit AdamW", layout, replace(recipe, optimizer="adamw-8bit"), "slightly noisier updates"))
    if recipe.grad_bytes == 4.0:
        tries.append(("bf16 gradients", layout, replace(recipe, grad_bytes=2.0), "rounding in accumulation"))
    if recipe.offload == "none":
        tries.append(("offload the optimizer", layout, replace(recipe, offload="optimizer"), "PCIe traffic every step"))
    found = []
    for change, other, changed, cost in tries:
        grid = grid_of([other], workload)
        size = float(memory(model, grid, workload, changed).device[0])
        if size < now * 0.998:
            found.append(Knob(change, now - size, size, size <= room, cost))
    return sorted(found, key=lambda k: -k.freed_bytes)
