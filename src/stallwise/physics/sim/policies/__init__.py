"""Scheduling policies of continuous batching: one per file, found by walking this package.

A policy module has NAME and `plan(server) -> Plan`: which prompts to prefill in the next iteration, how many tokens of
each, and whether running requests decode in it too. It admits through `server.admit` and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from stallwise.errors import BadRequest
from stallwise.physics.sim.requests import Request

if TYPE_CHECKING:
    from stallwise.physics.sim.serving import Server


@dataclass(frozen=True, slots=True)
class Plan:
    """The next iteration."""

    prefill: tuple[tuple[Request, int], ...] = ()
    decode: bool = True


Planner = Callable[["Server"], Plan]


@cache
def policies() -> dict[str, Planner]:
    """Every policy by name."""
    found: dict[str, Planner] = {}
    for module in iter_modules(__path__):
        loaded = import_module(f"{__name__}.{module.name}")
        found[loaded.NAME] = loaded.plan
    return found


def policy_named(name: str) -> Planner:
    """The policy of this name, or an error that names them all."""
    if name not in policies():
        raise BadRequest(f"no scheduling policy is called '{name}'", hint="one of " + ", ".join(policies()))
    return policies()[name]
