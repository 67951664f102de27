"""A sized option, simulated: percentiles under Poisson arrivals, cache and queue over time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stallwise.physics.sim.requests import Traffic, lognormal, poisson
from stallwise.physics.sim.service import Settings, simulate
from stallwise.planner.serving import SORTS, TOO_SLOW, Option, Question, Refusal, Sizing, size_service, with_replicas
from stallwise.units import Unit, show

SECONDS = 120.0  # of load
SPREAD_OF_LENGTHS = 0.3  # of the logarithm: a service has no two equal requests
PREFIX_GROUPS = 4
CONFIRMED, MOST_CONFIRMED = 3, 12  # options that are simulated: at least, and until one holds that no other could beat
MORE_REPLICAS = 4  # tried one by one before
MORE_TIMES = (1.5, 2.0, 3.0)  # as many, and an option is left as it is
MOSTLY_GOOD = 0.9  # of requests within both targets


@dataclass(frozen=True)
class Checked:
    """What one replica did."""

    requests: int
    ttft_p50_s: float
    ttft_p99_s: float
    tpot_p50_s: float
    tpot_p99_s: float
    good_share: float
    preemptions: int
    output_token_per_s: float
    time_s: tuple[float, ...]
    kv_share: tuple[float, ...]
    waiting: tuple[float, ...]


def sized(question: Question, *, simulated: bool = True) -> tuple[Sizing, Checked | None]:
    """The answer to a serving question, the same for whoever asks it: the command line, the page, a program."""
    sizing = size_service(question)
    return confirm(sizing) if simulated else (sizing, None)


def confirm(sizing: Sizing) -> tuple[Sizing, Checked | None]:
    """Simulates options in their order and adds replicas until most requests, not the mean one, meet both targets.

    It goes on until no option that was not simulated could still come before the best that holds.
    """
    q, order = sizing.question, SORTS[sizing.question.sort]
    found: list[tuple[Option, Checked, Refusal | None]] = []
    for option in sizing.options[:MOST_CONFIRMED]:
        holding = [order(o) for o, seen, _ in found if seen.good_share >= MOSTLY_GOOD]
        if len(found) >= CONFIRMED and holding and min(holding) <= order(option):
            break
        found.append(_confirmed(option, q))
    if not found:
        return sizing, None
    left = sizing.options[len(found) :]
    found.sort(key=lambda x: (x[1].good_share < MOSTLY_GOOD, *order(x[0])))
    options = (*(o for o, _, _ in found), *left)
    best, seen, fewer = found[0]
    cheaper = [r for r in sizing.cheaper if r.why != TOO_SLOW or (fewer is None and r.deployment == best.deployment)]
    return replace(sizing, options=options, cheaper=((fewer,) if fewer else ()) + tuple(cheaper)), seen


def _confirmed(option: Option, q: Question) -> tuple[Option, Checked, Refusal | None]:
    """With as few more replicas as do, and why one less does not; as it was where more do not help either."""
    first = seen = check(option, q)
    tried, fewer = option, None
    for replicas in more_replicas(option.replicas):
        if seen.good_share >= MOSTLY_GOOD or replicas * option.deployment.ranks > q.max_gpus:
            break
        fewer = _too_few(tried, seen)
        tried = with_replicas(option, q, replicas)
        seen = check(tried, q)
    return (tried, seen, fewer) if seen.good_share >= MOSTLY_GOOD else (option, first, None)


def more_replicas(now: int) -> list[int]:
    """One by one at first, then by halves: where a mean request is far from the slow ones, a few more change little."""
    few = range(now + 1, now + MORE_REPLICAS + 1)
    return [*few, *(n for times in MORE_TIMES if (n := math.ceil(times * now)) > few[-1])]


def _too_few(option: Option, seen: Checked) -> Refusal:
    detail = (
        f"{seen.good_share:.0%} of the simulated requests are within both targets, {MOSTLY_GOOD:.0%} wanted "
        f"(99th percentiles: {show(seen.ttft_p99_s, Unit.SECOND)} to the first token, {show(seen.tpot_p99_s, Unit.SECOND)} a token)"
    )
    return Refusal(option.deployment, option.replicas, TOO_SLOW, detail, MOSTLY_GOOD / max(seen.good_share, 1e-9))


def check(option: Option, question: Question, *, seed: int = 0, seconds: float = SECONDS) -> Checked:
    """Runs one replica at its share of the rate."""
    rate = question.rate_per_s / option.replicas
    shared = int(question.hit_share * question.isl)
    traffic = Traffic(
        lognormal(question.isl, SPREAD_OF_LENGTHS), lognormal(question.osl, SPREAD_OF_LENGTHS),
        prefixes=PREFIX_GROUPS if shared else 0, shared=shared,
    )  # fmt: skip
    cap = max(1, int(1.5 * option.limit.batch) + 8)
    settings = Settings(
        max_seqs=cap, sample_s=seconds / 60, goal=(question.ttft_s, question.tpot_s), budget=_budget(option)
    )
    served = simulate(option.deployment, poisson(rate, traffic, max(20, int(rate * seconds)), seed), settings)
    m = served.meter
    return Checked(
        m.completed, m.ttft.quantile(0.5), m.ttft.quantile(0.99), m.tpot.quantile(0.5), m.tpot.quantile(0.99),
        m.good / max(1, m.completed), m.preemptions, served.output_token_per_s,
        tuple(s[0] for s in m.samples), tuple(s[3] for s in m.samples), tuple(s[2] for s in m.samples),
    )  # fmt: skip


def _budget(option: Option) -> int:
    """Chunks of prefill that keep an iteration near the token target's half: the usual 2048, more for large replicas."""
    return 2048 if option.deployment.ranks < 8 else 8192
