"""Stacks of layers timed alone (columns as in inference_layers.csv): decode and prefill captured in a CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.errors import BadRequest, StallwiseError
from stallwise.physics.costs.inference import Engine, iteration_parts
from stallwise.physics.costs.serving_constants import constants, spread
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import Model
from stallwise.planner.scoring import Row, Scored, number

KIND = "layers"
SOURCE = "layers"
CARD = "h200"  # the table was recorded on one; a `gpu` column overrides it


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """One result a row: the time of the stack."""
    return [_score(row) for row in rows[calibrate:]]


def _score(row: Row) -> Scored:
    measured = number(row, "ms")
    row_id = " ".join(row.get(k, "") for k in ("shape", "phase", "batch", "context"))
    source = row.get("shape") or SOURCE
    seconds = None if measured is None else measured / 1000
    try:
        guess = stack_s(row)
    except StallwiseError as error:
        return Scored(row_id, source, "time_s", seconds, note=error.problem)
    low, high = spread("layers")
    return Scored(row_id, source, "time_s", seconds, guess, guess * low, guess * high)


def stack_of(row: Row) -> Deployment:
    """The stack as a model without tables."""
    shape = {k: number(row, k) for k in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn")}
    if not all(shape.values()):
        raise BadRequest("the shape is incomplete", hint="layers, hidden, heads, kv_heads, head_dim and ffn are needed")
    layers, hidden, heads, kv_heads, head_dim, ffn = (int(v or 0) for v in shape.values())
    model = Model(row.get("shape") or "stack", layers, hidden, heads, kv_heads, head_dim, ffn, vocab=1)
    return Deployment(model, gpu(row.get("gpu") or CARD), engine="torch", weights="bf16", kv="bf16")


def stack_s(row: Row) -> float:
    """Seconds of one pass."""
    engine = Engine(stack_of(row), constants("torch"))
    batch, context = number(row, "batch") or 1.0, number(row, "context") or 1.0
    decode = row.get("phase") == "decode"
    tokens = batch if decode else number(row, "tokens") or batch * context
    parts = iteration_parts(
        engine.work, engine.k, tokens=tokens, sampled=0.0,
        kv_bytes=batch * engine.kv_read_bytes(context) if decode else 0.0,
        decode_context=batch * context if decode else 0.0,
        prefill_pairs=0.0 if decode else batch * context * context / 2,
    )  # fmt: skip
    return float(parts.total_s)
