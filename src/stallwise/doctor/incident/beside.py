"""What stands beside the events: what the watchdogs of several ranks say together, and cards that are hot and draw little."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from stallwise.doctor.findings.incident import Part, Row
from stallwise.doctor.measures._watchdog import Waiting, waiting
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.evidence.gpu_load import LOADED_SHARE
from stallwise.late import np

NETWORK = ("verbs-completion-error", "nic-event", "address-unreachable")
NO_MISMATCH = "; with a network error beside it this is no mismatch of the code"
SAMPLES = "gpu.samples"
HOT_C = 85.0  # data-centre cards slow down from 85 to 90 C on
LITTLE = 0.5  # of the power limit, while busy: heat with little power is cooling that fails
NEEDED = ("temperature_c", "power_w")


def hang_words(evidence: Evidence) -> dict[Source, str]:
    """A sentence for the watchdog's line of each rank that differs from the furthest one of its group."""
    groups: dict[str, list[Waiting]] = defaultdict(list)
    for one in waiting(evidence):
        if one.sequence >= 0:
            groups[one.group].append(one)
    network = bool(evidence.events_of(*NETWORK))
    found: dict[Source, str] = {}
    for ranks in groups.values():
        furthest = max(r.sequence for r in ranks)
        for one in ranks:
            says = _says(one, furthest)
            if says and len(ranks) > 1:
                found[one.source] = f"watchdog: rank {one.rank} {says}" + (
                    NO_MISMATCH if network and one.sequence < furthest else ""
                )
    timed_out = {e.scope.rank for e in evidence.events_of("collective-timeout")}
    for event in evidence.events_of("collective-timeout-signal"):
        if event.scope.rank not in timed_out and event.number("origin", event.number("origin_")) in timed_out:
            by = int(event.number("origin", event.number("origin_")))
            found[event.source] = (
                f"watchdog: rank {event.scope.rank} was told to dump by rank {by}; it timed out nowhere itself"
            )
    return found


def _says(one: Waiting, furthest: int) -> str:
    behind = furthest - one.sequence
    if behind > 0:
        return f"is {behind} collective{'s' if behind > 1 else ''} behind ({one.op or 'collective'} {one.sequence} of {furthest})"
    if one.enqueued >= 0 and one.enqueued == one.completed:
        return f"never entered collective {one.sequence}: all it enqueued is completed"
    return ""


def hot_cards(evidence: Evidence, hosts: Mapping[str, str]) -> Iterator[Row]:
    """A notice for each such card, with its numbers."""
    for table in evidence.table(SAMPLES):
        columns = table.columns
        if any(name not in columns for name in NEEDED):
            continue
        limit = columns.get("power_limit_w", np.full(len(table), np.nan))
        busy = columns.get("utilisation_share", np.ones(len(table))) >= LOADED_SHARE
        bad = np.flatnonzero((columns["temperature_c"] >= HOT_C) & (columns["power_w"] < LITTLE * limit) & busy)
        if len(bad):
            at = int(bad[0])
            says = (
                f"GPU {table.scope.gpu} runs at {columns['temperature_c'][at]:.0f} C and {columns['power_w'][at]:.0f} of "
                f"{limit[at]:.0f} W while busy: throttled"
            )
            host = table.scope.node or hosts.get(table.source.file, "")
            yield Row(Part.NOTICE, "hot-card", says, table.source, "", host=host, times=len(bad))
