"""Numbers of the command line are numbers of this world: others are refused before any formula meets them."""

from __future__ import annotations

import math
from typing import Any

import click

LARGEST = 1e30  # beyond the operations of any training run; products and squares of such numbers are still numbers


class Finite(click.types.FloatParamType):
    """A float that can be reckoned with."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found) or abs(found) > LARGEST:
            self.fail(f"{value!r} is no number to reckon with.", param, ctx)
        return found


def finite(command: click.Command) -> click.Command:
    """The same command, with every plain float of its options finite and of a size that exists."""
    for param in command.params:
        if type(param.type) is click.types.FloatParamType:
            param.type = Finite()
    return command
