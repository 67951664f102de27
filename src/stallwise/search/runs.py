"""Published runs as questions to the planner: a table's row becomes model, cluster, workload and layout.

Only what describes the run is read here; the columns that hold results are never looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from stallwise.costs.grid import Recipe
from stallwise.errors import StallwiseError
from stallwise.specs.cluster import Cluster, cluster_of
from stallwise.specs.hardware import Gpu, find_gpu
from stallwise.specs.layout import Layout
from stallwise.specs.model import Model, find_model
from stallwise.specs.workload import Workload

MOST = 1e9  # no count or rate in these tables is larger
HOPPER_HBM2E = 2.4e12  # bytes a second of the Hopper variants with five older stacks
USUAL_VOCAB = 51_200  # GPT-2's 50,257 padded, where a paper does not say
PRECISIONS = (
    ("nvfp4", "nvfp4"), ("fp4", "nvfp4"), ("mxfp8", "mxfp8"), ("fp8-mx", "mxfp8"), ("fp8", "fp8"), ("float8", "fp8"),
    ("fp16", "fp16"),
)  # fmt: skip


SCHEDULE_MARKS = (
    ("zb-2p", "zb-h2"), ("zb-h2", "zb-h2"), ("zb-1p", "zb-h1"), ("zb-h1", "zb-h1"), ("zb-v", "zb-v"),
    ("v-half", "v-half"), ("v-min", "v-min"), ("dualpipe", "dualpipe"), ("gpipe", "gpipe"),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One published run; `open_knobs` names what its author did not say."""

    model: Model
    cluster: Cluster
    workload: Workload
    layout: Layout
    recipe: Recipe
    open_knobs: tuple[str, ...]
    family: str  # dense-bf16, dense-fp8 or moe


def number(row: dict[str, Any], key: str, default: float | None = None) -> float | None:
    """A cell as a number; footnote marks are dropped."""
    text = str(row.get(key) or "").split("[")[0].strip()
    try:
        value = float(text)
    except ValueError:
        return default
    return value if abs(value) < MOST else default  # also drops what is not a number at all


def whole(row: dict[str, Any], key: str, default: int = 1) -> int:
    """A cell as a count that is not negative."""
    value = number(row, key)
    if value is None:
        return default
    if value < 0 or value != int(value):
        raise StallwiseError(f"{key} = {row.get(key)} cannot be", hint="a whole number")
    return int(value)


def counted(row: dict[str, Any], key: str, default: int = 1) -> int:
    """A cell as a count of at least one."""
    value = whole(row, key, default)
    if value < 1:
        raise StallwiseError(f"{key} = {value} cannot be", hint="at least 1")
    return value


def run_of(row: dict[str, Any]) -> Run:
    """What a row asks; raises StallwiseError when it leaves out too much."""
    model = model_of(row)
    gpus = counted(row, "num_gpus", 0)
    card = find_gpu(str(row.get("gpu") or ""))
    if card is None:
        raise StallwiseError(f"the GPU '{row.get('gpu')}' is not in the catalogue")
    if number(row, "tp") is None or number(row, "pp") is None:
        raise StallwiseError("the row does not say how the job was cut (tp, pp)")
    cluster = cluster_of(as_described(card, f"{row.get('gpu')} {row.get('notes')}"), gpus)
    workload = Workload(seq=whole(row, "seq", 0), global_batch=whole(row, "global_batch", 0))
    layout, open_knobs = layout_of(row, model, gpus)
    recipe = recipe_for(row, layout, card.architecture)
    eight_bit = recipe.precision in ("fp8", "mxfp8", "nvfp4")
    family = "moe" if model.experts else "dense-fp8" if eight_bit else "dense-bf16"
    return Run(model, cluster, workload, layout, recipe, open_knobs, family)


def as_described(card: Gpu, text: str) -> Gpu:
    """A variant of a card that a row describes in words: its power limit, and older memory."""
    watts = re.search(r"\b(\d{3,4})\s?W\b", text)
    if watts and 0.4 < float(watts[1]) / card.power_w < 1.6:
        card = replace(card, power_w=float(watts[1]))
    if "hbm2e" in text.lower() and card.architecture == "hopper":
        card = replace(card, bandwidth_byte_per_s=min(card.bandwidth_byte_per_s, HOPPER_HBM2E))
    return card


def model_of(row: dict[str, Any]) -> Model:
    """From the shape columns; a catalogued model of that name and size fills in what a table has no column for."""
    name = str(row.get("model") or "model")
    known: Model | None = None
    try:
        known = find_model(name)
    except StallwiseError:
        known = None
    layers, hidden = number(row, "layers"), number(row, "hidden")
    if layers is None or hidden is None:
        if known is not None:
            return known
        size = number(row, "params_b")
        if not size or not 0.01 < size < 10_000:
            raise StallwiseError(f"neither a shape nor a catalogue entry for '{name}'")
        return model_of_size(name, size * 1e9)
    if known is not None and (known.layers, known.hidden) == (int(layers), int(hidden)):
        return known
    heads = counted(row, "heads", max(int(hidden) // 128, 1))
    experts = whole(row, "experts", 0)
    ffn = counted(row, "ffn", 4 * int(hidden))
    kv_heads = whole(row, "kv_heads", heads)
    return Model(
        name=name.lower(),
        layers=int(layers),
        hidden=int(hidden),
        heads=heads,
        kv_heads=kv_heads if kv_heads and heads % kv_heads == 0 else heads,
        head_dim=max(int(hidden) // heads, 1),
        intermediate=ffn,
        vocab=counted(row, "vocab", USUAL_VOCAB),
        experts=experts,
        experts_per_token=counted(row, "topk", 1) if experts else 0,
        expert_intermediate=ffn if experts else 0,
        gated=bool(whole(row, "gated_mlp", 0)),
        tied=not whole(row, "gated_mlp", 0),
    )


def model_of_size(name: str, parameters: float) -> Model:
    """A usual decoder of this many parameters: width 128 times its depth, four keys' worth of heads sharing each pair."""
    hidden = max(round((parameters * 128 / 12) ** (1 / 3) / 128), 1) * 128
    layers = max(round(parameters / (12 * hidden**2)), 1)
    heads = hidden // 128
    return Model(name.lower(), layers, hidden, heads, heads, 128, hidden * 8 // 3, 32_000)


def layout_of(row: dict[str, Any], model: Model, gpus: int) -> tuple[Layout, tuple[str, ...]]:
    """The stated axes; what is left open is named."""
    sharding = str(row.get("sharding") or "").lower()
    tp, pp, cp = counted(row, "tp"), counted(row, "pp"), counted(row, "cp")
    # Some tables print axes that do not multiply to their GPUs; the GPU count is the better known number.
    dp = max(gpus // (tp * pp * cp), 1)
    sequences = counted(row, "global_batch", dp)
    if dp > sequences and dp % sequences == 0:
        cp, dp = cp * dp // sequences, sequences  # more ranks than sequences: the rest must share sequences
    said_schedule = str(row.get("schedule") or "")
    interleaved = "interleaved" in said_schedule or (not said_schedule and pp > 1)
    open_knobs = tuple(
        knob
        for knob, said in (
            ("micro_batch", number(row, "micro_batch") is not None),
            ("recompute", str(row.get("recompute") or "") in ("none", "selective", "full", "experts")),
            ("vp", number(row, "vp") is not None or not interleaved),
        )
        if not said
    )
    schedule = str(row.get("schedule") or "1f1b").lower()
    zero, group = sharding_of(sharding, pp)
    virtual = whole(row, "vp")
    if "interleaved" not in schedule and "1f1b-i" not in schedule and "zb" in schedule:
        virtual = 1
    layout = Layout(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        ep=counted(row, "ep"),
        virtual_stages=max(virtual, 1) if pp > 1 else 1,
        sequence_parallel=bool(whole(row, "sp", 1 if tp > 1 else 0)),
        zero=zero,
        shard_group=min(group, dp * cp) if group else 0,
        micro_batch=counted(row, "micro_batch"),
        recompute="none" if "recompute" in open_knobs else str(row["recompute"]),
        style="fsdp" if zero >= 2 else "megatron",
        schedule=_schedule(schedule),
        lora_rank=16 if "lora" in f"{row.get('notes')} {row.get('source')} {row.get('tflops_kind')}".lower() else 0,
    )
    return layout, open_knobs


def sharding_of(text: str, pp: int) -> tuple[int, int]:
    """The ZeRO stage that a row's words mean, and the ranks that share one copy (0: all of them)."""
    stage = re.search(r"zero[-_ ]?([0-3])", text)
    if stage:
        zero = int(stage[1])
    elif "shard_grad_op" in text:
        zero = 2
    else:
        zero = 3 if "fsdp" in text else 0 if text == "none" else 1
    group = re.search(r"shard (\d+)", text)
    if group:
        return (3 if int(group[1]) > 1 else 0), int(group[1])
    # With a pipeline, gradients wait for the last microbatch whatever the stage is called.
    return (1 if zero == 2 and pp > 1 else zero), 0


def _schedule(text: str) -> str:
    for mark, name in (
        ("zb-2p", "zb-h2"),
        ("zb-h2", "zb-h2"),
        ("zb-1p", "zb-h1"),
        ("zb-h1", "zb-h1"),
        ("dualpipe", "dualpipe"),
        ("zb-v", "zb-v"),
    ):
        if mark in text:
            return name
    return "1f1b"


def recipe_for(row: dict[str, Any], layout: Layout, architecture: str) -> Recipe:
    """Precision and software habits that the row's words imply."""
    text = str(row.get("precision") or "").lower()
    precision = next((name for mark, name in PRECISIONS if mark in text), "bf16")
    fsdp = layout.style == "fsdp"
    sharding = str(row.get("sharding") or "").lower()
    # fp16 on Ampere without a sharded optimizer is Megatron of 2021-22: no fused attention, no overlap.
    old = architecture in ("ampere", "volta")
    early = old and (sharding in ("none", "") or sharding.startswith("zero")) and "bf16" not in text
    pure = "pure" in text
    notes = str(row.get("notes") or "").lower()
    return Recipe(
        precision=precision,
        style=layout.style,
        flash_attention=not early,
        # Megatron hides data-parallel traffic since 2024, FSDP always has.
        overlap=(fsdp and not early) or not old or "overlap" in sharding,
        flat_gather=early and layout.zero >= 3,
        fused=not fsdp or sharding == "fsdp" or "compile" in f"{text} {notes} {sharding}",
        first_flash=sharding.startswith("fsdp-"),
        grad_bytes=2.0 if pure or (early and layout.zero >= 3) else 4.0,
        # FSDP shards fp32 weights and casts what it gathers; others keep 16-bit weights beside an fp32 master copy.
        weight_bytes=4.0 if "amp" in text or (fsdp and not pure) else 2.0,
        master=not (pure or fsdp or "amp" in text),
        schedule=layout.schedule,
        lora_rank=layout.lora_rank,
        end_stage_layers=1 if "one layer fewer" in notes else 0,
        dropout=early,
        software_year=software_year(str(row.get("source") or "")),
    )


RELEASE = re.compile(r"(?<![\d.])(2\d)\.(0[1-9]|1[0-2])(?:\.\d+)?(?![\d])")


def software_year(text: str) -> float:
    """A calendar release such as 26.04 as a year; 0 where none is named."""
    found = RELEASE.search(text)
    return 2000 + int(found[1]) + (int(found[2]) - 0.5) / 12 if found else 0.0
