"""How fast the serving simulator and the sizing search are, and what a million requests take of memory.

python bench/serving_speed.py [REQUESTS]
"""

from __future__ import annotations

import resource
import sys
import time

from stallwise.physics.sim.requests import Traffic, fixed, lognormal, poisson
from stallwise.physics.sim.service import Settings, simulate
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import find_model


def main() -> None:
    service = Deployment(find_model("llama-3.1-70b"), gpu("h100-sxm"), tp=8, weights="fp8")
    chat = Traffic(lognormal(1250), lognormal(300))
    for policy in ("chunked", "prefill-first", "radix"):
        start = time.perf_counter()
        served = simulate(service, poisson(8, chat, 4000, 1), Settings(policy=policy))
        wall = time.perf_counter() - start
        print(f"{policy:14} {served.meter.output_tokens / wall:12,.0f} simulated decode tokens a second (goal 200,000)")
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    simulate(service, poisson(8, Traffic(fixed(500), fixed(100)), requests, 1))
    wall = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{requests:,} requests in {wall:.1f} s, {requests / wall:,.0f} a second; memory grew by {grown:.1f} MiB")
    try:
        from stallwise.planner.serving import Question, size_service
    except ImportError:
        return
    start = time.perf_counter()
    answer = size_service(
        Question(find_model("llama-3.1-70b"), (gpu("h100-sxm"), gpu("h200"), gpu("b200")), 2000, 300, 16.0, 0.5, 0.04)
    )
    wall = time.perf_counter() - start
    print(
        f"{answer.tried} layouts sized in {wall:.1f} s ({wall / max(answer.tried, 1) * 500:.1f} s for 500; goal 10 s)"
    )


main()
