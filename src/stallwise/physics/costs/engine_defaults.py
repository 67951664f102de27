"""What an engine's release runs with where nobody stated it (catalog/engine_defaults.toml)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.physics.costs.serving_constants import release_of
from stallwise.tables import parsed

LARGE_BYTES = 70e9  # memory of a card from which some engines take larger values


@dataclass(frozen=True)
class Defaults:
    """Of one release on one card; chunked None: the release is not known, and releases differ."""

    cap: int
    budget: int
    chunked: bool | None


@cache
def _table() -> tuple[dict[str, Any], ...]:
    catalog = files("stallwise.physics.specs") / "catalog" / "engine_defaults.toml"
    return tuple(parsed(catalog.read_text(encoding="utf-8"))["default"])


def defaults_of(engine: str, version: str, memory_bytes: float) -> Defaults:
    """The first entry whose release holds."""
    mine = [d for d in _table() if d["engine"] == engine]
    release = release_of(version)
    if release is None:
        chosen = next(d for d in mine if d.get("unstated"))
    else:
        chosen = next(d for d in mine if "before" not in d or release < tuple(d["before"]))
    large = "large_" if memory_bytes >= LARGE_BYTES and "large_cap" in chosen else ""
    same = len({d["chunked"] for d in mine}) == 1
    return Defaults(chosen[f"{large}cap"], chosen[f"{large}budget"], chosen["chunked"] if release or same else None)
