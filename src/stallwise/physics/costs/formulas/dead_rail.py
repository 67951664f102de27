"""A dead rail slows every exchange by the same factor for good; congestion slows some of them, by how much others send.

With rings pinned to rails a neighbour carries two and the slowest ring paces all; spread evenly only one part in r is lost.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "spread: r / (r - 1)    pinned: 2    time with exposed share e: (1 - e) + e x factor"
SOURCE = "Arithmetic of rails; NCCL's channels are bound to network cards by its topology search."
FOLK = """
"The network is congested" fits a factor that moves with the hour and with what neighbours do. A factor that is constant from one
step on, and lies near r/(r-1) or 2, is a card or a rail that is gone: look at the port's state and its counters, node by node.
"""
UNITS = {
    "rails": Unit.COUNT, "exposed_share": Unit.SHARE, "spread_ratio": Unit.RATIO, "pinned_ratio": Unit.RATIO,
    "step_spread_ratio": Unit.RATIO, "step_pinned_ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(rails: int = 8, exposed_share: float = 0.25) -> dict[str, float]:
    """How much longer exchanges and steps take with one rail of a node gone."""
    spread, pinned = rails / (rails - 1), 2.0
    return {
        "spread_ratio": spread, "pinned_ratio": pinned,
        "step_spread_ratio": 1 - exposed_share + exposed_share * spread,
        "step_pinned_ratio": 1 - exposed_share + exposed_share * pinned,
    }  # fmt: skip
