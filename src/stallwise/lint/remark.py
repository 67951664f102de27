"""One line of source that costs something, and what to write instead."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding in source code; `cause` has a page in the catalogue."""

    check: str
    cause: str
    file: str
    line: int
    column: int
    message: str
    fix: str
    cost: str  # what it costs where that can be known without running

    def to_dict(self) -> dict[str, object]:
        """Plain containers."""
        return asdict(self)
