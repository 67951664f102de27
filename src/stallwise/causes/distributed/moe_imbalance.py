"""Some experts get many more tokens than others, and every rank waits for the busiest.

## What it means
The router sends tokens unevenly. The rank that holds the popular experts receives a multiple of the mean; the exchange
and the expert products of the whole group take as long as on that rank.

## Why it costs
Dispatch, expert compute and combine all end when the busiest rank is done. With twice the mean on one rank these take
about twice as long on all.

## What else looks so
A slow rank with an even share of tokens is a straggler. On one GPU uneven experts cost padding, not waiting. The
exchange itself may be slow with even tokens: then it is bound by the all-to-all.

## Fix
Balance the router (auxiliary loss or bias), cap with a capacity factor, replicate hot experts or place them apart, and
watch tokens per expert while training.

## How the gain is found
The time of the exchange with even tokens where a run shows it, else the busiest rank's share over the mean.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

UNEVEN = 1.3  # busiest over mean; random routing of thousands of tokens stays within a few percent
VERY = 2.0
CLUES = (
    Clue(
        (q.EXPERT_SPREAD,),
        lambda e: e.value(q.EXPERT_SPREAD) > UNEVEN,
        "decisive, needed",
        "tokens spread unevenly over experts",
        "tokens spread evenly",
    ),
)


@rule(q.EXPERT_SPREAD)
def moe_imbalance(evidence: Evidence) -> Finding | None:
    """The busiest rank or expert gets well over the mean."""
    spread = evidence.get(q.EXPERT_SPREAD)
    if spread is None or spread.number < UNEVEN:
        return None
    busiest = evidence.text(q.EXPERT_BUSIEST, "the busiest expert")
    took, even = evidence.get(q.DISPATCH_TIME), evidence.get(q.DISPATCH_BALANCED)
    because = [Reason.of(f"{busiest} gets {spread} the mean number of tokens", spread)]
    gain, worth = None, f"up to {spread.number:.1f}x on dispatch, experts and combine"
    if took and even and took.number > even.number:
        because.append(Reason.of(f"the exchange takes {took}; with even tokens {even}", took, even))
        worth = f"each exchange {took} -> {even}"
    shuffle = evidence.get(q.ALL_TO_ALL_TIME)
    if shuffle and shuffle.number > 0:
        top = shuffle.number * (1 - 1 / spread.number)
        gain = Gain(0.3 * top, top, "exchange time beyond that of even tokens")
    return Finding(
        headline=f"Experts are uneven: {busiest} gets {spread} the mean, and all wait for it.",
        confidence=min(0.7 + 0.2 * min((spread.number - 1) / (VERY - 1), 1.0) + (0.05 if took and even else 0.0), 0.95),
        because=tuple(because),
        category=Category.COMMUNICATION if gain else None,
        gain=gain,
        fixes=(
            Fix("Balance the router: auxiliary loss or per-expert bias", gain, worth=worth, cost="training time to settle",
                risk="too strong a loss hurts quality"),
            Fix("Replicate hot experts, or place them on different ranks", gain, worth=worth, cost="memory of the copies"),
            Fix("Cap tokens per expert (capacity factor)", worth=worth, risk="dropped tokens"),
        ),
        not_here=(Reason("equal exchange times on all ranks do not speak against it: all leave when the busiest is done"),),
        avoid="Tuning the network: the bytes go to one place.",
        next=(RANK_TRACES,),
        explains=("all-to-all-bound", "exposed-communication", "straggler-rank"),
    )  # fmt: skip
