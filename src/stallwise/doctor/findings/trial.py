"""What was tried in a running job and measured: gains that are no prediction any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source

TABLE = "trials"
LARGEST = 1e300  # a figure beyond it is damage
FASTER, SLOWER, NOTHING, UNSURE = "faster", "slower", "no difference", "inconclusive"
NOT_HERE, LOSS = "not applicable", "loss changed"


@dataclass(frozen=True, slots=True)
class Trial:
    """One change, tried in alternating blocks. `ratio` is the step before over the step after."""

    name: str
    title: str
    causes: tuple[str, ...]
    state: str
    source: Source
    why: str = ""
    needs: str = ""
    risk: str = ""
    before_s: float = 0.0
    after_s: float = 0.0
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    pairs: int = 0
    one_off_s: float = 0.0
    more_bytes: float = 0.0
    detectable: float = 0.0
    removes: bool = False  # takes the whole cause away: no difference means that it costs nothing
    remarks: tuple[str, ...] = ()
    of: tuple[str, ...] = ()  # the two that were tried together
    adds: str = ""
    alone: float = 0.0  # what both would be worth if they added
    keeps_loss: bool = False  # the loss is to stay what it is
    loss_before: float | None = None  # mean of the blocks as they are
    loss_after: float | None = None

    @property
    def measured(self) -> bool:
        """It was made, and has an interval."""
        return self.ratio > 0 and self.state in (FASTER, SLOWER, NOTHING, UNSURE)

    def saved_s(self, ratio: float) -> float:
        """Seconds a step that a ratio saves."""
        return self.before_s * (1.0 - 1.0 / ratio) if ratio > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Trials:
    """All that one job tried."""

    found: tuple[Trial, ...]
    together: Trial | None
    about: dict[str, Any]
    source: Source


def trials_in(evidence: Evidence) -> tuple[Trials, ...]:
    """Every job that tried something."""
    return tuple(_trials(table.meta, table.source) for table in evidence.table(TABLE))


def _trials(raw: dict[str, Any], source: Source) -> Trials:
    found = tuple(_trial(row, source) for row in _list(raw, "trials") if isinstance(row, dict))
    both = raw.get("together")
    about = {k: v for k, v in raw.items() if k not in ("trials", "together")}
    return Trials(found, _trial(both, source) if isinstance(both, dict) else None, about, source)


def _trial(row: dict[str, Any], source: Source) -> Trial:
    return Trial(
        name=str(row.get("name", "")),
        title=str(row.get("title", "")),
        causes=_texts(row, "causes"),
        state=str(row.get("state", "")),
        source=source,
        why=str(row.get("why", "")),
        needs=str(row.get("needs", "")),
        risk=str(row.get("risk", "")),
        before_s=_number(row, "before_s"),
        after_s=_number(row, "after_s"),
        ratio=_number(row, "ratio"),
        low=_number(row, "ratio_low"),
        high=_number(row, "ratio_high") or (float("inf") if row.get("ratio") else 0.0),
        pairs=int(_number(row, "pairs")),
        one_off_s=_number(row, "one_off_s"),
        more_bytes=_number(row, "memory_more_bytes"),
        detectable=_number(row, "detectable_ratio"),
        removes=bool(row.get("removes_cause")),
        remarks=tuple(str(row[key]) for key in ("throttled", "clocks") if row.get(key)),
        of=_texts(row, "of"),
        adds=str(row.get("adds", "")),
        alone=_number(row, "if_independent_ratio"),
        keeps_loss=bool(row.get("keeps_loss")),
        loss_before=_number(row, "loss_before") if "loss_before" in row else None,
        loss_after=_number(row, "loss_after") if "loss_after" in row else None,
    )


def _list(row: dict[str, Any], key: str) -> list[Any]:
    found = row.get(key)
    return found if isinstance(found, list) else []


def _texts(row: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(str(x) for x in _list(row, key))


def _number(row: dict[str, Any], key: str) -> float:
    value = row.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < LARGEST:
        return 0.0
    return float(value)
