"""A planning question in a user's words: names become specs, nonsense becomes the nearest thing that makes sense."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stallwise.errors import BadRequest, UnreadableInput
from stallwise.physics.costs.constants import INDEX, Array
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.grid import recipe_of
from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.hardware import Gpu
from stallwise.physics.specs.layout import OFFLOADS, OPTIMIZERS, SCHEDULES, Layout
from stallwise.physics.specs.model import Model, find_model
from stallwise.physics.specs.recipe import ATTENTION, FRAMEWORKS, GATHERS, KERNELS, SCALINGS, TP_OVERLAP, Recipe
from stallwise.physics.specs.recipe_text import usual_states
from stallwise.physics.specs.states import FROZEN_BYTES, GRAD_DTYPES, PARAM_DTYPES
from stallwise.physics.specs.workload import Workload
from stallwise.planner.calibration import from_measured
from stallwise.planner.search import Plan, search, smaller_clusters
from stallwise.planner.space import Fixed, divisors
from stallwise.units import Unit, parse

PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4", "fp32")


def count(text: str | int, what: str) -> int:
    """A count people write as 2048, 2k or 1e30."""
    value = parse(text, Unit.COUNT)
    if value != value or value in (float("inf"), float("-inf")):
        raise BadRequest(f"{what} {text} is not a number", hint="a whole number such as 512")
    if value != int(value):
        raise BadRequest(f"{what} {text} is not whole", hint=f"the nearest is {round(value)}")
    return int(value)


def ask_plan(
    name: str,
    where: str,
    *,
    seq: int,
    global_batch: int,
    tokens: float = 0.0,
    precision: str = "bf16",
    optimizer: str = "adamw",
    lora: int = 0,
    schedule: str = "1f1b",
    offload: str = "none",
    tp: int | None = None,
    pp: int | None = None,
    vp: int | None = None,
    cp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
    zero: int | None = None,
    micro_batch: int | None = None,
    recompute: str | None = None,
    nic: str | None = None,
    pod: int | None = None,
    oversubscription: float = 1.0,
    imbalance: float = 1.0,
    framework: str = "megatron",
    release: float = 0.0,
    attention: str = "",
    kernels: str = "",
    tp_overlap: str = "",
    scaling: str = "",
    gather: str = "layer",
    param_dtype: str = "",
    grad_dtype: str = "",
    frozen_dtype: str = "",
    lora_targets: str = "attention",
    expert_overlap: bool = False,
    chunked_loss: bool = False,
    wiring: str = "",
    peer_access: bool | None = None,
    constants: str | None = None,
    measured: str = "",
    top: int = 5,
    smaller: bool = False,
    explain: bool = False,
    short: bool = False,
) -> Plan:
    """The plan for a model on a cluster."""
    del explain  # the arithmetic is written by whoever shows the plan
    model = find_model(name)
    cluster = find_cluster(
        where,
        nic_byte_per_s=parse(nic, Unit.BYTE_PER_S) if nic else None,
        pod_gpus=pod,
        oversubscription_ratio=oversubscription,
    )
    cluster = replace(cluster, host_wiring=wiring, peer_access=peer_access)
    workload = Workload(seq=seq, global_batch=global_batch, tokens=tokens, moe_imbalance_ratio=imbalance)
    for what, value, known in (
        ("precision", precision, PRECISIONS),
        ("optimizer", optimizer, tuple(OPTIMIZERS)),
        ("schedule", schedule, SCHEDULES),
        ("offload", offload, OFFLOADS),
        ("framework", framework, FRAMEWORKS),
        ("attention", attention, ("", *ATTENTION)),
        ("kernels", kernels, ("", *KERNELS)),
        ("tensor-parallel overlap", tp_overlap, ("", *TP_OVERLAP)),
        ("scaling", scaling, ("", *SCALINGS)),
        ("gather", gather, GATHERS),
        ("weight type", param_dtype, ("", *PARAM_DTYPES)),
        ("gradient type", grad_dtype, ("", *GRAD_DTYPES)),
        ("type of frozen weights", frozen_dtype, ("", *FROZEN_BYTES)),
        ("adapter target", lora_targets, ("attention", "all")),
    ):
        if value not in known:
            raise BadRequest(f"{what} '{value}' is not known", hint=f"one of {', '.join(k for k in known if k)}")
    if lora < 0:
        raise BadRequest(f"a rank of {lora} cannot be", hint="0 trains everything, 16 is a usual rank")
    check_precision(cluster.gpu, precision)
    fixed = Fixed(tp, pp, cp, ep, dp, micro_batch, zero, recompute, vp)
    check_axes(model, fixed, cluster.gpus)
    recipe = Recipe(
        precision=precision,
        optimizer=optimizer,
        lora_rank=lora,
        schedule=schedule,
        offload=offload,
        framework=framework,
        software_year=release,
        attention=attention,
        # PyTorch code runs one kernel per operation unless it is compiled; the others come with fused kernels.
        fused=kernels != "eager" and (bool(kernels) or framework not in ("pytorch", "deepspeed")),
        tp_overlap=tp_overlap or ("ring" if framework == "megatron" else "none"),
        scaling=scaling,
        gather=gather,
        sustained=not short,
        states=usual_states(framework, precision, release, param=param_dtype, grad=grad_dtype, frozen=frozen_dtype),
        lora_targets=lora_targets,
        expert_overlap=expert_overlap,
        chunked_loss=chunked_loss,
    )
    values = read_constants(constants) if constants else None
    own: dict[str, Any] = {}
    if measured:
        values, own = from_measured(measured, model, cluster, workload, recipe)
    plan = search(model, cluster, workload, recipe, fixed=fixed, keep=max(top, 1), values=values)
    if own:
        plan = replace(plan, remarks=[*plan.remarks, measured_remark(own)])
    return smaller_clusters(plan, fixed=fixed, values=values) if smaller else plan


def measured_remark(own: dict[str, Any]) -> str:
    """What a measured step changed, mechanism by mechanism."""
    changes = [f"{name} {a:.3g} -> {b:.3g} s" for name, (a, b) in own["mechanisms"].items() if max(a, b) > 0]
    return f"your step: {own['before_s']:.3g} s predicted before, {own['after_s']:.3g} s now ({', '.join(changes)}); {own['verdict']}"


def layout_recipe(
    layout: Layout, framework: str, *, lora_targets: str = "attention", chunked_loss: bool = False, **types: str
) -> Recipe:
    """How one layout is run: as `ask_plan` has it for a search, with "pure_bf16" and "amp" as precisions besides."""
    for what, value, known in (
        ("framework", framework, FRAMEWORKS), ("weight type", types.get("param", ""), ("", *PARAM_DTYPES)),
        ("gradient type", types.get("grad", ""), ("", *GRAD_DTYPES)),
        ("type of frozen weights", types.get("frozen", ""), ("", *FROZEN_BYTES)),
    ):  # fmt: skip
        if value not in known:
            raise BadRequest(f"{what} '{value}' is not known", hint=f"one of {', '.join(k for k in known if k)}")
    pure, amp = layout.precision == "pure_bf16", layout.precision == "amp"
    precision = "bf16" if pure or amp else layout.precision
    states = replace(usual_states(framework, precision, 0.0, **types), pure=pure, amp=amp)
    base = recipe_of(layout)
    fused = framework not in ("pytorch", "deepspeed")
    own = replace(
        base, framework=framework, states=states, fused=fused, lora_targets=lora_targets, precision=precision,
        chunked_loss=chunked_loss,
    )  # fmt: skip
    return own.at_zero(layout.zero)


def check_precision(card: Gpu, precision: str) -> None:
    """Types that a card cannot multiply are refused, with what it can."""
    needed = {"fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}.get(precision)
    if needed and needed not in card.peak_flop_per_s:
        best = "bf16" if "bf16" in card.peak_flop_per_s else "fp16"
        raise BadRequest(f"{card.title} has no {needed} matrix units", hint=f"--precision {best}")


def check_axes(model: Model, fixed: Fixed, gpus: int) -> None:
    """Pinned axes that cannot be, with the nearest that can."""
    for axis, value in vars(fixed).items():
        if isinstance(value, int) and axis != "zero" and value < 1:
            raise BadRequest(f"{axis} = {value} cannot be", hint=f"the nearest is {axis} = 1")
    if fixed.tp and model.heads % fixed.tp:
        near = min(divisors(model.heads), key=lambda d: abs(d - (fixed.tp or 1)))
        raise BadRequest(
            f"TP {fixed.tp} does not divide the {model.heads} heads of {model.name}",
            hint=f"the nearest TP that does is {near}",
        )
    if fixed.pp and fixed.pp > model.layers:
        raise BadRequest(
            f"PP {fixed.pp} is more than the {model.layers} layers of {model.name}",
            hint=f"the nearest is PP {model.layers}",
        )
    if fixed.ep and (not model.experts or model.experts % fixed.ep):
        near = min(divisors(max(model.experts, 1)), key=lambda d: abs(d - (fixed.ep or 1)))
        what = f"the {model.experts} experts" if model.experts else "anything: there are no experts"
        raise BadRequest(f"EP {fixed.ep} does not divide {what} in {model.name}", hint=f"the nearest EP is {near}")
    ranks_fixed = (fixed.tp or 1) * (fixed.pp or 1) * (fixed.cp or 1)
    if gpus % ranks_fixed:
        near = max(gpus // ranks_fixed, 1) * ranks_fixed
        raise BadRequest(
            f"TP x PP x CP = {ranks_fixed} does not divide {gpus} GPUs", hint=f"the nearest number of GPUs is {near}"
        )


def read_constants(path: str) -> Array:
    """Constants that `plan calibrate` wrote."""
    try:
        found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))["constants"]
        values = constants().copy()
        for name, value in found.items():
            values[INDEX[name]] = float(value)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableInput(
            f"{path} holds no constants of this release",
            hint="write them with: stallwise plan calibrate RUN -o constants.json",
        ) from error
    return np.asarray(values)
