"""The profiler's own cost: with a clean step time known, the host's part of the traced step is scaled back to it."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.evidence.ledger import Account, Ledger

ORDER = 6
# What the profiler inflates, in the order in which its cost is taken back: launching first, then its own pauses, then
# other host time. Device time is not touched.
INFLATED = (Account.LAUNCH_GAP, Account.OTHER, Account.HOST_WAIT)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """A corrected ledger and step time, next to the traced ones."""
    clean, traced = evidence.get(catalog.CLEAN_STEP), evidence.get(catalog.STEP_TIME)
    ledger = min(reversed(evidence.ledgers), key=lambda x: len(x.scope.to_dict()), default=None)
    if traced is None or ledger is None:
        return
    yield Fact(catalog.TRACED_STEP, traced.number, traced.source, traced.scope, traced.samples)
    if clean is None or clean.number <= 0:
        return
    excess = ledger.whole_s - clean.number
    if excess <= 0:
        text = f"the clean step is longer than the traced one ({clean} against {traced}): the traced loop waits less"
        yield Note(text, clean.source)
        return
    seconds = dict(ledger.seconds)
    for account in INFLATED:
        taken = min(excess, seconds.get(account, 0.0))
        seconds[account] = seconds.get(account, 0.0) - taken
        excess -= taken
    source = Source(ledger.source.file, f"{ledger.source.where}, corrected to the clean step")
    corrected = Ledger(seconds, source, ledger.scope, ledger.samples, ledger.unit)
    yield corrected
    yield Fact(catalog.STEP_TIME, corrected.whole_s, source, ledger.scope, ledger.samples)
    gap = seconds.get(Account.LAUNCH_GAP, 0.0)
    yield Fact(catalog.LAUNCH_WAIT, gap, source, ledger.scope, ledger.samples)
    yield Fact(catalog.LAUNCH_WAIT_UNTRACED, gap, source, ledger.scope, ledger.samples, gap, gap)
    if excess > 0:
        yield Note(
            "the clean step is shorter than the device's own time in the trace: other shapes or clocks?", clean.source
        )
