"""An incident: what several files tell, in one order, with the fault that came first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stallwise.evidence.fact import Source


class Part(StrEnum):
    """What a row of an incident is in it."""

    GOOD = "good"  # the last step at normal speed
    SLOW = "slow"  # steps from which on the job is slower
    ROOT = "root"  # a fault
    CASCADE = "cascade"  # follows from one
    SEPARATE = "separate"  # nothing of this incident
    NOTICE = "notice"  # worth a look, without a time or a consequence
    END = "end"


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one file against that of the incident."""

    file: str
    form: str
    shift_s: float | None  # added to what it prints; None where nothing ties it to the others
    doubt_s: float  # of that shift; infinite where it is only assumed
    known_by: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that happened, or many of one kind."""

    part: Part
    kind: str
    sentence: str
    source: Source
    clock: str  # the time as its file prints it
    from_s: float = float("nan")  # on the incident's clock
    to_s: float = float("nan")
    host: str = ""
    rank: int | None = None
    ranks: tuple[int, ...] = ()  # of all that it stands for
    gpu: str = ""
    times: int = 1
    caused_by: int | None = None  # a row's place
    by_cause: bool = False  # the order to its cause is known by what it says, not by clocks
    first: bool = False


@dataclass(frozen=True, slots=True)
class Before:
    """Two lines whose order the clocks prove: their intervals do not overlap, doubts included."""

    earlier: Source
    later: Source
    least_s: float  # that lies between them at least


@dataclass(frozen=True, slots=True)
class Incident:
    """The rows in their order; no rows where nothing can be ordered, with the reason."""

    rows: tuple[Row, ...] = ()
    clocks: tuple[Clock, ...] = ()
    before: tuple[Before, ...] = ()
    owner: str = ""
    cause: str = ""  # slug
    action: str = ""
    drain: tuple[str, ...] = ()
    last_good_step: int | None = None
    why_none: str = ""
    steps: tuple[tuple[float, float], ...] = ()  # time on the incident's clock, seconds of the step

    @property
    def first(self) -> Row | None:
        """The fault that came first."""
        return next((row for row in self.rows if row.first), None)

    @property
    def drain_lines(self) -> tuple[str, ...]:
        """Ready to paste, for Slurm and for Kubernetes."""
        if not self.drain:
            return ()
        names = ",".join(self.drain)
        return (
            f"sbatch --exclude={names}",
            f'scontrol update nodename={names} state=drain reason="{self.cause or "first fault"}"',
            f"kubectl cordon {' '.join(self.drain)}",
        )
