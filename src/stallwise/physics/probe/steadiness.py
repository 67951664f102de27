"""Whether a machine was quiet enough for its readings to be its ceilings."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stallwise.physics.probe.reading import Reading

# Repeats on a quiet machine differ by 1 to 4% (H200: 0 to 2%); beyond this somebody else had the cores, the memory or the clock.
MOST_SPREAD_SHARE = 0.10


def load_now() -> tuple[float, int]:
    """Programs that want a core, as a mean over the last minute, and the cores of the machine."""
    try:
        return os.getloadavg()[0], os.cpu_count() or 1
    except (OSError, AttributeError):  # no such number on this system
        return 0.0, os.cpu_count() or 1


def doubts(readings: Sequence[Reading], load: float, cores: int) -> list[str]:
    """Why these readings are not this machine's ceilings; empty where they are."""
    found = [f"the load average is {load:.1f} on {cores} cores"] if load > cores else []
    unsteady = [r for r in readings if r.spread_share > MOST_SPREAD_SHARE]
    return found + [f"repeats of {r.name} differ by ±{r.spread_share:.0%}" for r in unsteady]
