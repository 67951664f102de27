"""Where every second went. Each second is in exactly one account, and the accounts sum to the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from stallwise.evidence.fact import WHOLE, Scope, Source


class Category(Enum):
    """The accounts of a training step, an inference iteration or a request."""

    COMPUTE = "compute"
    COMMUNICATION = "exposed communication"
    INPUT_WAIT = "input wait"
    LAUNCH_GAP = "launch gap"
    HOST_WAIT = "host wait"
    COPY = "copy"
    BUBBLE = "bubble"
    CHECKPOINT = "checkpoint"
    WARM_UP = "one-off"
    OTHER = "other"
    QUEUE = "queue"
    PREFILL = "prefill"
    FIRST_TOKEN = "first token"
    DECODE = "decode"
    PREEMPTED = "preempted"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Seconds by account for one step (a mean over `samples`) or one request."""

    seconds: Mapping[Category, float]
    source: Source
    scope: Scope = WHOLE
    samples: int = 1
    unit: str = "step"  # or "request", "iteration", "window"
    # Of a traced run: the step as recorded, and without the profiler, which is what the accounts speak of.
    traced_step_s: float | None = None
    clean_step_s: float | None = None
    # How far an account may lie off, low and high, where that is known: the host of another run is quicker or slower.
    ranges: Mapping[Category, tuple[float, float]] = field(default_factory=dict)
    clean_ends_s: tuple[float, float] | None = None  # of the clean step, where it was replayed
    # What the user named: seconds of a step by span, beside the accounts since a span may lie in any of them, and gauges.
    spans: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)

    @property
    def whole_s(self) -> float:
        """The wall time that the accounts sum to."""
        return sum(self.seconds.values())

    @property
    def whole_ends_s(self) -> tuple[float, float]:
        """Between which ends the whole lies: those of the replayed step, else its accounts at theirs."""
        if self.clean_ends_s is not None:
            return self.clean_ends_s
        low, high = (sum(self.ranges.get(a, (s, s))[end] for a, s in self.seconds.items()) for end in (0, 1))
        return low, high

    def share(self, category: Category) -> float:
        """This account's part of the whole."""
        return self.seconds.get(category, 0.0) / self.whole_s if self.whole_s else 0.0
