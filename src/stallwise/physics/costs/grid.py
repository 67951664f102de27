"""Many layouts at once: each axis of a Layout as one array, so that a whole search is a few hundred numpy calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.states import States
from stallwise.physics.specs.workload import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RECOMPUTE_CODE = {"none": 0, "selective": 1, "full": 2, "experts": 3, "operator": 4}


@dataclass(frozen=True)
class Grid:
    """Layouts by axis; all arrays have one length."""

    tp: Ints
    pp: Ints
    dp: Ints
    cp: Ints
    ep: Ints
    etp: Ints
    vp: Ints
    sp: Flags
    zero: Ints
    shards: Ints
    mb: Ints
    recompute: Ints
    micro_batches: Ints

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, which: NDArray[np.int64] | Flags) -> Grid:
        """A part of the layouts."""
        return Grid(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    @property
    def gpus(self) -> Ints:
        """GPUs each takes."""
        return self.tp * self.pp * self.dp * self.cp

    def layout(self, i: int, recipe: Recipe) -> Layout:
        """One of them as a Layout."""
        names = {code: name for name, code in RECOMPUTE_CODE.items()}
        data = int(self.dp[i] * self.cp[i])
        return Layout(
            tp=int(self.tp[i]),
            pp=int(self.pp[i]),
            dp=int(self.dp[i]),
            cp=int(self.cp[i]),
            ep=int(self.ep[i]),
            etp=int(self.etp[i]),
            virtual_stages=int(self.vp[i]),
            sequence_parallel=bool(self.sp[i]),
            zero=int(self.zero[i]),
            shard_group=0 if int(self.shards[i]) == data else int(self.shards[i]),
            micro_batch=int(self.mb[i]),
            recompute=names[int(self.recompute[i])],
            recompute_modules=recipe.recompute_modules,
            precision=recipe.precision,
            optimizer=recipe.optimizer,
            schedule=recipe.schedule,
            style=recipe.style,
            lora_rank=recipe.lora_rank,
            attention=recipe.attention,
            offload=recipe.offload,
            grad_dtype={2.0: "bf16", 4.0: "fp32"}.get(recipe.grad_bytes, "fp32"),
            param_dtype="fp8" if recipe.weight_bytes == 1.0 else "bf16",
            lora_targets=recipe.lora_targets,
            master=recipe.master,
            end_stage_layers=recipe.end_stage_layers,
        )


def distinct(grid: Grid) -> tuple[Grid, Ints]:
    """The distinct slices of a layer among many layouts, and for each layout which slice it has."""
    code = grid.tp
    for axis, room in ((grid.cp, 1 << 12), (grid.ep, 1 << 13), (grid.etp, 1 << 8), (grid.mb, 1 << 12), (grid.sp, 2)):
        code = code * room + axis
    _, first, back = np.unique(code, return_index=True, return_inverse=True)
    return grid.take(first), back


def grid_of(layouts: Sequence[Layout], workload: Workload) -> Grid:
    """The arrays of some layouts."""

    def column(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    return Grid(
        tp=column([x.tp for x in layouts]),
        pp=column([x.pp for x in layouts]),
        dp=column([x.dp for x in layouts]),
        cp=column([x.cp for x in layouts]),
        ep=column([x.ep for x in layouts]),
        etp=column([x.expert_tp for x in layouts]),
        vp=column([x.virtual_stages for x in layouts]),
        sp=np.array([x.sequence_parallel for x in layouts], dtype=bool),
        zero=column([x.zero for x in layouts]),
        shards=column([x.shards for x in layouts]),
        mb=column([x.micro_batch for x in layouts]),
        recompute=column([RECOMPUTE_CODE[x.recompute] for x in layouts]),
        micro_batches=column([max(x.micro_batches(workload), 1) for x in layouts]),
    )


def recipe_of(layout: Layout) -> Recipe:
    """What a single Layout says about the shared choices."""
    own = layout.style != "megatron"
    states = States(
        pure=layout.precision == "pure_bf16",
        amp=layout.precision == "amp",
        param="fp8" if layout.param_dtype == "fp8" else "",
        grad=layout.grad_dtype,
        frozen=layout.frozen_dtype,
    )
    return Recipe(
        precision="bf16" if states.pure or states.amp else layout.precision,
        framework="pytorch" if own else "megatron",
        states=states,
        attention=layout.attention,
        optimizer=layout.optimizer,
        schedule=layout.schedule,
        lora_rank=layout.lora_rank,
        lora_targets=layout.lora_targets,
        end_stage_layers=layout.end_stage_layers,
        recompute_modules=layout.recompute_modules,
        offload=layout.offload,
        fused=not own,
    ).at_zero(layout.zero)
