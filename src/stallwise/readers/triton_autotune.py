"""Autotuner logs of Triton and Inductor: every configuration with its time, registers and spills."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel, stated, tuning
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source

FORMAT = "Triton autotuner log"
_BEGIN = re.compile(
    r"Benchmark all input configs for ([^,\s]+)|Autotuning kernel (\S+)|autotuning for function (\S+)", re.IGNORECASE
)
_CONFIG = re.compile(r"((?:\w+: ?\w+, ?){2,}\w+: ?\w+)(?:: |[,;]? (?:time|->)[:=]? ?)(\d+\.\d+)\s*(ms|us|s)?")
_EXTRA = re.compile(r"nreg (\d+)|nspill (\d+)|n_regs[:=] ?(\d+)|n_spills[:=] ?(\d+)")
_PAIR = re.compile(r"(\w+): ?(\d+)")
_MARK = re.compile(rb"num_warps: ?\d+.*num_stages: ?\d+|num_stages: ?\d+.*num_warps: ?\d+")
_SCALE = {"s": 1.0, "ms": 1e-3, "us": 1e-6, None: 1e-3}  # Triton prints milliseconds
REGISTER_BYTES = 4.0  # Triton counts spilled registers, not bytes


@dataclass
class _Config:
    values: dict[str, float]
    time_s: float
    line: int
    registers: float = float("nan")
    spilled: float = float("nan")


@dataclass
class _Kernel:
    configs: list[_Config] = field(default_factory=list)


def recognises(name: str, head: bytes) -> bool:
    """Lines with warps and stages of configurations."""
    return b"\x00" not in head[:4096] and bool(_MARK.search(head[: 1 << 18]))


def read(artifact: Artifact) -> Iterator[Item]:
    """Per kernel: what was tried, and what the best one costs in registers and spills."""
    current, kernels = "kernel", defaultdict(_Kernel)
    for number, text in enumerate(artifact.lines(), 1):
        if match := _BEGIN.search(text):
            current = next(g for g in match.groups() if g)
        if (match := _CONFIG.search(text)) and "num_warps" in match[1]:
            config = _Config(
                {k: float(v) for k, v in _PAIR.findall(match[1])}, float(match[2]) * _SCALE[match[3]], number
            )
            for extra in _EXTRA.finditer(text):
                registers, spilled = extra[1] or extra[3], extra[2] or extra[4]
                config.registers = float(registers) if registers else config.registers
                config.spilled = float(spilled) if spilled else config.spilled
            kernels[current].configs.append(config)
    for name, found in kernels.items():
        yield from _facts(name, found.configs, artifact.name)


def _facts(name: str, configs: list[_Config], file: str) -> Iterator[Item]:
    best = min(configs, key=lambda c: c.time_s)
    scope, source = Scope(kernel=name), Source(file, f"line {best.line}")
    yield Fact(tuning.TIMED_CONFIGS, float(len(configs)), source, scope, samples=len(configs))
    yield Fact(stated.AUTOTUNE_CONFIGS, float(len(configs)), source)
    yield Fact(kernel.TIME, best.time_s, source, scope)
    yield Fact(tuning.SPREAD, max(c.time_s for c in configs) / best.time_s, source, scope, samples=len(configs))
    edge = ", ".join(key for key in best.values if _at_edge(key, best, configs))
    if len(configs) > 1:
        yield Fact(tuning.BEST_AT_EDGE, edge, source, scope, samples=len(configs))
    for quantity, key in (
        (stated.BLOCK_K, "BLOCK_K"),
        (stated.NUM_STAGES, "num_stages"),
        (stated.NUM_WARPS, "num_warps"),
    ):
        tried = [c.values[key] for c in configs if key in c.values]
        if tried:
            yield Fact(quantity, max(tried), source)
    if best.registers == best.registers:
        yield Fact(kernel.REGISTERS, best.registers, source, scope)
    if best.spilled == best.spilled:
        yield Fact(kernel.SPILL_BYTES_PER_THREAD, best.spilled * REGISTER_BYTES, source, scope)


def _at_edge(key: str, best: _Config, configs: list[_Config]) -> bool:
    """True when larger values of this parameter were never tried although the largest won over smaller ones."""
    tried = {c.values.get(key, best.values[key]) for c in configs}
    return len(tried) > 1 and best.values[key] == max(tried)
