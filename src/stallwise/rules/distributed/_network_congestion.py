"""Links that carry too much, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import NCCL_TESTS, TOPOLOGY
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import yes
from stallwise.findings.finding import Finding, Fix, Reason

CLUES = (
    yes(
        stated.LINK_DOWN, "strong when seen", "a rail or link is down: the others carry its traffic", "all links are up"
    ),
    yes(stated.FABRIC_HEALTHY, "against", "the fabric was checked and is fine", "the fabric is not fine"),
    yes(stated.IN_GRADIENT_SYNC, "fair", "the time is lost in the exchange", "the time is not lost in the exchange"),
    yes(
        stated.GPU_BUSY_UNCHANGED,
        "against",
        "the host keeps the GPU waiting",
        "the GPUs wait in collectives or work longer",
    ),
)

EVEN, TWICE = 8 / 7, 2.0  # one of eight rails gone, where nobody has worked it out


def advise(evidence: Evidence) -> Finding:
    """A rail that is gone is constant and has an address; congestion comes and goes with what others send."""
    down = evidence.get(stated.LINK_DOWN)
    dead = down is not None and down.number > 0
    spread, pinned = evidence.value(expected.RAIL_SPREAD, EVEN), evidence.value(expected.RAIL_PINNED, TWICE)
    constant = Reason(
        f"of eight rails one gone costs every exchange {spread:.2f}x spread evenly, {pinned:.0f}x where rings are pinned to rails; constant from "
        "one step on. Congestion moves with the hour and the neighbours"
    )
    if not dead:
        return Finding(
            headline="The network carries too much: exchanges take longer than the links need, now and then.",
            confidence=0.0,
            because=(),
            summary="Shared switches, several flows on one uplink, storage on the same links: the factor moves with what others send.",
            fixes=(
                Fix("Measure the same collective on these nodes at two times of the day", worth="tells congestion from a broken link", cost="minutes", risk="none"),
                Fix("Adaptive routing, and placement under as few leaf switches as possible", worth="most of the wait where flows collide", cost="the fabric's owner", risk="fragments the cluster"),
                Fix("Overlap the exchange with backward, and exchange less often", worth="what overlaps is not felt", cost="buckets, a larger batch", risk="convergence"),
            ),
            avoid="Changing NCCL's algorithm first: no algorithm makes a shared link wider.",
            next=(NCCL_TESTS, TOPOLOGY),
        )  # fmt: skip
    return Finding(
        headline="A rail or link is down: the others carry its traffic, in every exchange.",
        confidence=0.0,
        because=(constant,),
        summary="Not congestion: nobody else has to send anything for it, and it does not pass by itself.",
        fixes=(
            Fix("Find the port: ibstat and its error counters node by node, then replug or replace cable, transceiver or card",
                worth=f"{1 - 1 / spread:.0%} to {1 - 1 / pinned:.0%} of the exchange time", cost="a drained node", risk="none"),
            Fix("Take the node out until then: one node's rail paces all rings", worth="the same, at once", cost="a node less", risk="a restart"),
            Fix("Let traffic spread: NCCL_CROSS_NIC=1, no rings pinned to rails", worth=f"{pinned:.0f}x down to {spread:.2f}x", cost="a setting", risk="more hops between rails"),
        ),
        avoid="Waiting for a quieter hour, or adaptive routing: a dead link stays dead.",
        next=(NCCL_TESTS, TOPOLOGY),
    )  # fmt: skip
