"""The fitted constants that ship: one set from all published runs, and one per publisher fitted without it.

`bench/fit_constants.py` writes the file. Validation predicts every publisher with the set that never saw it; all
releases and tables of one publisher are one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stallwise.physics.costs.constants import NAMES, PRIORS, Array
from stallwise.tables import parsed


@cache
def table() -> dict[str, Any]:
    """The whole file."""
    path = Path(__file__).parent / "measured" / "constants.toml"
    return parsed(path.read_text(encoding="utf-8"))


def _vector(values: dict[str, float]) -> Array:
    return np.array([float(values.get(name, PRIORS[name].value)) for name in NAMES])


@cache
def constants() -> Array:
    """The set fitted on everything published."""
    return _vector(table()["all"])


@cache
def constants_without(publisher: str) -> Array:
    """The set that never saw this publisher; the full one when the publisher is new to us."""
    return _vector(table().get("without", {}).get(publisher, table()["all"]))


def known_publishers() -> tuple[str, ...]:
    """Publishers the shipped constants were fitted on."""
    return tuple(table().get("without", {}))


def publisher_of(source: str) -> str:
    """Who published a run: the first word of its source, so that releases, tables and figures are one."""
    words = source.split()
    return words[0] if words else ""
