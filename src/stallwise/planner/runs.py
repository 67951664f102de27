"""Published runs as questions to the planner: a table's row becomes model, cluster, workload and layout.

Only what describes the run is read here; the columns that hold results are never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stallwise.errors import StallwiseError
from stallwise.physics.costs.spread import family_of
from stallwise.physics.specs.cluster import Cluster, cluster_of
from stallwise.physics.specs.hardware import Gpu, find_gpu
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model, find_model
from stallwise.physics.specs.recipe import ATTENTION, EIGHT_BIT, Recipe
from stallwise.physics.specs.recipe_text import StatedRecipe, habit, read_recipe
from stallwise.physics.specs.states import States
from stallwise.physics.specs.workload import Workload

MOST = 1e9  # no count or rate in these tables is larger
GB = 1e9
HOPPER_HBM2E = 2.4e12  # bytes a second of the Hopper variants with five older stacks
USUAL_VOCAB = 51_200  # GPT-2's 50,257 padded, where a paper does not say
PRECISIONS = (
    ("nvfp4", "nvfp4"), ("fp4", "nvfp4"), ("mxfp8", "mxfp8"), ("fp8-mx", "mxfp8"), ("fp8", "fp8"), ("float8", "fp8"),
    ("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16"), ("half", "fp16"), ("fp32", "fp32"),
)  # fmt: skip
SCHEDULE_MARKS = (
    ("zb-2p", "zb-h2"), ("zb-h2", "zb-h2"), ("zb-1p", "zb-h1"), ("zb-h1", "zb-h1"), ("zb-v", "zb-v"),
    ("v-half", "v-half"), ("v-min", "v-min"), ("dualpipe", "dualpipe"), ("gpipe", "gpipe"),
)  # fmt: skip
STAGES = {"none": 0, "optimizer": 1, "gradients": 2, "weights": 3}  # what is sharded, as a ZeRO stage
DIES = {"mi250x": "mi250x-die"}  # cards that software counts as two GPUs
NVLINK_GATHERS = 2022.5  # before, ZeRO-3 moved every parameter over the network card of every rank


@dataclass(frozen=True)
class Run:
    """One published run; `open_knobs` holds the weighed choices of everything its author did not say."""

    model: Model
    cluster: Cluster
    workload: Workload
    layout: Layout
    recipe: Recipe
    open_knobs: Mapping[str, Mapping[str, float]]
    family: str  # dense-bf16, dense-fp8, moe or lora


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
    card = find_gpu(str(row.get("gpu") or ""))
    if card is None:
        named_gpu = str(row.get("gpu") or "")
        raise StallwiseError(f"the GPU '{named_gpu}' is not in the catalogue" if named_gpu else "gpu missing")
    missing = [key for key in ("num_gpus", "seq", "tp", "pp") if number(row, key) is None]
    if missing:
        raise StallwiseError(
            f"{', '.join(missing)} missing: the row does not say how large the job was and how it was cut"
        )
    gpus = counted(row, "num_gpus")
    stated = read_recipe(row)
    card = as_described(card, f"{row.get('gpu')} {row.get('notes')}")
    cluster = cluster_of(card, gpus, nic_byte_per_s=stated.network_byte_per_s)
    if stated.node_gpus and stated.node_gpus < cluster.gpus_per_node:
        cluster = replace(cluster, gpus_per_node=stated.node_gpus, domain=min(cluster.domain, stated.node_gpus))
    layout, unsaid = layout_of(row, gpus, stated)
    batch = whole(row, "global_batch", 0) or layout.dp * layout.micro_batch * (4 * layout.pp if layout.pp > 1 else 1)
    workload = Workload(seq=whole(row, "seq", 0), global_batch=batch)
    recipe, weighed = recipe_for(row, layout, stated, card.architecture, model)
    return Run(model, cluster, workload, layout, recipe, {**unsaid, **weighed}, family_of(model, recipe))


def as_described(card: Gpu, text: str) -> Gpu:
    """A variant of a card that a row describes in words: its power limit, older memory, one die of two."""
    if card.name in DIES and not re.search(r"both dies|whole card|per card", text.lower()):
        card = find_gpu(DIES[card.name]) or card
    memory_size = re.search(r"\b(\d{2,3}) ?GB?\b", text.split(" ")[0].replace("-", " "))
    if memory_size and 0.7 < float(memory_size[1]) * GB / card.memory_bytes < 1.8:
        card = replace(card, memory_bytes=max(card.memory_bytes, float(memory_size[1]) * GB))
    watts = re.search(r"\b(\d{3,4})\s?W\b", text)
    if watts and 0.4 < float(watts[1]) / card.power_w < 1.6:
        card = replace(card, power_w=float(watts[1]))
    if re.search(r"\b(?:no|without) nvlink\b", text.lower()):
        card = replace(card, nvlink_byte_per_s=0.0)
    if "hbm2e" in text.lower() and card.architecture == "hopper":
        card = replace(card, bandwidth_byte_per_s=min(card.bandwidth_byte_per_s, HOPPER_HBM2E))
    return card


def model_of(row: dict[str, Any]) -> Model:
    """From the shape columns; a catalogued model of that name and size fills in what a table has no column for."""
    name = str(row.get("model") or "")
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
            what = f"neither a shape nor a catalogue entry for '{name}'" if name else "model missing"
            raise StallwiseError(f"{what}: give layers and hidden, params_b, or a known name")
        return model_of_size(name, size * 1e9)
    if known is not None and (known.layers, known.hidden) == (int(layers), int(hidden)):
        return known
    heads = counted(row, "heads", max(int(hidden) // 128, 1))
    experts = whole(row, "experts", 0)
    ffn = counted(row, "ffn", 4 * int(hidden))
    kv_heads = whole(row, "kv_heads", heads)
    return Model(
        name=name.lower() or "model",
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


def framework_of(stated: StatedRecipe, tp: int, pp: int) -> str:
    """As said; a cut over tensors or stages is Megatron's, sharded weights alone PyTorch's."""
    return stated.framework or ("pytorch" if stated.sharding == "weights" and tp == pp == 1 else "megatron")


def layout_of(row: dict[str, Any], gpus: int, stated: StatedRecipe) -> tuple[Layout, dict[str, dict[str, float]]]:
    """The stated axes; what is left open is weighed."""
    tp, pp, cp = counted(row, "tp"), counted(row, "pp"), counted(row, "cp")
    # Some tables print axes that do not multiply to their GPUs; the GPU count is the better known number.
    dp = max(gpus // (tp * pp * cp), 1)
    sequences = counted(row, "global_batch", dp)
    if dp > sequences and dp % sequences == 0:
        cp, dp = cp * dp // sequences, sequences  # more ranks than sequences: the rest must share sequences
    schedule = str(row.get("schedule") or "").lower()
    framework = framework_of(stated, tp, pp)
    unsaid: dict[str, dict[str, float]] = {}
    if number(row, "micro_batch") is None:
        unsaid["micro_batch"] = {}
    if number(row, "vp") is None and pp > 1 and (not schedule or "interleaved" in schedule or "1f1b-i" in schedule):
        unsaid["vp"] = {}
    recompute = stated.recompute
    if recompute is None:
        unsaid["recompute"] = habit("recompute", year=stated.year, framework=framework)
    elif recompute == "selective" and framework == "pytorch":
        recompute = "operator"  # PyTorch's selective checkpointing goes by operator
    sharding = stated.sharding
    if sharding is None and dp * cp > 1:
        weights = habit("sharding", year=stated.year, framework=framework)
        unsaid["zero"] = {str(STAGES[k]): w for k, w in weights.items()}
    if stated.shard_group == 1:
        sharding = "none"
    virtual = whole(row, "vp")
    if "interleaved" not in schedule and "1f1b-i" not in schedule and "zb" in schedule:
        virtual = 1
    zero = STAGES[sharding or "none"]
    layout = Layout(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        ep=counted(row, "ep"),
        virtual_stages=max(virtual, 1) if pp > 1 else 1,
        sequence_parallel=bool(whole(row, "sp", 1 if tp > 1 else 0)),
        zero=zero,
        shard_group=stated.shard_group if 1 < stated.shard_group < dp * cp else 0,
        micro_batch=counted(row, "micro_batch"),
        recompute=recompute or "none",
        recompute_modules=stated.recompute_modules,
        style="fsdp" if zero == 3 else "ddp" if framework == "pytorch" else "megatron",
        schedule=next((name for mark, name in SCHEDULE_MARKS if mark in schedule), "1f1b"),
        lora_rank=stated.lora_rank,
        attention=stated.attention if stated.attention in ATTENTION else "",
    )
    return layout, unsaid


def recipe_for(
    row: dict[str, Any], layout: Layout, stated: StatedRecipe, architecture: str, model: Model
) -> tuple[Recipe, dict[str, dict[str, float]]]:
    """How the run's words say it was run, and the weighed choices of what they do not say."""
    text = str(row.get("precision") or "").lower()
    precision = next((name for mark, name in PRECISIONS if mark in text), "bf16")
    framework = framework_of(stated, layout.tp, layout.pp)
    known: dict[str, Any] = {
        "year": stated.year, "framework": framework, "architecture": architecture, "precision": precision,
        "sharding": next(k for k, v in STAGES.items() if v == layout.zero),
    }  # fmt: skip
    weighed: dict[str, dict[str, float]] = {}

    def settled(name: str, value: str | None, habits: str = "", needed: bool = True) -> str:
        if value is not None or not needed:
            return value or ""
        weights = habit(habits or name, **known)
        if len(weights) > 1:
            weighed[name] = weights
        return max(weights, key=lambda k: weights[k])

    attention = stated.attention
    if attention == "fused":
        attention = settled("attention", None, "fused_attention")
    attention = settled("attention", attention)
    kernels = settled("kernels", stated.kernels)
    eight_bit = precision in EIGHT_BIT
    tp_overlap = settled("tp_overlap", stated.tp_overlap, needed=layout.tp > 1) or "none"
    overlap = settled("overlap", stated.overlap, needed=layout.dp * layout.cp > 1) or "yes"
    scaling = "mx" if precision == "mxfp8" else settled("scaling", stated.scaling, needed=precision == "fp8")
    frozen = settled("frozen", stated.frozen, needed=layout.lora_rank > 0)
    param = settled("param", stated.param, needed=layout.lora_rank == 0)
    grad = settled("grad", stated.grad)
    states = States(pure="pure" in text, amp="amp" in text, param=param, grad=grad, frozen=frozen)
    notes = str(row.get("notes") or "").lower()
    recipe = Recipe(
        precision=precision,
        scaling=scaling if eight_bit else "",
        states=states,
        framework=framework,
        attention=attention,
        tp_overlap=tp_overlap,
        overlap=overlap == "yes",
        gather=stated.gather or "layer",
        scatter_once=stated.gather == "step",
        flat_gather=layout.zero >= 3 and 0 < stated.year < NVLINK_GATHERS,
        fused=kernels == "fused",
        fused_softmax=stated.softmax == "fused" or framework == "megatron",
        chunked_loss=stated.loss == "chunked",
        unfused_optimizer=framework == "pytorch" and stated.optimizer_kernel == "foreach",
        schedule=layout.schedule,
        lora_rank=layout.lora_rank,
        lora_targets=stated.lora_targets or "attention",
        expert_overlap=stated.expert_overlap == "yes",
        end_stage_layers=1 if "one layer fewer" in notes else 0,
        recompute_modules=layout.recompute_modules,
        recompute_layer_share=stated.recompute_layer_share,
        offload=stated.offload or "none",
        offload_share=stated.offload_share,
        dropout=attention == "unfused" and not model.gated,
        software_year=stated.year,
    )
    return recipe.at_zero(layout.zero), weighed
