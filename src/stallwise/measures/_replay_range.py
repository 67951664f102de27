"""How far the host's time lies off in another run of the same job: of an account as of the gain that empties it.

A trace shows one run of a host whose speed differs from run to run, and what recording cost it is an estimate. An account and
the gain of the change that takes it away are one truth, so they have one range, that of fixes measured against their replays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallwise.costs.gain_doubt import doubt_of
from stallwise.evidence.ledger import Account

EMPTIES = {
    Account.INPUT_WAIT: "no-input-wait",
    Account.LAUNCH_GAP: "graphs",
    Account.HOST_WAIT: "no-host-work",
    Account.COPY: "copies-ahead",
    Account.CHECKPOINT: "no-save",
}
OF_THE_DEVICE = (Account.COMPUTE, Account.COMMUNICATION, Account.COPY)


def range_s(seconds: float, change: str) -> tuple[float, float]:
    """The ends of what this change wins."""
    low, high = doubt_of(change)
    return low * seconds, high * seconds


# Changes that leave the device all its work.
SPARES_THE_HOST = ("no-input-wait", "no-sync", "graphs", "no-allocation", "no-save", "no-host-work")


def won_range_s(won_s: float, changes: Sequence[str], longest_s: float, busy_s: float) -> tuple[float, float]:
    """The ends of a replayed gain, in a step of at most `longest_s`.

    Whatever the host is spared, the device's work stays. Of less work on the device half of what the replay leaves stays: what is
    left is doubted twofold at most, as what is won.
    """
    each = [range_s(won_s, change) for change in changes]
    spared = all(c in SPARES_THE_HOST for c in changes)
    most = max(won_s, longest_s - busy_s if spared else (longest_s + won_s) / 2)
    return min(min(low for low, _ in each), most), min(max(high for _, high in each), most)


def ranges_of(seconds: Mapping[Account, float], longest_s: float | None = None) -> dict[Account, tuple[float, float]]:
    """The ends of every account that the host fills; its own seconds lie between them, and the device's stay what they are.

    None holds more than all of the host's time, in the longest step that this may be.
    """
    found = {}
    longer_s = max((longest_s or 0.0) - sum(seconds.values()), 0.0)
    room = longer_s + sum(s for account, s in seconds.items() if account not in OF_THE_DEVICE)
    for account, change in EMPTIES.items():
        held = seconds.get(account, 0.0)
        if held > 0:
            low, high = range_s(held, change)
            most = room + (held if account in OF_THE_DEVICE else 0.0)
            found[account] = (min(low, held), max(min(high, most), held))
    return found
