"""Results that notebooks show by themselves and that become rows of a table.

The ways of showing live in `stallwise.surfaces.notebook`, on top of everything; a result only knows that somebody up there may
know how. So results stay plain data, and nothing heavy loads until a notebook asks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from stallwise.errors import BadRequest, MissingExtra

LONGEST_LINE = 160
WAYS: dict[tuple[str, str], Callable[..., Any]] = {}  # (kind, name of the result's type) -> how


def way(kind: str, result: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares how results of this type are shown in this kind."""

    def keep(how: Callable[..., Any]) -> Callable[..., Any]:
        WAYS[kind, result] = how
        return how

    return keep


class Shown:
    """Rich display, plain containers and tables."""

    __slots__ = ()

    def _as(self, kind: str, *args: Any) -> Any:
        import_module(
            "stallwise.surfaces.notebook"
        )  # registers the ways; found by name, since it stands above all layers
        return WAYS[kind, type(self).__name__](self, *args)

    def _line(self) -> str:
        """What it is, in a few words."""
        return ""

    def __repr__(self) -> str:
        """One line: the whole is for rich displays and `to_dict`."""
        return f"<{type(self).__name__} {' '.join(self._line().split())[:LONGEST_LINE]}>"

    def _repr_html_(self) -> str:
        return str(self._as("html"))

    def _repr_markdown_(self) -> str:
        return str(self._as("markdown"))

    def to_dict(self) -> dict[str, Any]:
        """Plain containers, ready for json.dumps."""
        found: dict[str, Any] = self._as("dict")
        return found

    def rows(self, what: str = "") -> list[dict[str, Any]]:
        """One of the result's tables as rows."""
        tables: dict[str, list[dict[str, Any]]] = self._as("rows")
        wanted = what or next(iter(tables))
        if wanted not in tables:
            raise BadRequest(f"there is no table '{wanted}'", hint=f"one of: {', '.join(tables)}")
        return tables[wanted]

    def to_pandas(self, what: str = "") -> Any:
        """A pandas DataFrame of one table."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("pandas", "dev") from error
        return pandas.DataFrame(self.rows(what))

    def to_polars(self, what: str = "") -> Any:
        """A polars DataFrame of one table."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtra("polars", "dev") from error
        return polars.DataFrame(self.rows(what), infer_schema_length=None, strict=False)
