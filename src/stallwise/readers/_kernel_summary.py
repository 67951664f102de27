"""A profiler summary of one kernel, pasted as text: "SM Busy: 94%  Tensor Core Utilization: 12% ..." in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.catalog import quantities
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, parse

# Label (as people and tools print it) -> name in the catalogue.
LABELS: tuple[tuple[str, str], ...] = (
    (r"SM Busy", "kernel.sm_busy_share"),
    (r"(?:SM|Compute) (?:\(SM\) )?Throughput", "kernel.sm_share"),
    (r"Tensor(?:[- ]?Core)?s?(?: Pipe)? (?:Utili[sz]ation|Active|Activity|Use)", "kernel.tensor_pipe_share"),
    (r"DRAM (?:Throughput|Utili[sz]ation|Bandwidth)", "kernel.dram_share"),
    (r"L2 (?:Cache )?Throughput", "kernel.l2_share"),
    (r"L1(?:/TEX)? (?:Cache )?Hit Rate", "kernel.l1_hit_share"),
    (r"L2 (?:Cache )?Hit Rate", "kernel.l2_hit_share"),
    (r"(?:Warp )?Stall:? ?\(?Long Scoreboard\)?|Long Scoreboard(?: Stall)?", "kernel.stall.long_scoreboard"),
    (r"(?:Warp )?Stall:? ?\(?Short Scoreboard\)?", "kernel.stall.short_scoreboard"),
    (r"(?:Warp )?Stall:? ?\(?MIO Throttle\)?|MIO Throttle(?: Stall)?", "kernel.stall.mio_throttle"),
    (r"(?:Warp )?Stall:? ?\(?LG Throttle\)?", "kernel.stall.lg_throttle"),
    (r"(?:Warp )?Stall:? ?\(?Barrier\)?", "kernel.stall.barrier"),
    (r"(?:Warp )?Stall:? ?\(?Math Pipe Throttle\)?", "kernel.stall.math_pipe_throttle"),
    (r"Achieved Occupancy", "kernel.achieved_occupancy_share"),
    (r"Theoretical Occupancy", "kernel.theoretical_occupancy_share"),
    (r"Regist(?:er|ers)(?: usage| count)?(?: per thread)?", "kernel.registers_per_thread"),
    (r"Shared mem(?:ory)?(?: per block| usage)?", "kernel.shared_memory_per_block"),
    (r"Block size|Threads per block", "kernel.block_threads"),
    (r"Grid size", "kernel.grid_blocks"),
    (r"Waves per SM", "kernel.waves_per_sm"),
    (r"Bank conflicts?", "kernel.shared_conflict_share"),
)
_VALUE = r"\)?\s*[:=]\s*(\d[\d,]*\.?\d*)\s*(%|KiB|KB|MB|B)?"
MANY = 3  # labels that make a text a summary


def found_in(text: str) -> Iterator[tuple[Quantity, float]]:
    """The quantities that the text states, once each."""
    known = quantities()
    for label, name in LABELS:
        quantity = known.get(name)
        match = re.search(rf"(?:{label}){_VALUE}", text, re.IGNORECASE)
        if quantity is None or match is None:
            continue
        number, unit = match[1].replace(",", ""), match[2] or ""
        if quantity.unit is Unit.SHARE:
            yield quantity, float(number) / 100.0
        elif quantity.unit is Unit.BYTE:
            yield quantity, parse(f"{number}{unit.replace('KB', 'KiB') or 'KiB'}", Unit.BYTE)
        else:
            yield quantity, float(number)


def summary_facts(text: str, source: Source) -> list[Fact]:
    """The same as facts."""
    return [Fact(quantity, value, source) for quantity, value in found_in(text)]
