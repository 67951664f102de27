"""Published serving runs as questions: a row of inference.csv becomes a deployment and a load. Results stay unread."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.errors import BadRequest
from stallwise.physics.costs.closed_loop import LOOP, OPEN, WAVES
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.serving_constants import group_of
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.dtype import dtype
from stallwise.physics.specs.hardware import find_gpu
from stallwise.physics.specs.model import Model, find_model
from stallwise.planner.stated_words import stated

NVLINK_DOMAIN = 8  # GPUs of one SXM node
RACK_DOMAIN = 72  # of a GB200 or GB300 rack
FULL_MEMORY_SHARE = 0.97  # what engines may be given of a card where the usual share leaves nothing for the cache
WAVE_WORDS = re.compile(r"wave|static|at once|simultan|burst|batch(?:es)? of", re.I)
LOOP_WORDS = re.compile(r"closed|concurren|loop|users|max", re.I)
OPEN_WORDS = re.compile(r"poisson|open|rate|qps", re.I)


@dataclass(frozen=True)
class ServedRun:
    """One run; concurrency None: as many as fit."""

    deployment: Deployment
    isl: float
    osl: float
    concurrency: float | None
    pattern: str = LOOP  # how requests arrive; empty: not said

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
    isl, osl = cell(row, "isl"), cell(row, "osl")
    if not isl or not osl:
        raise BadRequest("no input or output length", hint="isl and osl are needed")
    row = {**row, **replicas_implied(row)}
    recorded_dp = int(cell(row, "dp_attn") or 1) or 1
    axes = layout_of(row, model, RACK_DOMAIN if gpu.name.startswith("gb") else NVLINK_DOMAIN)
    deployment = Deployment(
        model, gpu, tp=axes.tp, pp=int(cell(row, "pp") or 1), dp=axes.dp, ep=axes.ep,
        weights=weights_of(row), engine=engine_of(row), engine_version=(row.get("engine_version") or "").strip(),
    )  # fmt: skip
    if not kv_room(deployment).fits:
        deployment = deployment.changed(memory_share=FULL_MEMORY_SHARE)
    load = cell(row, "batch_or_concurrency")
    # The tables give concurrency per attention replica, as recorded.
    return ServedRun(deployment, isl, osl, None if load is None else load * recorded_dp, pattern_of(row))


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


def weights_of(row: dict[str, str]) -> str:
    """Number format of the weights; the tables leave it empty for 16 bit."""
    text = (row.get("precision") or "").strip().lower()
    return dtype(text) if text else "bf16"


def engine_of(row: dict[str, str]) -> str:
    """vllm, sglang or trtllm."""
    text = (row.get("engine") or "").lower()
    return "sglang" if "sglang" in text else "vllm" if "vllm" in text else "trtllm"
