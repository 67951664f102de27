"""The card, the number type and the model that stated facts name, where they do."""

from __future__ import annotations

import re
from dataclasses import replace

from stallwise.errors import StallwiseError
from stallwise.evidence.catalog import run, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.physics.specs.dtype import ALIASES, BYTES
from stallwise.physics.specs.hardware import Gpu, find_gpu
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.models import known_model, model_names

# What a served name adds to its family and size: how it was tuned and stored, which leaves the shape alone.
NO_SHAPE = {*BYTES, *ALIASES, "instruct", "chat", "it", "hf", "awq", "gptq", "quantized", "dynamic", "base"}
NEAR = 0.12  # a stated size this close to a known dense model's takes its shape ("70B")


def card_of(evidence: Evidence) -> Gpu | None:
    """The stated GPU."""
    fact = evidence.get(stated.GPU)
    return find_gpu(str(fact.value)) if fact else None


def dtype_of(evidence: Evidence, default: str = "bf16") -> str:
    """The stated number type in the words of specs."""
    word = f"{evidence.text(run.PRECISION)} {evidence.text(stated.FORMAT)}".lower()
    return next((d for d in ("fp8", "fp4", "int8", "fp16", "bf16", "tf32", "fp64", "fp32") if d in word), default)


def shape_of(evidence: Evidence) -> Model | None:
    """The stated model; by name, or by size where a well-known dense model has it. Stated dimensions override."""
    model = _named(evidence) or _sized(evidence)
    if model is None:
        return None
    changes = {
        field: int(fact.number)
        for quantity, field in (
            (stated.LAYERS, "layers"), (stated.HIDDEN, "hidden"), (stated.HEADS, "heads"), (stated.KV_HEADS, "kv_heads"),
            (stated.HEAD_DIM, "head_dim"), (stated.VOCAB, "vocab"),
        )
        if (fact := evidence.get(quantity)) is not None
    }  # fmt: skip
    try:
        return replace(model, **changes)  # type: ignore[arg-type]
    except StallwiseError:
        return model


def _named(evidence: Evidence) -> Model | None:
    name = evidence.text(serving.MODEL)
    if not name or "/" in name:
        return None
    try:
        return known_model(name)
    except StallwiseError:
        return by_family(name)


def by_family(name: str) -> Model | None:
    """ "Llama-70B" without a version: the newest of the family with that size."""
    words = [w for w in re.split(r"[-_ ]+", name.lower()) if w and w not in NO_SHAPE]
    matches = [
        n for n in model_names() if all(any(w == part or w in n.split("-") for part in n.split("-")) for w in words)
    ]
    return known_model(sorted(matches)[-1]) if matches else None


def _sized(evidence: Evidence) -> Model | None:
    size = evidence.value(stated.PARAMETERS)
    if not size > 0:
        return None
    dense = [known_model(n) for n in model_names() if n.startswith("llama-3")]
    best = min(dense, key=lambda m: abs(m.parameters().total / size - 1), default=None)
    return best if best is not None and abs(best.parameters().total / size - 1) < NEAR else None
