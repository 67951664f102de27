"""What engines reach of the hardware: few constants, each with a physical meaning, fitted on published runs.

`catalog/serving.toml` holds them with their source (`serving_known.toml`: what others measured): once over all runs, and
once for each fold of groups (a model on a card under an engine), so that a prediction for a group can be checked with
constants that never saw it. Releases and vendors change some of them; a release that nobody named lies half way and
widens the interval.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from stallwise.errors import BadRequest
from stallwise.tables import parsed

RELEASES_PER_STEP = 4.0  # about a quarter of a year of an engine's releases: so far apart is early from late
EARLY_UNSTATED = 0.5  # how early a release counts that nobody named: half way between the two


@dataclass(frozen=True, slots=True)
class Constants:
    """Shares of a peak and seconds of overhead. In a fit the fields may be numpy arrays, one value a run."""

    weight_read_share: Any  # of bandwidth, reading dense weights
    expert_read_share: Any  # the same for experts, which are smaller
    kv_read_share: Any
    matmul_share: Any  # of peak, in GEMMs large enough
    expert_matmul_share: Any  # of peak, in whole tiles of grouped products
    expert_padding_rows: Any  # rows by which each expert's batch is rounded up
    stream_passes: Any  # reads and writes of the residual stream in a layer: norms, rotations, quantising
    expert_passes: Any  # the same of a row that is sorted to an expert and back
    attention_share: Any  # of peak, in attention arithmetic
    fp8_share: Any  # further share of FP8 and FP4 peaks that scaling leaves
    fp4_share: Any
    blackwell_fp8_share: Any  # and Blackwell's younger kernels of FP8
    blackwell_read_share: Any  # Blackwell's software was younger than Hopper's when these were measured
    blackwell_matmul_share: Any
    blackwell_layer_share: Any
    link_share: Any  # of NVLink, in all-reduces
    all_to_all_share: Any
    kv_room_share: Any  # of what weights leave
    mla_layer_s: Any  # latent attention's extra kernels
    indexer_layer_s: Any  # kernels that score all tokens and pick those attended to
    fp8_layer_s: Any  # kernels that scale activations to 8 bit
    prompt_layer_s: Any  # launching one layer of a prefill, which no graph holds: short prompts wait for it
    prompt_moe_layer_s: Any
    early_layer_ratio: Any  # kernels between products in releases before the one named in the table
    collective_s: Any  # one small all-reduce among eight
    layer_s: Any  # kernels of one layer that do next to nothing
    moe_layer_s: Any  # routing, permuting
    host_s: Any  # one iteration's scheduling and sampling that the GPU waits for
    sequence_s: Any  # the same for each running sequence
    contention: Any  # of the time that others' prompts take, what running decodes lose
    mixed_share: Any  # of prefill that rides in decode's iterations, sharing their reads and launches
    first_token_s: Any  # HTTP, tokenising, detokenising
    burst: Any  # of the others' prefills, how many the mean request of a closed loop waits for
    prefill_factor: Any
    alone_s: Any = 0.0  # first_token_s of a request that meets no other's tokens


FIELDS = tuple(f.name for f in fields(Constants))


@cache
def _table() -> dict[str, Any]:
    catalog = files("stallwise.physics.specs") / "catalog"
    fitted = parsed((catalog / "serving.toml").read_text(encoding="utf-8"))
    known = parsed((catalog / "serving_known.toml").read_text(encoding="utf-8"))
    return {**fitted, **known}


@cache
def constants(engine: str = "vllm", without: str = "", version: str = "", kinds: tuple[str, ...] = ()) -> Constants:
    """The constants of an engine's release on cards of these kinds (vendor, architecture); `without` a group: fitted on the others."""
    table = _table()
    if engine == "torch":  # no server: plain layers, timed on an H200
        return Constants(**table["torch"], **table["all"]["engine"]["torch"])
    fitted = table["fold"][f"{fold_of(without)}"] if without else table["all"]
    if engine not in fitted["engine"]:
        raise BadRequest(f"no engine is called '{engine}'", hint=", ".join(fitted["engine"]))
    k = Constants(**fitted["shared"], **fitted["engine"][engine], alone_s=table["alone"]["first_token_s"])
    return _on(kinds, _of_release(engine, version, earlier(k, earliness(engine, version))))


def earlier(k: Constants, early: Any) -> Constants:
    """The constants of a release that is early (up to 1), late (0), newer (below 0), or not named (between)."""
    return replace(k, layer_s=k.layer_s * k.early_layer_ratio**early)


def earliness(engine: str, version: str) -> float:
    """How many releases before (above 0) or after the one where an engine's constants stand, over RELEASES_APART."""
    return early_by(version, **_table()["late"][engine])


def early_by(version: str, release: Sequence[int], steps: Sequence[float]) -> float:
    """The same from the release and how many releases each place of its number stands for; at most one either way."""
    found = release_of(version)
    if found is None:
        return EARLY_UNSTATED if not version.strip() else 0.0  # a nightly or a branch is newer than releases
    before = sum(step * (late - own) for step, late, own in zip(steps, release, found, strict=True))
    return max(-1.0, min(before / RELEASES_PER_STEP, 1.0))


def release_of(version: str) -> tuple[int, ...] | None:
    """Numbers of a release: 0.5.9 -> (0, 5, 9); None of anything else."""
    found = re.match(r"\s*v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(x or 0) for x in found.groups()) if found else None


def _of_release(engine: str, version: str, k: Constants) -> Constants:
    """Releases whose host time was published replace the fitted one."""
    release = release_of(version)
    for known in _table().get("release", ()):
        if known["engine"] == engine and release is not None and release < tuple(known["before"]):
            return replace(k, **{name: value for name, value in known.items() if name in FIELDS})
    return k


def _on(kinds: tuple[str, ...], k: Constants) -> Constants:
    """Another vendor's cards reach other shares of their peaks, and machines of an older card have older processors."""
    for kind in kinds:
        ratios = {n.removesuffix("_ratio"): x for n, x in _table()["of"].get(kind.lower(), {}).items() if n != "source"}
        k = replace(k, **{name: getattr(k, name) * ratio for name, ratio in ratios.items()})
    return k


@cache
def spread(what: str, share: float = 0.8, *, stated: bool = True, pools: bool = False) -> tuple[float, float]:
    """The interval of measured over predicted (`tpot`, `ttft`, `rate`) for a group nobody saw.

    `stated`: release, load and speculation were stated, so that the interval need not hold their alternatives. `pools`:
    of prefill and decode apart, where the alternatives are a mixture of their own.
    """
    table = _table()["spread"][f"{share:.0%}".rstrip("%")]
    low, high = (
        table["pools" if pools else "told" if stated else "untold"][what]
        if what != "layers"
        else _table()["spread"]["layers"]
    )
    return float(low), float(high)


def group_of(model_name: str, gpu_name: str, engine: str) -> str:
    """A model on a card under an engine: what is left out together."""
    return f"{model_name}|{gpu_name}|{engine}"


def fold_of(group: str) -> int:
    """The fold of constants that never saw this group; any group has one, fitted on or not."""
    return int(sha256(group.encode()).hexdigest(), 16) % int(_table()["folds"]["count"])
