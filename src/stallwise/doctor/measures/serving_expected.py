"""What decode should cost here, from the model, the card and the load; and where a request's time goes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._serving_point import card_of, deployment_of
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import compute_bound_batch
from stallwise.physics.costs.rank_work import weight_bytes_per_rank

ORDER = 2
USUAL_CONTEXT = 1000.0  # tokens a request holds, where nothing tells


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The decode iteration that memory allows, and the ledger of a request."""
    yield from _ledger(evidence)
    deployment = deployment_of(evidence)
    if deployment is None:
        yield from _alone(evidence)
        return
    seen = _seen(evidence)
    computed_of = f"{deployment.model.name} on {deployment.gpu.title}, {deployment.label}"
    source = Source("computed", computed_of, stated=seen is not None and seen.stated)
    work = Engine(deployment).work
    yield Fact(serving.KV_PER_TOKEN, float(work.kv_bytes_per_token + work.window_bytes_per_token), source)
    yield Fact(serving.COMPUTE_BATCH, compute_bound_batch(deployment), source)
    running = evidence.value(serving.RUNNING, evidence.value(serving.CONCURRENCY))
    if not running > 0 or (running > 1 and not evidence.get(serving.RUNNING)):  # of many users not all run
        return
    engine, context = Engine(deployment), _context(evidence, running)
    parts = engine.parts(running, context)
    yield Fact(serving.DECODE_EXPECTED, float(parts.total_s), source)
    floor = weight_bytes_per_rank(deployment) / deployment.gpu.bandwidth_byte_per_s
    yield Fact(serving.DECODE_FLOOR, float(floor), source)
    for part in ("weights", "kv", "arithmetic", "communication", "launch", "host"):
        yield Fact(serving.TOKEN_PART, float(getattr(parts, f"{part}_s")), source, Scope(layer=part))
    yield from _prefill_load(evidence, engine, source)
    if seen:
        yield seen
        yield Fact(serving.BYTES_SHARE, min(1.0, float(parts.weights_s + parts.kv_s) / seen.number), source)


def _alone(evidence: Evidence) -> Iterator[Item]:
    """Of a model that is not known its weights' bytes are enough: one request reads all of them for each token."""
    card, weights, seen = card_of(evidence), evidence.get(serving.WEIGHT_MEMORY), _seen(evidence)
    if card is None or weights is None or not seen or evidence.value(serving.RUNNING) != 1:
        return
    floor = weights.number / card.bandwidth_byte_per_s
    yield Fact(serving.DECODE_FLOOR, floor, weights.source)
    yield seen
    yield Fact(serving.BYTES_SHARE, min(1.0, floor / seen.number), weights.source)


def _prefill_load(evidence: Evidence, engine: Engine, source: Source) -> Iterator[Item]:
    """Prompt tokens a second times what one costs: the time that decoding cannot have."""
    prompt = evidence.value(serving.PROMPT_TOKENS, USUAL_CONTEXT)
    rates = [t.columns["prompt_token_per_s"] for t in evidence.table(serving.ENGINE_SAMPLES)]
    mean = max((float(np.nanmean(r)) for r in rates if (r == r).any()), default=0.0)
    if mean > 0 and prompt > 0:
        yield Fact(serving.PREFILL_LOAD, min(1.0, mean * engine.prefill_s(prompt) / prompt), source)


def _context(evidence: Evidence, running: float) -> float:
    tokens, share = evidence.value(serving.KV_TOKENS), evidence.value(serving.KV_MEDIAN)
    if tokens > 0 and share > 0:
        return tokens * share / running
    prompt, output = evidence.value(serving.PROMPT_TOKENS), evidence.value(serving.OUTPUT_TOKENS, 0.0)
    return prompt + output / 2 if prompt > 0 else USUAL_CONTEXT


def _seen(evidence: Evidence) -> Fact | None:
    """What users see between tokens; else the inverse of one request's rate, since an iteration gives each a token."""
    tpot, rate = evidence.get(serving.TPOT), evidence.get(serving.PER_REQUEST_RATE)
    if tpot is not None and tpot.number > 0:
        return Fact(serving.DECODE_SEEN, tpot.number, tpot.source)
    return Fact(serving.DECODE_SEEN, 1.0 / rate.number, rate.source) if rate is not None and rate.number > 0 else None


def _ledger(evidence: Evidence) -> Iterator[Item]:
    """Queue, prefill, decode and the rest of a mean request; preempted time is inside its decode unless told."""
    whole = evidence.get(serving.REQUEST_TIME)
    queue, decode = evidence.get(serving.QUEUE_TIME), evidence.get(serving.DECODE_TIME)
    prefill = evidence.get(serving.PREFILL_TIME)
    ttft, tpot, tokens = (evidence.value(q) for q in (serving.TTFT, serving.TPOT, serving.OUTPUT_TOKENS))
    if decode is None and tpot > 0 and tokens > 1:
        decode_s = tpot * (tokens - 1)
    elif decode is not None:
        decode_s = decode.number
    else:
        return
    if queue is None and not ttft > 0:
        return
    queue_s = queue.number if queue else 0.0
    prefill_s = prefill.number if prefill else max(0.0, ttft - queue_s) if ttft > 0 else 0.0
    categories = {Category.QUEUE: queue_s, Category.PREFILL: prefill_s, Category.DECODE: decode_s}
    if queue is None and prefill is None:  # a client sees the first token come, not why it took so long
        categories = {Category.FIRST_TOKEN: ttft, Category.DECODE: decode_s}
    if (thrown := evidence.value(serving.PREEMPTED_TIME, 0.0)) > 0:
        categories[Category.PREEMPTED] = thrown
    source = (whole or queue or evidence.get(serving.TPOT) or evidence.get(serving.TTFT)).source  # type: ignore[union-attr]
    if whole is not None and whole.number > sum(categories.values()):
        categories[Category.NETWORK] = whole.number - sum(categories.values())
    yield Ledger(categories, source, unit="request", samples=whole.samples if whole else 1)
