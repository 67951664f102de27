"""One line of source that costs something, and what to write instead."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from stallwise.lint.edit import Edit


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
    edit: Edit | None = None  # a change that is safe to make

    def to_dict(self) -> dict[str, object]:
        """Plain containers."""
        return asdict(self)
