"""One kernel's counters at hand for a rule: values with defaults, reasons with sources, gains as parts of its time."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.finding import Gain, Reason
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity

# A unit at four fifths of its peak is at its roof: measured streams reach 0.80 to 0.93 of DRAM, library products 0.75
# to 0.95 of the tensor pipe (H200, A100 and H100 profiles agree).
AT_CEILING = 0.80
NEAR_CEILING = 0.70

PLAIN = {
    "long_scoreboard": "data from global or local memory",
    "short_scoreboard": "shared memory or special functions",
    "mio_throttle": "a full queue to shared memory",
    "lg_throttle": "a full queue of global accesses",
    "tex_throttle": "a full texture queue",
    "barrier": "sibling warps at a barrier",
    "math_pipe_throttle": "a busy math pipe",
    "wait": "the fixed latency of the previous instruction",
    "branch_resolving": "a branch to be resolved",
    "no_instruction": "instructions to be fetched",
    "imc_miss": "a constant that missed its cache",
    "drain": "stores to leave at the end",
    "membar": "a memory fence",
    "gmma": "tensor instructions to finish",
    "sleeping": "a sleep they asked for",
    "dispatch_stall": "the dispatcher",
}


@dataclass(frozen=True, slots=True)
class Counters:
    """A view on the evidence of one kernel."""

    evidence: Evidence

    def get(self, quantity: Quantity, default: float = 0.0) -> float:
        """The value, or the default where it was not measured."""
        value = self.evidence.value(quantity, default)
        return default if value != value else value

    def knows(self, quantity: Quantity) -> bool:
        """True where it was measured."""
        return self.evidence.get(quantity) is not None

    def word(self, quantity: Quantity) -> str:
        """A textual fact, or ''."""
        return self.evidence.text(quantity)

    def reason(self, text: str, *quantities: Quantity) -> Reason:
        """A sentence with the places it rests on."""
        return Reason.of(text, *(f for q in quantities if (f := self.evidence.get(q)) is not None))

    def gain(self, low_share: float, high_share: float, basis: str) -> Gain | None:
        """A part of the kernel's time (all launches), capped at the whole."""
        fact = self.evidence.get(k.TOTAL_TIME) or self.evidence.get(k.TIME)
        if fact is None:
            return None
        low, high = sorted((min(max(low_share, 0.0), 0.99), min(max(high_share, 0.0), 0.99)))
        return Gain(fact.number * low, fact.number * high, basis)

    @property
    def tensor(self) -> float:
        """Tensor-pipe activity; bounded from the busiest pipe where the pipe itself was not shown."""
        if self.knows(k.TENSOR_SHARE):
            return self.get(k.TENSOR_SHARE)
        return 0.0

    @property
    def tensor_known(self) -> bool:
        """Whether the tensor pipe was measured, or another pipe is known to be the busiest."""
        return self.knows(k.TENSOR_SHARE) or (self.knows(k.TOP_PIPE) and "ensor" not in self.word(k.TOP_PIPE))

    @property
    def math(self) -> float:
        """The busiest of the math pipes and issue slots."""
        pipes = (k.TENSOR_SHARE, k.FMA_SHARE, k.FP64_SHARE, k.ALU_SHARE, k.XU_SHARE, k.TOP_PIPE_SHARE, k.ISSUE_SHARE)
        return max(self.get(q) for q in pipes)

    @property
    def dram(self) -> float:
        """DRAM throughput over peak."""
        return self.get(k.DRAM_SHARE)

    @property
    def memory(self) -> float:
        """The busiest of DRAM, L2 and L1."""
        return max(self.get(q) for q in (k.DRAM_SHARE, k.L2_SHARE, k.L1_SHARE))

    @property
    def stall(self) -> str:
        """What warps mostly wait for, in plain words."""
        word = self.word(k.TOP_STALL)
        if not word:
            return ""
        return f"warps wait for {PLAIN.get(word, word)} {self.get(k.TOP_STALL_SHARE):.0%} of the time"

    def is_stall(self, *words: str) -> bool:
        """Whether the largest reason to wait is one of these."""
        return self.word(k.TOP_STALL) in words
