"""How far the host's time lies off in another run of the same job: of an account as of the gain that empties it.

A trace shows one run of a host whose speed differs from run to run, and what recording cost it is an estimate. Fixes measured
on an H200 (bench/gpu/record_clean_and_traced.py and its like) won between these parts of what the replay said. An account
and the gain of the change that takes it away are one truth, so they have one range.
"""

from __future__ import annotations

from collections.abc import Mapping

from stallwise.evidence.ledger import Account

WAITING = (0.8, 1.15)
LAUNCHING = (0.7, 1.4)  # operators and calls into the driver: where recording costs most, and hosts differ most
OF_ACCOUNT = {
    Account.INPUT_WAIT: WAITING,
    Account.LAUNCH_GAP: LAUNCHING,
    Account.HOST_WAIT: WAITING,
    Account.COPY: WAITING,
    Account.CHECKPOINT: WAITING,
}
OF_CHANGE = dict.fromkeys(("graphs", "fused-optimizer", "no-allocation", "no-sync"), LAUNCHING)


def range_s(seconds: float, change: str) -> tuple[float, float]:
    """The ends of what this change wins."""
    low, high = OF_CHANGE.get(change, WAITING)
    return low * seconds, high * seconds


def ranges_of(seconds: Mapping[Account, float]) -> dict[Account, tuple[float, float]]:
    """The ends of every account that the host fills."""
    filled = {a: ends for a, ends in OF_ACCOUNT.items() if seconds.get(a, 0.0) > 0}
    return {account: (low * seconds[account], high * seconds[account]) for account, (low, high) in filled.items()}
