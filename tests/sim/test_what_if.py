"""What a fix is worth, against a second simulator that shares nothing with ours but the clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallwise.errors import StallwiseError
from stallwise.physics.costs.inference import Engine
from stallwise.physics.sim.requests import ClosedLoop, Traffic, Waves, lognormal, poisson
from stallwise.physics.sim.service import Settings, simulate
from stallwise.physics.sim.what_if import (
    MOST_REQUESTS,
    SECONDS,
    SPREAD_OF_LENGTHS,
    Point,
    helps,
    outcome,
    ranked,
    replicas_needed,
    together,
    trials,
)
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import find_model
from tests.sim import oracle

LARGE = Deployment(find_model("llama-3.1-70b"), gpu("h100-sxm"), tp=8, weights="fp8", engine_version="0.17.0")
SMALL = Deployment(find_model("llama-3.1-8b"), gpu("h100-sxm"), engine_version="0.17.0")
POINTS = [
    Point(LARGE, 1000, 300, 14.0, settings=Settings("prefill-first")),
    Point(LARGE, 3000, 150, 6.0, settings=Settings("prefill-first")),
    Point(SMALL, 500, 300, 30.0, settings=Settings("prefill-first", max_seqs=64)),
    Point(SMALL, 2000, 200, 9.0, settings=Settings("prefill-first", max_seqs=128)),
]


def second_opinion(point: Point) -> tuple[float, float]:
    """Median TTFT and TPOT of the same requests in the plain simulator."""
    engine, rate = Engine(point.deployment), point.rate_per_s / point.replicas
    traffic = Traffic(lognormal(point.isl, SPREAD_OF_LENGTHS), lognormal(point.osl, SPREAD_OF_LENGTHS))
    count = max(40, min(MOST_REQUESTS, int(rate * SECONDS)))
    jobs = [oracle.Job(r.arrival_s, r.prompt, r.output) for r in poisson(rate, traffic, count, 0)]
    s = point.settings
    oracle.serve(
        jobs, lambda d, c, t, p: float(engine.parts(d, c, t, p).total_s),
        chunked=s.policy == "chunked", cap=s.max_seqs, budget=s.budget,
    )  # fmt: skip
    return oracle.ttft_s(jobs) + float(engine.k.first_token_s), oracle.tpot_s(jobs)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("fix", ["chunking", "cap", "replicas"])
def test_a_fix_gains_what_an_independent_simulation_says_within_5_percent(point: Point, fix: str) -> None:
    s = point.settings
    changed = {
        "chunking": replace(point, settings=replace(s, policy="chunked", budget=2048)),
        "cap": replace(point, settings=replace(s, max_seqs=512)),
        "replicas": replace(point, replicas=2),
    }[fix]
    before, after = outcome(point), outcome(changed)
    (ttft_before, tpot_before), (ttft_after, tpot_after) = second_opinion(point), second_opinion(changed)
    assert after.tpot_s / before.tpot_s == pytest.approx(tpot_after / tpot_before, rel=0.05)
    assert after.ttft_s / before.ttft_s == pytest.approx(ttft_after / ttft_before, rel=0.05)


def test_trials_change_one_thing_and_the_order_puts_gpus_last() -> None:
    point = POINTS[0]
    now = outcome(point)
    found = ranked(trials(point, chunked=False, shared_share=None), now, 1.0, 0.05)
    helping = [t for t in found if helps(t, now, 1.0, 0.05)]
    assert found[: len(helping)] == helping and helping[-1].name == "replicas"
    assert {"chunking", "cap", "speculation", "pools", "prefix"} <= {t.name for t in found}
    best = together(point, found, now, 1.0, 0.05)
    assert best.outcome.pain(1.0, 0.05) <= now.pain(1.0, 0.05)
    needed = replicas_needed(point, 1.0, 0.05)
    assert needed is not None and outcome(replace(point, replicas=needed)).pain(1.0, 0.05) == 1
    assert needed == 1 or outcome(replace(point, replicas=needed - 1)).pain(1.0, 0.05) > 1


def test_a_target_that_one_request_misses_needs_no_number_of_gpus() -> None:
    assert replicas_needed(POINTS[0], 1.0, 0.001) is None


def test_waves_wait_for_the_last_and_spare_the_tokens() -> None:
    traffic = Traffic(lognormal(1000, 0.3), lognormal(200, 0.3))
    loop = simulate(SMALL, ClosedLoop(32, traffic, 320), Settings()).meter
    waves = simulate(SMALL, Waves(32, traffic, 320), Settings()).meter
    assert waves.completed == loop.completed == 320
    assert waves.ttft.quantile(0.5) > 2 * loop.ttft.quantile(0.5) and waves.end_s > loop.end_s


def test_how_much_is_simulated_is_a_count_and_no_clock_decides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    point = replace(POINTS[2], rate_per_s=2.0)
    whole = outcome(point)
    monkeypatch.setattr("stallwise.physics.sim.what_if.MOST_EVENTS", 50)
    outcome.cache_clear()
    with pytest.raises(StallwiseError, match="does not come to an end"):
        outcome(point)
    assert trials(point, chunked=False, shared_share=None) == []
    monkeypatch.setattr("stallwise.physics.sim.what_if.MOST_EVENTS", 12_000)
    outcome.cache_clear()
    assert outcome(point) == whole
