"""What a pipeline schedule is: for every device, the passes it runs, in order.

A schedule is pure data. Virtual stages are numbered along the model; a device may own several of them. A microbatch
follows one route through the virtual stages (DualPipe has two routes, one from each end).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Pass(Enum):
    """A piece of one microbatch's work on one virtual stage."""

    FORWARD = "F"
    INPUT_GRAD = "B"  # the half of backward that the previous stage waits for
    WEIGHT_GRAD = "W"  # the half that nobody waits for
    BACKWARD = "BW"  # both halves in one go


class Op(NamedTuple):
    """One pass of one microbatch on one virtual stage."""

    kind: Pass
    microbatch: int
    stage: int


Slot = tuple[Op, ...]  # one op, or two that run together (DualPipe overlaps a forward with a backward)


@dataclass(frozen=True, slots=True)
class Program:
    """The whole schedule of one step."""

    schedule: str
    devices: tuple[tuple[Slot, ...], ...]
    device_of: tuple[int, ...]  # virtual stage -> device
    routes: tuple[tuple[int, ...], ...]  # virtual stages in the order a microbatch passes them
    route_of: tuple[int, ...]  # microbatch -> route

    @property
    def microbatches(self) -> int:
        """How many there are."""
        return len(self.route_of)

    @property
    def stages(self) -> int:
        """Virtual stages."""
        return len(self.device_of)


def linear(schedule: str, orders: Sequence[Sequence[Op]], device_of: Sequence[int], microbatches: int) -> Program:
    """A program in which every microbatch passes all virtual stages from first to last."""
    return Program(
        schedule=schedule,
        devices=tuple(tuple((op,) for op in order) for order in orders),
        device_of=tuple(device_of),
        routes=(tuple(range(len(device_of))),),
        route_of=(0,) * microbatches,
    )


def one_each(devices: int) -> tuple[int, ...]:
    """One stage per device."""
    return tuple(range(devices))


def round_robin(devices: int, chunks: int) -> tuple[int, ...]:
    """Interleaved: stage s on device s mod p."""
    return tuple(s % devices for s in range(devices * chunks))


def v_shape(devices: int) -> tuple[int, ...]:
    """Down and back up: the first and the last stage share device 0."""
    return (*range(devices), *reversed(range(devices)))
