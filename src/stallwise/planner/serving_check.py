"""A sized option, simulated: percentiles under Poisson arrivals, cache and queue over time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallwise.physics.sim.requests import Traffic, lognormal, poisson
from stallwise.physics.sim.service import Settings, simulate
from stallwise.planner.serving import SORTS, Option, Question, Sizing, size_service, with_replicas

SECONDS = 120.0  # of load
SPREAD_OF_LENGTHS = 0.3  # of the logarithm: a service has no two equal requests
PREFIX_GROUPS = 4
CONFIRMED = 3  # options that are simulated
MORE_REPLICAS = 4  # tried before an option is left as it is
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
    """Simulates the first options and adds replicas until most requests, not the mean one, meet both targets."""
    q = sizing.question
    found = [_confirmed(option, q) for option in sizing.options[:CONFIRMED]]
    found.sort(key=lambda x: (x[1].good_share < MOSTLY_GOOD, *SORTS[q.sort](x[0])))
    if not found:
        return sizing, None
    options = (*(o for o, _ in found), *sizing.options[CONFIRMED:])
    return replace(sizing, options=options), found[0][1]


def _confirmed(option: Option, q: Question) -> tuple[Option, Checked]:
    seen = check(option, q)
    for replicas in range(option.replicas + 1, option.replicas + MORE_REPLICAS + 1):
        if seen.good_share >= MOSTLY_GOOD or replicas * option.deployment.ranks > q.max_gpus:
            break
        option = with_replicas(option, q, replicas)
        seen = check(option, q)
    return option, seen


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
