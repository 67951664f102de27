"""What the driver's error codes (Xid) mean, whose fault they usually are, and what to do.

Facts from NVIDIA's "XID Errors" guide and catalogue (docs.nvidia.com/deploy/xid-errors), in our own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fault(Enum):
    """Where the trouble usually lies."""

    BUS = "the GPU, its power, its slot or its firmware"
    MEMORY = "GPU memory"
    NVLINK = "NVLink or NVSwitch"
    APPLICATION = "software: the program, a library or the driver"
    CONSEQUENCE = "nothing of its own: follows another error"
    OTHER = "unclear without more evidence"


@dataclass(frozen=True, slots=True)
class Xid:
    """One code."""

    meaning: str
    fault: Fault
    action: str


_RESTART = "restart the program; if one GPU repeats it under different programs, test that GPU"
_RESET = "drain the node, reset the GPU or reboot; return the card if it comes back"
_LINK = "drain the node, reboot, check the fabric manager; return the part if the same link repeats"

CODES: dict[int, Xid] = {
    8: Xid("the GPU stopped answering a program", Fault.OTHER, _RESTART),
    13: Xid("a kernel raised an exception, often an index out of bounds", Fault.APPLICATION, _RESTART),
    31: Xid("a program touched an address that is not mapped", Fault.APPLICATION, _RESTART),
    32: Xid("a broken command buffer", Fault.APPLICATION, _RESTART),
    38: Xid("a driver firmware error", Fault.OTHER, "update the driver"),
    43: Xid("a program's channel stopped after its own error", Fault.APPLICATION, _RESTART),
    44: Xid("a fault while switching contexts", Fault.OTHER, _RESET),
    45: Xid("the driver cleans up a program's channels", Fault.CONSEQUENCE, "look for the error before it"),
    46: Xid("the GPU stopped processing", Fault.BUS, _RESET),
    48: Xid("a double-bit memory error", Fault.MEMORY, _RESET),
    61: Xid("the GPU's internal controller halted", Fault.BUS, _RESET),
    62: Xid("the GPU's internal controller halted", Fault.BUS, _RESET),
    63: Xid("a memory row or page was marked for replacement", Fault.MEMORY, "reset the GPU so the remap takes effect"),
    64: Xid("a memory row or page could not be replaced", Fault.MEMORY, "return the card"),
    68: Xid("a video decoder exception", Fault.APPLICATION, _RESTART),
    69: Xid("a kernel raised an exception in a graphics class", Fault.APPLICATION, _RESTART),
    74: Xid("an NVLink error", Fault.NVLINK, _LINK),
    79: Xid("the GPU has fallen off the bus", Fault.BUS, "power-cycle; check power, seating, heat and riser"),
    92: Xid("correctable memory errors at a high rate", Fault.MEMORY, _RESET),
    93: Xid("a non-fatal violation of inforom wear", Fault.OTHER, _RESET),
    94: Xid("a memory error contained to one program", Fault.MEMORY, "restart the program; reset the GPU when drained"),
    95: Xid("a memory error that could not be contained", Fault.MEMORY, _RESET),
    109: Xid("a context switch timed out", Fault.OTHER, _RESET),
    110: Xid("a security fault", Fault.OTHER, _RESET),
    119: Xid("the GPU's system processor (GSP) does not answer", Fault.BUS, _RESET),
    120: Xid("the GPU's system processor (GSP) failed", Fault.BUS, _RESET),
    121: Xid("an error on the chip-to-chip link", Fault.NVLINK, _RESET),
    122: Xid("the GPU's flash memory failed", Fault.BUS, _RESET),
    123: Xid("the GPU's power unit failed to answer", Fault.BUS, _RESET),
    136: Xid("an NVLink failed to train", Fault.NVLINK, _LINK),
    137: Xid("a peer's NVLink access was refused", Fault.NVLINK, _LINK),
    140: Xid("memory errors that were not recovered", Fault.MEMORY, _RESET),
    143: Xid("the GPU failed to initialise", Fault.BUS, _RESET),
    **{code: Xid("an NVLink error inside the link logic", Fault.NVLINK, _LINK) for code in range(144, 151)},
    154: Xid("the driver says which recovery the GPU needs", Fault.CONSEQUENCE, "do what it says"),
    155: Xid("an NVLink went down", Fault.NVLINK, _LINK),
    156: Xid("part of the GPU was retired", Fault.MEMORY, _RESET),
    157: Xid("part of the GPU could not be retired", Fault.MEMORY, "return the card"),
    158: Xid("the GPU timed out fatally", Fault.BUS, _RESET),
    160: Xid("a memory channel was retired", Fault.MEMORY, _RESET),
    161: Xid("a memory channel could not be retired", Fault.MEMORY, "return the card"),
    171: Xid("a memory error that cannot be corrected (DRAM)", Fault.MEMORY, _RESET),
    172: Xid("a memory error that cannot be corrected (SRAM)", Fault.MEMORY, _RESET),
}  # fmt: skip
UNKNOWN = Xid("a driver error", Fault.OTHER, "look it up in NVIDIA's Xid catalogue")


def xid(code: int) -> Xid:
    """The entry of this code; a neutral one for codes we do not know."""
    return CODES.get(code, UNKNOWN)
