"""The links are shared, and at times another's traffic leaves too little.

## What it means
The same transfer between the same places is fast at one moment and slow at another, while nothing on the GPUs changed.
Other traffic (a neighbour's job, storage, a saturated uplink) takes the rest.

## Why it costs
Collectives run at the rate of the slowest link they cross, so one congested uplink slows every rank.

## What else looks so
A fallback to plain sockets or a broken link is slow all the time. A late rank makes collectives long without the
network having any part in it. A throttled GPU slows kernels, not transfers.

## Fix
Find who else uses the links then (switch counters, the scheduler), place the job under one leaf, give training its own
network or class of traffic, spread flows over all rails.

## How the gain is found
The rate when alone against the rate now; for collectives the quick tenth against the slow tenth of equal ones.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_TESTS, RANK_TRACES, TOPOLOGY
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.catalog.fabric import ONE_NODE
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

FELL = 0.6  # of the earlier rate; repeated measurements of a quiet link agree within 10%
TOGETHER = 0.8  # own and neighbour's rate over the link's earlier rate: the link is full
VARIES = 2.0  # slow tenth over quick tenth of equal collectives


@rule()
def network_congestion(evidence: Evidence) -> Finding | None:
    """A link that fell while a neighbour drew on it, or equal collectives that vary with time."""
    return _measured_link(evidence) or _varying_collectives(evidence)


def _measured_link(evidence: Evidence) -> Finding | None:
    before, now = evidence.get(q.LINK_RATE_BEFORE), evidence.get(q.LINK_RATE_NOW)
    if not (before and now) or now.number > FELL * before.number:
        return None
    beside = evidence.get(q.NEIGHBOUR_RATE)
    full = beside is not None and now.number + beside.number > TOGETHER * before.number
    because = [Reason.of(f"the same link gave {before} and now gives {now}", before, now)]
    if beside is not None:
        because.append(Reason.of(f"at that moment another client draws {beside} from it", beside))
    return Finding(
        headline=f"The network is shared: the link fell from {before} to {now} while others used it."
        if full
        else f"The link fell from {before} to {now}.",
        confidence=0.93 if full else 0.6,
        because=tuple(because),
        fixes=_fixes(f"{before.number / now.number:.1f}x on that link"),
        avoid="Tuning the job: the same job was fast on the same link before.",
        next=(NCCL_TESTS, TOPOLOGY),
        explains=("exposed-communication",),
    )


def _varying_collectives(evidence: Evidence) -> Finding | None:
    spreads = [f for f in evidence.all(q.BANDWIDTH_SPREAD) if f.number >= VARIES]
    moving = evidence.get(q.MOVING_BYTES)
    if not spreads or moving is None or moving.number <= 0:
        return None
    worst = max(spreads, key=lambda f: f.number)
    gain = Gain(0.1 * moving.number, (1 - 1 / worst.number) * moving.number, "all at the rate of the quick tenth")
    return Finding(
        headline=f"Equal collectives take up to {worst} as long at some times as at others.",
        confidence=0.55,
        because=(
            Reason.of(f"waiting for ranks removed, equal collectives vary by {worst} ({worst.samples} of them)", worst),
        ),
        category=Category.COMMUNICATION,
        gain=gain,
        against=(Reason("compute kernels that share SMs or memory with the collective slow it too"),),
        fixes=_fixes("the slow ones at the rate of the quick ones"),
        avoid="Blaming a rank: all arrive in time.",
        next=(NCCL_TESTS, RANK_TRACES),
    )


def _fixes(worth: str) -> tuple[Fix, ...]:
    return (
        Fix("Find who else uses the link then: switch port counters, the scheduler's placement", worth=worth, cost="minutes"),
        Fix("Place the job under one leaf or rail group; keep other traffic off the training network", worth=worth, cost="a placement rule"),
        Fix("Spread flows over rails and paths (adaptive routing, more queue pairs)", cost="fabric settings"),
    )  # fmt: skip


# Links that carry too much, while only suspected.
CLUES = (
    yes(ONE_NODE, "forbids", "every rank is on one node: nothing goes over a network"),
    Clue(
        (q.LINK_RATE_BEFORE, q.LINK_RATE_NOW),
        lambda e: e.value(q.LINK_RATE_NOW) < FELL * e.value(q.LINK_RATE_BEFORE),
        "strong",
        "the same link gives less than before",
        "the link gives what it gave before",
    ),
    Clue(
        (q.NEIGHBOUR_RATE,),
        lambda e: True,
        "fair when seen",
        "another job draws on the same link at that moment",
    ),
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
