"""The fitted constants that ship: one set from all published runs, and one per source fitted without that source.

`bench/fit_constants.py` writes the file. Validation predicts every source with the set that never saw it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from stallwise.costs.constants import NAMES, PRIORS, Array

# Half-width of the 90% interval of a step's time as a factor, by kind of run: 90th percentile of the absolute log error
# over published runs, each predicted with its source left out.
SPREAD = {"dense-bf16": 1.155, "dense-fp8": 1.175, "moe": 1.42}
# The same once one measured step of the same model on the same GPUs has moved the constants (pairs within a source:
# the mean error falls from 7% to 5%, 90% lie within these).
CALIBRATED_SPREAD = {"dense-bf16": 1.125, "dense-fp8": 1.125, "moe": 1.25}


@cache
def _file() -> dict[str, Any]:
    path = files("stallwise.costs") / "measured" / "constants.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"all": {}}


def _vector(table: dict[str, float]) -> Array:
    return np.array([float(table.get(name, PRIORS[name].value)) for name in NAMES])


@cache
def constants() -> Array:
    """The set fitted on everything published."""
    return _vector(_file()["all"])


@cache
def constants_without(source: str) -> Array:
    """The set that never saw this source; the full one when the source is new to us."""
    return _vector(_file().get("without", {}).get(source, _file()["all"]))


def known_sources() -> tuple[str, ...]:
    """Sources the shipped constants were fitted on."""
    return tuple(_file().get("without", {}))
