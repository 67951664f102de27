"""What kinds of events mean in an incident (rules.tsv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stallwise.evidence.event import Event

ALL, ANY = "all", "any"  # domains
LAST_LAYER = 6  # of kinds without a row: consequences
PROCESS = 5
CLEARED = ("gpu", "mem")  # domains: a reboot clears what driver and programs hold, and neither cables, disks nor fans
BOOT = "machine-boot"
GROUP = 6  # from here on whatever one host has is felt by all
# Worth a row, no fault.
NOTICES = "clock-stepped resources-waiting nic-back storage-back node-back machine-boot thermal-event".split()
# A program's fault that one unit of one card repeats is the card's (NVSentinel: Xid 13 and 31 by GPC and TPC, in 24 h); on two
# cards within a minute it is the program's.
REPEATED_CODES, WITHIN_S, TOGETHER_S = ("13", "31"), 86400.0, 60.0
_CORRECTED = ("corrected", "ce", "logged")


@dataclass(frozen=True, slots=True)
class KindRule:
    """One row of the table."""

    kind: str
    place: int  # nearer to the root first
    layer: int = LAST_LAYER
    domain: str = ANY
    job: bool = False  # felt by the whole job, not only on its host
    owner: str = "your code"
    drain: bool = False
    cause: str = ""
    acts_s: float = 120.0  # within which it shows in the job
    late_s: float = 10.0  # by which its line may come after its first effect
    action: str = ""
    known: bool = True  # has a row

    def explains(self, other: KindRule) -> bool:
        """Whether the other may follow from it, by what they are."""
        return self.layer < other.layer and (self.domain == ALL or other.domain in (ANY, self.domain))


@cache
def _rules() -> dict[str, KindRule]:
    with Path(__file__).with_name("rules.tsv").open(newline="") as file:
        rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
    return {
        r["kind"]: KindRule(
            r["kind"], place, int(r["layer"]), r["domain"], r["reach"] == "job", r["owner"], bool(r["drain"]), r["cause"],
            float(r["acts_s"]), float(r["late_s"]), r["action"],
        )
        for place, r in enumerate(rows)
    }  # fmt: skip


def rule_of(kind: str) -> KindRule:
    """The rule of a kind; one without a row is a consequence."""
    return _rules().get(kind) or KindRule(kind, len(_rules()), known=False)


def kind_of(event: Event) -> str:
    """The event's kind, with the fault that its code stands for, or that it was corrected."""
    if event.word("severity").lower() in _CORRECTED:
        return f"{event.kind}.corrected"
    fault = next((str(v) for k, v in event.slots.items() if k == "code.fault"), "")
    return f"{event.kind}.{fault}" if event.kind == "driver-error" else event.kind
