"""The operating point that evidence shows: deployment, load and settings, with what had to be assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stallwise.doctor.measures._stated_model import by_family, shape_of
from stallwise.errors import StallwiseError
from stallwise.evidence.catalog import fabric, hardware, run, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.physics.costs.engine_defaults import defaults_of
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.sim.service import Settings
from stallwise.physics.sim.what_if import Point
from stallwise.physics.specs.deployment import ENGINES, Deployment
from stallwise.physics.specs.dtype import ALIASES, BYTES
from stallwise.physics.specs.hardware import Gpu, find_gpu
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.models import known_model

WAITED_S = 1.0  # a first token later than this stood in a queue: no prompt of usual length takes so long
ENOUGH_SAMPLES = 5  # of a log: fewer may all be of its start
NODE = 8  # GPUs that tensor parallelism spans where nobody says


@dataclass
class Seen:
    """What was observed; NaN where it was not."""

    point: Point
    ttft_s: float
    tpot_s: float
    chunked: bool | None
    shared_share: float | None
    lengths_known: bool
    offered_known: bool  # the rate that was sent, not only what came back
    assumed: list[str] = field(default_factory=list)


def number(evidence: Evidence, *quantities: Quantity) -> float:
    """The first that is known of what is judged now (of a sweep: its busiest run), not of a run before; else NaN."""
    busiest = busiest_run(evidence)
    for quantity in quantities:
        known = [f for f in evidence.all(quantity) if f.scope.run != "before" and f.number == f.number]
        mine = [f for f in known if f.scope.run == busiest] if busiest else []
        if chosen := mine or [f for f in known if not busiest or f.scope.run is None]:
            return chosen[0].number
    return float("nan")


def card_of(evidence: Evidence) -> Gpu | None:
    """What it runs on, as a program or somebody says."""
    return find_gpu(evidence.text(hardware.GPU_NAME) or evidence.text(stated.GPU))


def deployment_of(evidence: Evidence) -> Deployment | None:
    """The served model on its cards; None where model or card is not known."""
    name, card = evidence.text(serving.MODEL), card_of(evidence)
    if card is None:
        return None
    try:
        model = _model(evidence, name)
        if model is None:
            return None
        tp = number(evidence, fabric.TP_SIZE, fabric.TP_SIZE)
        if tp != tp:
            gpus = number(evidence, stated.GPUS)
            tp = min(gpus, NODE) if gpus == gpus else 1.0
        engine = (evidence.text(serving.ENGINE) or evidence.text(serving.ENGINE) or "vllm").lower()
        return Deployment(
            model, card, tp=int(tp), weights=weights_of(evidence, name),
            kv=kv_of(evidence), engine=engine if engine in ENGINES else "vllm",
            engine_version=evidence.text(serving.VERSION),
        )  # fmt: skip
    except StallwiseError:
        return None  # not in the catalogue, or not a layout: no expectation then


def _model(evidence: Evidence, name: str) -> Model | None:
    """By name; else what the statement describes ("Llama-70B", layers and heads)."""
    try:
        return known_model(name) if name else shape_of(evidence)
    except StallwiseError:
        return shape_of(evidence) or by_family(name)


def busiest_run(evidence: Evidence) -> str | None:
    """Of several runs of a sweep, the one with the most load: it is the one that hurts."""
    for quantity in (serving.OFFERED_RATE, serving.CONCURRENCY, serving.ACHIEVED_RATE):
        loads = [(f.number, f.scope.run) for f in evidence.all(quantity) if f.scope.run and math.isfinite(f.number)]
        if others := [(load, run) for load, run in loads if run != "before"]:
            return max(others)[1]
    return None


def kv_of(evidence: Evidence) -> str:
    """Number format of the cache: engines keep 16 bit unless told, whatever the weights are."""
    word = evidence.text(serving.KV_FORMAT).lower().split("_")[0]
    return {**{b: b for b in BYTES}, **ALIASES}.get(word, "bf16")


def weights_of(evidence: Evidence, name: str) -> str:
    """Number format of the weights, from the engine, the statement or the model's name."""
    words = [evidence.text(serving.WEIGHTS), evidence.text(run.PRECISION), evidence.text(stated.FORMAT)]
    known = {**{b: b for b in BYTES}, **ALIASES}
    parts = [p for w in (*words, name) for p in w.lower().replace("_", "-").split("-")]
    return next((known[p] for p in parts if p in known), "bf16")


def _arrivals(evidence: Evidence, ttft_s: float, tpot_s: float) -> float:
    """Requests a second, where an engine says how many are inside and how long one stays; 0 where a client keeps them there."""
    inside = number(evidence, serving.RUNNING) + max(0.0, number(evidence, serving.WAITING))
    tokens = number(evidence, serving.OUTPUT_TOKENS, serving.OUTPUT_TOKENS)
    known = inside > 0 and ttft_s > 0 and tpot_s > 0 and tokens > 0
    client = number(evidence, serving.CONCURRENCY)
    return inside / (ttft_s + tokens * tpot_s) if known and client != client else 0.0


@dataclass(frozen=True)
class Balance:
    """What an engine's own log implies of its requests, where it prints no lengths and no first token."""

    isl: float
    osl: float
    rate_per_s: float
    ttft_s: float


def balance_of(evidence: Evidence, deployment: Deployment) -> Balance | None:
    """Prompt over generated tokens a second are prompt over answer; the cache of one running request is a prompt and half an
    answer; tokens over an answer are requests; who waits, over those, is how long (Little's law)."""
    running, waiting = number(evidence, serving.RUNNING), number(evidence, serving.WAITING)
    prompted, generated = number(evidence, serving.PREFILL_RATE), number(evidence, serving.GENERATION_RATE)
    share, samples = number(evidence, serving.KV_MEDIAN), number(evidence, serving.SAMPLES)
    if not (samples >= ENOUGH_SAMPLES and running >= 1 and prompted > 0 and generated > 0 and share > 0):
        return None
    if number(evidence, serving.HIT_SHARE) > 0:
        return None  # cached prompts are counted by some releases and not by others
    stated_tokens = number(evidence, serving.KV_TOKENS)
    tokens = stated_tokens if stated_tokens > 0 else kv_room(deployment).tokens
    ratio = prompted / generated
    osl = share * tokens / running / (ratio + 0.5)
    if not (osl >= 1 and ratio * osl >= 1):
        return None
    rate = generated / osl
    return Balance(ratio * osl, osl, rate, max(0.0, waiting) / rate if waiting == waiting else float("nan"))


def seen_of(evidence: Evidence) -> Seen | None:
    """The point, if model, card, load and one latency are known."""
    deployment = deployment_of(evidence)
    ttft, tpot = number(evidence, serving.TTFT, serving.TTFT), number(evidence, serving.TPOT, serving.TPOT)
    if tpot != tpot:
        rate = number(evidence, serving.PER_REQUEST_RATE, serving.PER_REQUEST_RATE)
        tpot = 1 / rate if rate > 0 else tpot
    if deployment is None or not (ttft > 0 or tpot > 0):
        return None
    usual = defaults_of(deployment.engine, deployment.engine_version, deployment.gpu.memory_bytes)
    offered = number(evidence, serving.OFFERED_RATE)
    rate = offered if math.isfinite(offered) else number(evidence, serving.ACHIEVED_RATE)
    users = number(evidence, serving.CONCURRENCY)
    if users != users:
        running = number(evidence, serving.RUNNING, serving.RUNNING)
        users = running + max(0.0, number(evidence, serving.WAITING, serving.WAITING)) if running == running else users
    if not (rate > 0 or users > 0):
        return None
    assumed: list[str] = []
    by_little = not rate > 0 and _arrivals(evidence, ttft, tpot)
    if by_little:
        rate = by_little
        assumed.append(f"{rate:.3g} requests a second arrive (Little's law: those inside over the time of one)")
    cap = number(evidence, serving.MAX_SEQS, serving.MAX_SEQS)
    stated_running = next((f for f in evidence.all(serving.RUNNING) if f.stated and f.scope.run is None), None)
    if not cap > 0 and stated_running is not None and stated_running.number < usual.cap and ttft > WAITED_S:
        cap = stated_running.number
        assumed.append(
            f"at most {cap:.0f} run together: so many are stated to run while first tokens wait {ttft:.3g} s"
        )
    if not cap > 0:
        cap = usual.cap
        assumed.append(f"at most {cap:.0f} run together ({deployment.engine}'s default)")
    chunked = number(evidence, serving.CHUNKED_PREFILL, serving.CHUNKED_PREFILL)
    budget = number(evidence, serving.MAX_BATCHED_TOKENS)
    isl, osl = (
        number(evidence, serving.PROMPT_TOKENS, serving.PROMPT_TOKENS),
        number(evidence, serving.OUTPUT_TOKENS, serving.OUTPUT_TOKENS),
    )
    balance = None if isl > 0 and osl > 0 else balance_of(evidence, deployment)
    if balance is not None:
        isl, osl, rate = balance.isl, balance.osl, balance.rate_per_s if not rate > 0 or by_little else rate
        ttft = ttft if ttft > 0 else balance.ttft_s
        assumed = [a for a in assumed if "Little" not in a]
        assumed.append(
            f"prompts of {isl:,.0f} and answers of {osl:,.0f} tokens, {rate:.3g} requests a second (from tokens a second and the "
            f"cache of a running request); {balance.ttft_s:.3g} s in the queue (Little's law)"
        )
    if chunked != chunked and usual.chunked is not None:
        chunked = float(usual.chunked)
        word = "on" if usual.chunked else "off"
        assumed.append(
            f"chunked prefill is {word} (default of {deployment.engine} {deployment.engine_version})".replace(" )", ")")
        )
    elif chunked != chunked:
        assumed.append("whole prompts run between decodes (chunked prefill not stated)")
    if not evidence.text(serving.ENGINE) and not evidence.text(serving.ENGINE):
        assumed.append("the engine is vLLM")
    attention = (
        "MLA" if deployment.model.mla else f"{deployment.model.kv_heads} KV heads for {deployment.model.heads} heads"
    )
    assumed.append(f"attention of {deployment.model.name}: {attention}, KV in {deployment.kv_dtype}")
    shared, prompt = number(evidence, serving.SHARED_PREFIX), isl
    point = Point(
        deployment, isl, osl, rate if rate > 0 else 0.0, users if users > 0 else 0.0,
        Settings("chunked" if chunked > 0 else "prefill-first", int(cap), int(budget) if budget > 0 else usual.budget),
    )  # fmt: skip
    share = min(1.0, shared / prompt) if shared > 0 and prompt > 0 else None
    return Seen(
        point, ttft, tpot, None if chunked != chunked else chunked > 0, share, isl > 0 and osl > 0,
        not rate > 0 or math.isfinite(offered) or bool(by_little) or balance is not None, assumed,
    )  # fmt: skip
