"""One observed or stated value, with its unit, its sample count and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from stallwise.evidence.quantity import Quantity
from stallwise.late import np
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact came from: a file and a place in it, or the user's own words."""

    file: str
    where: str = ""  # "line 12", "event 3881", "ProfilerStep#8-11", "row 4"
    stated: bool = False  # a person wrote it down; no program measured it

    def __str__(self) -> str:
        return f"{self.file} {self.where}".strip()

    @property
    def place(self) -> str:
        """ "train.log line 12": without its folder."""
        return f"{self.file.rsplit('/', 1)[-1]} {self.where}".strip()


STATED = Source("stated", stated=True)


@dataclass(frozen=True, slots=True)
class Scope:
    """What part of the world a fact speaks of; everything left out means the whole run."""

    rank: int | None = None
    node: str | None = None
    gpu: int | None = None
    run: str | None = None
    kernel: str | None = None
    layer: str | None = None
    group: str | None = None
    stage: int | None = None
    step: int | None = None
    request: str | None = None

    def __str__(self) -> str:
        return " ".join(f"{name} {v}" for name, v in self.to_dict().items())

    def to_dict(self) -> dict[str, Any]:
        """Only the labels that are set."""
        return {name: v for name in _LABELS if (v := getattr(self, name)) is not None}


_LABELS = tuple(f.name for f in fields(Scope))
WHOLE = Scope()


@dataclass(frozen=True, slots=True)
class Fact:
    """A number (or word) that somebody measured, derived or stated."""

    quantity: Quantity
    value: float | str
    source: Source
    scope: Scope = WHOLE
    samples: int = 1
    low: float | None = None  # interval, where one is known
    high: float | None = None
    note: str = ""

    @property
    def number(self) -> float:
        """The value as a number; NaN for words."""
        return float(self.value) if not isinstance(self.value, str) else float("nan")

    @property
    def stated(self) -> bool:
        """True when the user said it and no artifact showed it."""
        return self.source.stated

    def __str__(self) -> str:
        if isinstance(self.value, str) or self.quantity.unit is Unit.TEXT:
            return str(self.value)
        return show(self.value, self.quantity.unit)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A quantity over steps or seconds."""

    quantity: Quantity
    x: NDArray[np.float64]
    values: NDArray[np.float64]
    source: Source
    scope: Scope = WHOLE
    over: str = "step"  # or "time_s"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows that belong together (collectives of a rank, memory blocks), as equally long columns."""

    kind: str
    columns: dict[str, NDArray[Any]]
    source: Source
    scope: Scope = WHOLE
    meta: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True, slots=True)
class Note:
    """Something the user should know about the input itself: what was lost, what was assumed."""

    text: str
    source: Source
    lost: bool = False  # part of the input or of the examination is missing: no all-clear can rest on the rest
