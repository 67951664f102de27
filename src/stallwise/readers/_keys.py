"""What a column or key of a log means: a quantity and the factor that makes it SI.

Frameworks spell the same thing in dozens of ways (`memory/current_allocated_mem_gb`, `MemAllocated`, `gpu_mem (GiB)`),
so names are cut into words and the words decide. Order matters: the narrow readings come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from stallwise.evidence.catalog import run
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

STEP_NAMES = {
    "step", "steps", "global_step", "globalstep", "train_step", "iteration", "iterations", "iter", "iters", "update",
    "updates", "batch", "batch_idx", "it", "trainer_global_step", "n_iter", "num_updates", "total_steps", "micro_step",
}  # fmt: skip
CLOCK_NAMES = {"minute": 60.0, "minutes": 60.0, "min": 60.0, "hour": 3600.0, "hours": 3600.0, "seconds": 1.0,
               "time_s": 1.0, "elapsed_s": 1.0, "start_s": 1.0, "wall_time": 1.0, "t": 1.0, "t_s": 1.0, "time": 1.0,
               "elapsed_time": 1.0, "elapsed": 1.0, "runtime": 1.0, "uptime_s": 1.0}  # fmt: skip
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0,
            "secs": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0}  # fmt: skip
_BYTES = {"b": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2.0**10, "mib": 2.0**20,
          "gib": 2.0**30, "g": 2.0**30, "m": 2.0**20, "k": 2.0**10}  # fmt: skip


class Meaning(NamedTuple):
    """A quantity, the factor to SI, and whether the value must be inverted (steps a second)."""

    quantity: Quantity
    scale: float = 1.0
    inverse: bool = False


def words_of(name: str) -> tuple[str, ...]:
    """`MemAllocated (GB)` -> mem allocated gb."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(w for w in re.split(r"[^a-z0-9µ%]+", spaced.lower()) if w)


def is_step(name: str) -> bool:
    """True for a column that counts steps."""
    return "_".join(words_of(name)) in STEP_NAMES


def clock_scale(name: str) -> float | None:
    """Seconds per unit of a column that is a clock, else None."""
    return CLOCK_NAMES.get("_".join(words_of(name)))


@lru_cache(maxsize=4096)
def meaning_of(name: str, unit: str = "") -> Meaning | None:
    """What `name` (with the unit printed after its value, if any) measures; None for a stranger."""
    words = words_of(name)
    if not words or len(words) > 9:
        return None
    found = _quantity(words)
    if found is None:
        return None
    quantity, inverse = found
    return Meaning(quantity, _scale(quantity, words, unit), inverse)


def sibling_unit(names: Iterable[str]) -> str:
    """The time unit that a table's columns share: beside `step_ms`, a bare `data_wait` is in milliseconds too."""
    units = {w for name in names for w in words_of(name)[-1:] if w in _SECONDS and w not in ("min", "minutes")}
    return units.pop() if len(units) == 1 else ""


def has_unit(name: str) -> bool:
    """True when the name itself says its unit."""
    return any(w in _SECONDS or w in _BYTES for w in words_of(name)[-1:])


def _scale(quantity: Quantity, words: tuple[str, ...], unit: str) -> float:
    written = unit.lower().strip("/")
    if quantity.unit is Unit.SECOND:
        table = _SECONDS
    elif quantity.unit is Unit.BYTE:
        table = _BYTES
    elif quantity.unit is Unit.FLOP_PER_S:
        return 1e12 if any("tflop" in w for w in (*words, written)) else 1.0
    elif quantity.unit is Unit.SHARE:
        return 0.01 if "%" in unit or {"pct", "percent", "percentage"} & set(words) else 1.0
    else:
        return 1e3 if unit in ("k", "K") else 1e6 if unit == "M" else 1.0
    if written in table:
        return table[written]
    return next((table[w] for w in reversed(words) if w in table and len(w) > 1), table.get(words[-1], 1.0))


_Test = Callable[[set[str], str], bool]
_RATE_WORDS = {"per", "s", "sec", "second", "throughput", "rate"}
_TIME_WORDS = {"time", "duration", "seconds", "secs", "sec", "s", "ms", "us", "latency", "elapsed", "dt", "wait"}


def _quantity(words: tuple[str, ...]) -> tuple[Quantity, bool] | None:
    bag, joined = set(words), "_".join(words)
    if _steps_a_second(bag, joined):
        return run.STEP_TIME, True
    for quantity, test in _NUMERICS + _RATES + _MEMORY + _TIMES:
        if test(bag, joined):
            return quantity, False
    return None


def _steps_a_second(bag: set[str], joined: str) -> bool:
    if joined in ("it_s", "its", "steps_s", "steps_per_second", "steps_per_sec", "iters_per_sec", "batches_per_sec"):
        return True
    return (
        bool(bag & {"steps", "iterations", "batches", "iters"}) and bool(bag & {"s", "sec", "second"}) and len(bag) < 6
    )


_NUMERICS: list[tuple[Quantity, _Test]] = [
    (
        run.LOSS_SCALE,
        lambda b, j: ("loss" in b and "scale" in b) or j in ("scale", "scaler", "grad_scale", "amp_scale"),
    ),
    (run.EVAL_LOSS, lambda b, j: "loss" in b and bool(b & {"val", "eval", "valid", "validation", "test", "dev"})),
    (run.LOSS, lambda b, j: "loss" in b and not b & {"aux", "scale", "balancing", "time", "s", "ms"}),
    (
        run.GRAD_NORM,
        lambda b, j: (
            "gnorm" in b or "gradnorm" in b or (bool(b & {"grad", "gradient"}) and "norm" in b and "max" not in b)
        ),
    ),
    (run.UPDATE_NORM, lambda b, j: "update" in b and "norm" in b),
    (run.LEARNING_RATE, lambda b, j: "lr" in b or ("learning" in b and "rate" in b)),
    (
        run.SKIPPED_STEPS,
        lambda b, j: ("skipped" in b and bool(b & {"iterations", "steps", "number"})) or j == "skipped",
    ),
    (run.ACTIVATION_MAX, lambda b, j: bool(b & {"absmax", "amax"}) or {"abs", "max"} <= b),
]
_RATES: list[tuple[Quantity, _Test]] = [
    (run.MFU, lambda b, j: "mfu" in b),
    (run.HFU, lambda b, j: "hfu" in b),
    (run.FLOP_RATE, lambda b, j: any("tflop" in w for w in b)),
    (run.TOKENS_PER_S, lambda b, j: "tps" in b or (bool(b & {"tokens", "token", "tok", "wps", "words"}) and bool(b & _RATE_WORDS))),
    (run.SAMPLES_PER_S, lambda b, j: bool(b & {"samples", "sample", "images", "imgs", "examples", "sequences", "seqs"})
     and bool(b & _RATE_WORDS)),
]  # fmt: skip
_NOT_IN_USE = {"util", "utilization", "pct", "percent", "clock", "time", "max", "total", "limit", "free", "errors"}
_MEMORY: list[tuple[Quantity, _Test]] = [
    (run.ALLOC_RETRIES, lambda b, j: bool(b & {"retries", "retry"}) and any("alloc" in w for w in b)),
    (run.GPU_MEMORY, lambda b, j: bool(b & {"gpu", "cuda", "vram"}) and bool(b & {"mem", "memory", "vram"}) and not b & _NOT_IN_USE),
    (run.HOST_MEMORY, lambda b, j: bool(b & {"rss", "ram", "pss", "uss", "resident"}) or ("real" in b and bool(b & {"mb", "gb", "mib", "gib"})) or (bool(b & {"host", "system", "cpu", "process", "sys"})  # noqa: E501
     and bool(b & {"mem", "memory", "used", "use", "usage"}) and not b & {"util", "pct", "percent"})),
    (run.GPU_MEMORY, lambda b, j: bool(b & {"mem", "memory", "vram", "gpumem"}) and not b & {
        "util", "utilization", "pct", "percent", "clock", "time", "max", "total", "limit", "free", "errors"}),
    (run.GRAPH_NODES, lambda b, j: ("graph" in b and bool(b & {"nodes", "size", "ops"})) or {"live", "tensors"} <= b),
]  # fmt: skip
# Parts of a step that carry the same words.
_PARTS: set[str] = {
    "forward",
    "backward",
    "optimizer",
    "fwd",
    "bwd",
    "comm",
    "remaining",
    "eta",
    "total",
    "sample",
    "samples",
    "per",
    "throughput",
}
_LOADING = {"data", "dataloader", "loader", "dataloading", "input", "fetch", "loading"}
_STEPPING = {"step", "iter", "iteration", "batch", "update", "steptime", "itertime", "it", "train"}
_TIMES: list[tuple[Quantity, _Test]] = [
    (run.SYNC_TIME, lambda b, j: any("synchron" in w for w in b) and bool(b & _TIME_WORDS)),
    (run.SAVE_TIME, lambda b, j: bool(b & {"checkpoint", "ckpt", "save", "saving"}) and bool(b & _TIME_WORDS)),
    (run.DATA_TIME, lambda b, j: bool(b & _LOADING) and bool(b & _TIME_WORDS) and not b & {"throughput", "per"}),
    (run.STEP_TIME, lambda b, j: (bool(b & _STEPPING) and bool(b & _TIME_WORDS) and not b & _PARTS and not j.endswith("time_batch"))
     or j in ("seconds", "dt", "duration", "elapsed", "elapsed_ms", "elapsed_s", "time_ms", "step_time", "iteration_s")
     or (j.startswith("elapsed_time") and "iteration" in b)),
]  # fmt: skip
