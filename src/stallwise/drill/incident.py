"""An incident: what is given at the start, what can be asked for, and what was planted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.reading import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Evidence
from stallwise.units import Unit, show

READ_OFF = 1.10  # exhibits carry noise of a few percent and people round to two digits
WORKED_OUT = 1.20  # two such numbers divided or added
EXACT = 1.0  # ranks, codes, counts
CLASSICS = 8  # seeds 1 to 8 are the classic scenarios


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One file that is handed out when its kind is asked for."""

    kind: str  # see artifacts.tsv
    file: str
    content: bytes
    deciding: bool = True  # False: a red herring or mere background
    hearsay: bool = False  # somebody's opinion: read by the player, no evidence for the doctor

    @property
    def text(self) -> str:
        """As a person reads it."""
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Decisive:
    """The number that settles it: what is asked, the planted value in SI, and how far off is still right."""

    ask: str
    value: float
    unit: Unit = Unit.COUNT
    within: float = READ_OFF

    def accepts(self, value: float) -> bool:
        """Exact for ranks and codes, within a factor for what is measured."""
        if self.within == EXACT or self.value == 0:
            return abs(value - self.value) < 0.5 if self.within == EXACT else abs(value) < 1e-9
        return value > 0 and 1 / self.within <= value / self.value <= self.within

    @property
    def shown(self) -> str:
        """As a person writes it."""
        return f"{self.value:,.0f}" if self.within == EXACT else show(self.value, self.unit)


@dataclass(frozen=True, slots=True)
class Plot:
    """What a scenario's author writes."""

    setup: str
    exhibits: tuple[Exhibit, ...]
    number: Decisive
    also: tuple[str, ...] = ()  # further faults, smaller than the first
    gpu_use: int = 98  # percent that nvidia-smi would show, so that background exhibits agree
    source: str = ""  # of a public case; then no made-up exhibits are laid beside it that could disagree


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident of a drill; the seed says everything."""

    seed: int
    cause: str
    family: str
    setup: str
    exhibits: tuple[Exhibit, ...]
    number: Decisive
    also: tuple[str, ...] = ()
    title: str = ""
    source: str = ""
    accepted: tuple[str, ...] = ()  # causes that the exhibits allow as well as the first, itself among them
    rumoured_cause: str = ""  # the cause that a colleague's note names without grounds

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of artifacts that exist here."""
        return tuple(dict.fromkeys(e.kind for e in self.exhibits))

    @property
    def deciding(self) -> tuple[str, ...]:
        """Kinds that settle it."""
        return tuple(dict.fromkeys(e.kind for e in self.exhibits if e.deciding))

    def of(self, kind: str) -> tuple[Exhibit, ...]:
        """The files of a kind."""
        return tuple(e for e in self.exhibits if e.kind == kind)


def exhibit(kind: str, file: str, text: str | bytes, deciding: bool = True) -> Exhibit:
    """A file from text."""
    return Exhibit(kind, file, text.encode() if isinstance(text, str) else text, deciding)


@cache
def model_answer(incident: Incident) -> Diagnosis:
    """What the doctor says with everything on the table: real readers, real rules."""
    evidence = Evidence()
    for exhibit in incident.exhibits:
        if exhibit.hearsay:
            continue
        formats, items = read_artifact(Artifact(exhibit.file, content=exhibit.content))
        if formats:
            evidence.inputs.append(exhibit.file)
            evidence.formats += [f for f in formats if f not in evidence.formats]
            evidence.add(items)
    return examine(evidence)


def planted_finding(incident: Incident) -> Finding | None:
    """What the doctor says of the planted cause, or of one that is as right."""
    found = {f.cause: f for f in model_answer(incident).findings}
    return next((found[c] for c in (incident.cause, *incident.accepted) if c in found), None)
