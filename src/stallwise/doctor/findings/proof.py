"""Health as a finding that needs proof: what was shown to be well, which ceiling binds, and what is still missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence

PROGRAM_END = "end of the program"  # what a log that ends in an error shows first


@dataclass(frozen=True, slots=True)
class Limit:
    """What binds where nothing is broken: the ceiling, how near it is, and what would have to change to go faster."""

    what: str  # "memory bandwidth", "matrix units", "links between the GPUs"
    near_share: float  # of the ceiling
    text: str
    levers: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """What one kind of artifact shows to be well. With something lacking it is calm, not an all-clear."""

    of: str  # "training step", "hardware", "profiled kernels"
    says: str
    because: tuple[Reason, ...] = ()
    confidence: float = 0.0  # that nothing worth fixing is there, given this proof
    limit: Limit | None = None
    lacks: str = ""  # what keeps it from an all-clear; empty when proven
    next: tuple[Capture, ...] = ()  # what would supply the missing part
    objects: bool = False  # what is lacking was looked at and is not well, rather than not being told
    covers_run: bool = True  # False: proves a part (the hardware), never that the run is well
    covers: tuple[str, ...] = ()  # weaker witnesses whose missing part this proof supplies
    describes: bool = False  # says what the file shows, in line or not: told beside a finding as well

    @property
    def whole(self) -> bool:
        """True when it alone can carry an all-clear."""
        return not self.lacks and self.covers_run


Prover = Callable[[Evidence], Proof | None]


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Time that no finding accounts for, or work that nobody could read."""

    what: str  # an account of the ledger, or what could not be read
    seconds: float
    share: float  # of the whole


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """What the inputs hold and nobody could make sense of."""

    files: tuple[str, ...] = ()  # read or tried, without one fact
    lines: tuple[Reason, ...] = ()  # errors and warnings without a meaning, quoted
    line_count: int = 0
    numbers_named_share: float | None = None  # of all numbers in texts; None where nobody counted
    time: tuple[Unexplained, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.line_count or self.time)
