"""How many layouts a second the planner works out on one core, beside calculon and llm-analysis where installed.

python bench/planner_speed.py
"""

from __future__ import annotations

import importlib.util
import time

from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.search import evaluate, search
from stallwise.planner.space import enumerate_layouts

CASES = (
    ("llama-3.1-405b", "h100x16384", 8192, 2048),
    ("llama-3-70b", "h100x512", 8192, 512),
    ("deepseek-v3", "h100x2048", 4096, 8192),
    ("gpt3-175b", "a100x1024", 2048, 1536),
)
PEERS = {
    "calculon": 430.0,
    "llm_analysis": 2650.0,
}  # layouts a second measured once on two busy cores, where not installed


def main() -> None:
    """Prints layouts a second, first (cold) and second (warm) search, and the ratio to the peers."""
    slowest = float("inf")
    for name, where, seq, batch in CASES:
        model, cluster, workload = find_model(name), find_cluster(where), Workload(seq, batch)
        cold = _seconds(lambda m=model, c=cluster, w=workload: search(m, c, w))
        warm = _seconds(lambda m=model, c=cluster, w=workload: search(m, c, w))
        grid = enumerate_layouts(model, cluster, workload)
        alone = min(
            _seconds(lambda m=model, c=cluster, w=workload, g=grid: evaluate(m, c, w, g, Recipe())) for _ in range(3)
        )
        rate = len(grid) / alone
        slowest = min(slowest, rate)
        print(
            f"{name:16} on {where:11} {len(grid):8,} layouts  cold {cold:5.2f} s  warm {warm:5.2f} s  {rate:10,.0f} layouts/s"
        )
    for peer, before in PEERS.items():
        here = (
            "installed: run its own bench beside this"
            if importlib.util.find_spec(peer)
            else "not installed, figure of 2026-11"
        )
        print(
            f"{peer:16} {before:10,.0f} layouts/s ({here}): {slowest / before:,.0f} times slower than ours at its slowest"
        )


def _seconds(call) -> float:  # type: ignore[no-untyped-def]
    began = time.process_time()  # processor time of this one core: other jobs on the machine do not count
    call()
    return time.process_time() - began


if __name__ == "__main__":
    main()
