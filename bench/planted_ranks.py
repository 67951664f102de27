"""Faults planted in simulated jobs of many workers: how often the first cause is right, and how far costs are off.

    python bench/planted_ranks.py [COUNT] [FIRST_SEED]

DP 2-32, PP 1-16, TP 1-8, all schedules, one to three faults each (worker, stage, sequence, link, gc), with and without recorded sends,
on one clock or on several.
The operation table goes through measures and rules as that of a file would.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from tests.sim.job.planted import LABELS, WORKS, columns, costs, random_plan  # noqa: E402

from stallwise.doctor.examine import examine  # noqa: E402
from stallwise.evidence.evidence import Evidence  # noqa: E402
from stallwise.evidence.fact import Source, Table  # noqa: E402
from stallwise.evidence.operations import KIND  # noqa: E402

CAUSE = {"worker": "straggler-rank", "stage": "pipeline-stage-imbalance", "sequence": "sequence-length-imbalance",
         "link": "pipeline-p2p-latency", "gc": "python-gc-pauses"}  # fmt: skip
PRICED = {"worker": "worker", "stage": "stage", "sequence": "sequence", "link": "link", "gc": "pause"}
CLOSE = 0.1


def main(count: int, first_seed: int) -> None:
    """Prints every miss, and the two shares."""
    right, close, every = 0, Counter[str](), Counter[str]()
    for seed in range(first_seed, first_seed + count):
        plan = random_plan(seed)
        evidence = Evidence(inputs=["planted"], formats=["table of operations"])
        meta = {"labels": list(LABELS), "works": [int(w) for w in WORKS]}
        evidence.add([Table(KIND, columns(plan), Source("planted"), meta=meta)])
        answer, true = examine(evidence), costs(plan)
        job = evidence.table("job.attribution")
        got = {f["kind"]: f["cost_s"] for f in job[0].meta["faults"]} if job else {}
        worst = max(true, key=lambda kind: true[kind])
        is_right = bool(answer.ranked) and answer.ranked[0] == CAUSE[worst]
        right += is_right
        off = {kind: got.get(PRICED[kind], 0.0) / cost - 1 for kind, cost in true.items()}
        every.update(true.keys())
        close.update(kind for kind in true if abs(off[kind]) <= CLOSE)
        if not is_right or any(abs(x) > CLOSE for x in off.values()):
            shape = (
                f"{plan.schedule} DP {plan.replicas} PP {plan.stages} TP {plan.tensor} microbatches {plan.microbatches}"
            )
            said = "" if is_right else f"; first {answer.ranked[:1]} instead of {CAUSE[worst]}"
            print(f"{seed}: {shape}: " + ", ".join(f"{k} {x:+.0%}" for k, x in off.items()) + said, flush=True)
    print(f"first cause right: {right} of {count} ({right / count:.1%})")
    print(f"cost within 10%: {close.total()} of {every.total()} ({close.total() / every.total():.1%})")
    print("by kind: " + ", ".join(f"{kind} {close[kind]} of {every[kind]}" for kind in every))


if __name__ == "__main__":
    main(*(int(x) for x in (sys.argv[1:] + ["200", "0"][len(sys.argv) - 1 :])[:2]))
