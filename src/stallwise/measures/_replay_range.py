"""How far the host's time lies off in another run of the same job: of an account as of the gain that empties it.

A trace shows one run of a host whose speed differs from run to run, and what recording cost it is an estimate. Fixes measured
on an H200 (bench/gpu/record_clean_and_traced.py and its like) won between these parts of what the replay said. An account
and the gain of the change that takes it away are one truth, so they have one range.
"""

from __future__ import annotations

from collections.abc import Mapping

from stallwise.evidence.ledger import Account

LOW, HIGH = 0.8, 1.15
LOW_OF = {"graphs": 0.6}  # what cannot be captured stays
OF_THE_HOST = (Account.INPUT_WAIT, Account.LAUNCH_GAP, Account.HOST_WAIT, Account.COPY, Account.CHECKPOINT)


def range_s(seconds: float, change: str = "") -> tuple[float, float]:
    """The ends for this much of the host's time, or for what this change wins of it."""
    return LOW_OF.get(change, LOW) * seconds, HIGH * seconds


def ranges_of(seconds: Mapping[Account, float]) -> dict[Account, tuple[float, float]]:
    """The ends of every account that the host fills."""
    return {account: range_s(seconds[account]) for account in OF_THE_HOST if seconds.get(account, 0.0) > 0}
