"""What engines reach of the hardware: few constants, each with a physical meaning, fitted on published runs.

`catalog/serving.toml` holds them with their source, once over all runs and once without each family of models, so that
a prediction for a family can be checked with constants that never saw it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Constants:
    """Shares of a peak and seconds of overhead. In a fit the fields may be numpy arrays, one value a run."""

    weight_read_share: Any  # of bandwidth, reading dense weights
    expert_read_share: Any  # the same for experts, which are smaller
    kv_read_share: Any
    matmul_share: Any  # of peak, in GEMMs large enough
    expert_matmul_share: Any
    expert_padding_rows: Any  # rows by which each expert's batch is rounded up
    attention_share: Any  # of peak, in attention arithmetic
    fp8_share: Any  # further share of FP8 and FP4 peaks that scaling leaves
    fp4_share: Any
    blackwell_read_share: Any  # Blackwell's software was younger than Hopper's when these were measured
    blackwell_matmul_share: Any
    blackwell_layer_share: Any
    collective_s: Any  # one small all-reduce
    link_share: Any  # of NVLink, in all-reduces
    all_to_all_share: Any
    kv_room_share: Any  # of what weights leave
    mla_layer_s: Any  # latent attention's extra kernels
    layer_s: Any  # kernels of one layer that do next to nothing
    moe_layer_s: Any  # routing, permuting
    prompt_layer_s: Any  # launching one layer of a prefill, which no graph holds: short prompts wait for it
    prompt_moe_layer_s: Any
    host_s: Any  # one iteration's scheduling and sampling that the GPU waits for
    sequence_s: Any  # the same for each running sequence
    contention: Any  # prefill time that running decodes lose, as a share of it
    first_token_s: Any  # HTTP, tokenising, detokenising
    burst: Any  # of the others' prefills, how many the mean request waits for
    prefill_factor: Any


FIELDS = tuple(f.name for f in fields(Constants))


@cache
def _table() -> dict[str, Any]:
    text = (files("stallwise.specs") / "catalog" / "serving.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def constants(engine: str = "vllm", without: str = "") -> Constants:
    """The constants of an engine; `without` a family: fitted on the runs of all other families."""
    table = _table()
    fitted = table["without"].get(without, table["all"]) if without else table["all"]
    if engine == "torch":  # no server: plain layers, timed on an H200
        return Constants(**table["torch"], **table["all"]["engine"]["torch"])
    return Constants(**fitted["shared"], **fitted["engine"][engine])


@cache
def spread(what: str) -> tuple[float, float]:
    """The 80% interval of measured over predicted (`tpot`, `ttft`), families predicted unseen."""
    low, high = _table()["spread"][what]
    return float(low), float(high)


def families() -> tuple[str, ...]:
    """The families that were fitted on; a model belongs to the one whose name its catalogue name starts with."""
    return tuple(_table()["without"])


def family_of(model_name: str) -> str:
    """The fitted family of this model, or nothing."""
    return next((f for f in sorted(families(), key=len, reverse=True) if model_name.startswith(f)), "")
