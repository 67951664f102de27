"""How far the host's time lies off in another run of the same job: of an account as of the gain that empties it.

A trace shows one run of a host whose speed differs from run to run, and what recording cost it is an estimate. An account and
the gain of the change that takes it away are one truth, so they have one range, that of fixes measured against their replays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from stallwise.evidence.ledger import Category
from stallwise.physics.costs.gain_doubt import WIDEST_RATIO, doubt_of

EMPTIES = {
    Category.INPUT_WAIT: "no-input-wait",
    Category.LAUNCH_GAP: "graphs",
    Category.HOST_WAIT: "no-host-work",
    Category.COPY: "copies-ahead",
    Category.CHECKPOINT: "no-save",
}
OF_THE_DEVICE = (Category.COMPUTE, Category.COMMUNICATION, Category.COPY)


def range_s(seconds: float, change: str) -> tuple[float, float]:
    """The ends of what this change wins."""
    low, high = doubt_of(change)
    return low * seconds, high * seconds


HOST_STAYS = 0.3  # at least, of what a replay leaves of a step whose host is spared something: measured, 0.34 to 1.3
# Changes that leave the device all its work, and changes of that work alone.
SPARES_THE_HOST = ("no-input-wait", "no-sync", "graphs", "no-allocation", "no-save", "no-host-work")
OF_THE_WORK = ("fuse", "dtype", "no-recompute", "fused-attention", "aligned", "channels-last")


def won_range_s(won_s: float, changes: Sequence[str], step_s: float, busy_s: float) -> tuple[float, float]:
    """The ends of a replayed gain.

    Of the device's work, neither what goes nor what stays is promised wider than twofold. Of a small gain the first says more, of a
    large one the second: changed work still takes its time at the faster rate, and the rest stays. Whatever the host is spared,
    the device's work stays, and so does some of the host's: no gain is larger than the time it removes.
    """
    each = [range_s(won_s, change) for change in changes]
    low, high = min(low for low, _ in each), max(high for _, high in each)
    left_s = max(step_s - won_s, 0.0)
    if all(c in OF_THE_WORK for c in changes):
        part = sqrt(WIDEST_RATIO)
        return min(max(low, step_s - left_s * part), won_s), max(min(high, step_s - left_s / part), won_s)
    most = step_s
    if all(c in SPARES_THE_HOST for c in changes):
        # The host's time itself differs from run to run, so that less may go though as much stays; much more cannot.
        most = min(step_s - busy_s, step_s - HOST_STAYS * left_s)
    return min(low, max(won_s, most)), min(high, max(won_s, most))


def ranges_of(seconds: Mapping[Category, float]) -> dict[Category, tuple[float, float]]:
    """The ends of every account that the host fills; its own seconds lie between them, and the device's stay what they are.

    None holds more than all of the host's time in this step.
    """
    found = {}
    room = sum(s for category, s in seconds.items() if category not in OF_THE_DEVICE)
    for category, change in EMPTIES.items():
        held = seconds.get(category, 0.0)
        if held > 0:
            low, high = range_s(held, change)
            most = room + (held if category in OF_THE_DEVICE else 0.0)
            found[category] = (min(low, held), max(min(high, most), held))
    return found
