"""Published serving runs as questions: a row of inference.csv becomes a deployment and a load. Results stay unread."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.errors import BadRequest
from stallwise.physics.costs.closed_loop import LOOP, OPEN, WAVES, Load, operating
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.serving_constants import group_of
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.dtype import dtype
from stallwise.physics.specs.hardware import Gpu, find_gpu
from stallwise.physics.specs.model import Model, find_model
from stallwise.planner.stated_words import stated, stated_decimal

TRIED_TP, MOST_INSIDE = (1, 2, 4, 8), 2048.0  # cuts that are tried where none is stated, and requests on one replica
NVLINK_DOMAIN = 8  # GPUs of one SXM node
RACK_DOMAIN = 72  # of a GB200 or GB300 rack
FULL_MEMORY_SHARE = 0.97  # what engines may be given of a card where the usual share leaves nothing for the cache
WAVE_WORDS = re.compile(r"wave|static|at once|simultan|burst|batch(?:es)? of", re.I)
LOOP_WORDS = re.compile(r"closed|concurren|loop|users|max", re.I)
NAMED_FORMAT = re.compile(r"[-_](fp8|nvfp4|fp4|int4|awq|gptq)(?=$|[-_])", re.I)
# An assumption, not read from each submission: closed runs use the narrowest format that keeps the reference's accuracy,
# FP8 on Hopper, Ada and CDNA 3, FP4 on Blackwell.
TUNED = re.compile(r"mlperf inference", re.I)
OPEN_WORDS = re.compile(r"poisson|open|rate|qps", re.I)


@dataclass(frozen=True)
class ServedRun:
    """One run; concurrency None: as many as fit."""

    deployment: Deployment
    isl: float
    osl: float
    concurrency: float | None
    pattern: str = LOOP  # how requests arrive; empty: not said
    replicas: int = 1  # equal deployments that share the load and the rate
    rate_per_s: float | None = None  # offered to all of them, where no concurrency is stated
    assumed: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """What is left out together when constants are checked."""
        d = self.deployment
        return group_of(d.model.name, d.gpu.name, d.engine)


@dataclass(frozen=True)
class Axes:
    """A layout as recorded or as meant."""

    tp: int
    dp: int
    ep: int


def cell(row: dict[str, str], name: str) -> float | None:
    """A cell as a number; None where empty or not one."""
    try:
        value = float(row.get(name) or "")
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def served_run(row: dict[str, str]) -> ServedRun:
    """The deployment and load of an aggregated run."""
    model, gpu = find_model(row.get("model", "")), find_gpu(row.get("gpu", ""))
    if gpu is None:
        raise BadRequest(f"no GPU is called '{row.get('gpu', '')}'", hint="see stallwise plan gpus")
    isl, osl = cell(row, "isl") or stated_decimal(row, "isl"), cell(row, "osl")
    if not isl or not osl:
        raise BadRequest("no input or output length", hint="isl and osl are needed")
    row = {**row, **replicas_implied(row)}
    recorded_dp = int(cell(row, "dp_attn") or 1) or 1
    axes = layout_of(row, model, RACK_DOMAIN if gpu.name.startswith("gb") else NVLINK_DOMAIN)
    deployment = Deployment(
        model, gpu, tp=axes.tp, pp=int(cell(row, "pp") or 1), dp=axes.dp, ep=axes.ep,
        weights=weights_of(row, gpu), engine=engine_of(row), engine_version=(row.get("engine_version") or "").strip(),
    )  # fmt: skip
    all_gpus, assumed, replicas = int(cell(row, "num_gpus") or 0), [], 1
    if not (row.get("tp") or "").strip() and all_gpus > 1:
        deployment, replicas = most_productive(deployment, all_gpus, isl, osl)
        assumed.append(f"the layout is not stated: {replicas} x {deployment.label}, which makes most tokens")
    if (
        not kv_room(deployment).fits
        and deployment.weights == "bf16" != model.dtype
        and not (row.get("precision") or "").strip()
    ):
        deployment = deployment.changed(weights=model.dtype)  # as the checkpoint is stored
        assumed.append(f"weights in {model.dtype}: 16-bit ones do not fit")
    if not kv_room(deployment).fits:
        deployment = deployment.changed(memory_share=FULL_MEMORY_SHARE)
    load = cell(row, "batch_or_concurrency")
    # The tables give concurrency per attention replica, as recorded.
    users = None if load is None else load * recorded_dp / replicas
    rate = cell(row, "request_rate") if load is None else None
    return ServedRun(deployment, isl, osl, users, pattern_of(row), replicas, rate, tuple(assumed))


def most_productive(plain: Deployment, gpus: int, isl: float, osl: float) -> tuple[Deployment, int]:
    """The cut by which all GPUs together make most tokens: what whoever publishes the rate of a whole machine chooses."""
    wide = [t for t in TRIED_TP if gpus % t == 0 and plain.model.heads % t == 0]
    fitting = [d for d in (plain.changed(tp=t) for t in wide) if kv_room(d).fits]

    def made(d: Deployment) -> float:
        inside = min(max(1.0, kv_room(d).requests(isl + osl)), MOST_INSIDE)
        return operating(Engine(d), Load(isl, osl, inside, OPEN)).output_token_per_s / d.ranks

    chosen = max(fitting, key=made, default=plain.changed(tp=wide[-1]) if wide else plain)
    return chosen, max(1, gpus // chosen.ranks)


def replicas_implied(row: dict[str, str]) -> dict[str, str]:
    """Attention replicas that no column gives: the concurrency stated in words over the batch of one replica."""
    batch, whole, tp = cell(row, "batch_or_concurrency"), stated(row, "concurrency"), int(cell(row, "tp") or 1)
    if (row.get("dp_attn") or "").strip() or not batch or not whole or whole <= batch:
        return {}
    replicas = whole / batch
    if replicas != int(replicas) or tp % int(replicas):
        return {}
    return {"dp_attn": f"{replicas:.0f}", "tp": f"{tp // int(replicas)}"}


def pattern_of(row: dict[str, str]) -> str:
    """How requests arrive, from the words of the load or the mode; empty where none tells."""
    text = f"{row.get('load', '')} {row.get('mode', '')}"
    if WAVE_WORDS.search(text):
        return WAVES
    return LOOP if LOOP_WORDS.search(text) else OPEN if OPEN_WORDS.search(text) else ""


def layout_of(row: dict[str, str], model: Model, domain: int) -> Axes:
    """TP, attention DP and EP. Tables multiply axes that share GPUs (TP4 with EP4 becomes 16): undone here.

    A group as large as TP x EP of the same size, or DP x TP with EP their product, is those axes on the same GPUs.
    """
    tp, dp = int(cell(row, "tp") or 1) or 1, int(cell(row, "dp_attn") or 1) or 1
    if not model.experts:
        return Axes(tp, dp, 1)
    if model.heads % tp:  # heads cannot be cut so: as many replicas of attention that share all experts
        return Axes(1, tp * dp, tp * dp)
    ep = int(cell(row, "ep") or 1) or 1
    stated = re.search(r"moe_tp=(\d+)", row.get("notes", ""))
    expert_tp = max(1, int(stated[1])) if stated else max(1, tp * dp // ep)
    if expert_tp * ep > tp * dp:  # experts span more GPUs than attention: attention is replicated
        dp = expert_tp * ep // tp
    if expert_tp == ep > 1 and expert_tp * ep == tp * dp:
        return Axes(1, ep, ep) if dp > 1 and tp == 1 else Axes(ep, 1, ep)
    if tp == dp > 1 and ep == tp * dp:
        return Axes(1, tp, tp)
    if tp > domain and tp == expert_tp:
        raise BadRequest(
            f"TP {tp} over more than one NVLink domain of {domain}", hint="a disaggregated run, summed up?"
        )
    return Axes(tp, dp, ep if (tp * dp) % ep == 0 else 1)


def weights_of(row: dict[str, str], gpu: Gpu) -> str:
    """Number format of the weights: of the column, else of the model's name, else 16 bit; of MLPerf the card's narrowest."""
    text = (row.get("precision") or "").strip().lower()
    if text:
        return dtype(text)
    named = NAMED_FORMAT.search(row.get("model", ""))
    if named:
        return dtype(named[1].lower())
    if TUNED.search(" ".join(row.get(name) or "" for name in ("source", "citation", "notes"))):
        return next((f for f in ("fp4", "fp8") if f in gpu.peak_flop_per_s), "bf16")
    return "bf16"


def engine_of(row: dict[str, str]) -> str:
    """vllm, sglang or trtllm."""
    text = (row.get("engine") or "").lower()
    return "sglang" if "sglang" in text else "vllm" if "vllm" in text else "trtllm"
