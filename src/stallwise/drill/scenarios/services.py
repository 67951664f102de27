# ruff: noqa: E501
"""Services played by the serving simulator with the fault in their settings or their load; what comes out is the engine's log."""

from __future__ import annotations

from stallwise.drill.artifacts.engine import START, lines
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, WORKED_OUT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.physics.sim.requests import Traffic, lognormal, poisson
from stallwise.physics.sim.service import Served, Settings, simulate
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.models import find_model
from stallwise.units import Unit

SMALL = Deployment(find_model("llama-3-8b"), gpu("h100-sxm"))
MOST_LINES = 40


def _log(served: Served) -> str:
    """The engine's own lines of the busy part of the simulation."""
    busy = [s for s in served.meter.samples if s[1] > 0][:MOST_LINES]
    start = START.format(model="m", cap=served.settings.max_seqs)
    return start + lines((run, wait, 100 * kv, prompt, out) for _, run, wait, kv, prompt, out in busy)


def _plot(setup: str, served: Served, number: Decisive) -> Plot:
    return Plot(setup, (exhibit("engine-log", "engine.log", _log(served)),), number)


@planted("batch-cap-too-low")
def capped(rng: Rng) -> Plot:
    cap, rate = rng.pick(8, 12, 16), rng.between(9, 12)
    load = poisson(rate, Traffic(lognormal(300), lognormal(250)), 700, seed=rng.whole(1, 999))
    served = simulate(SMALL, load, Settings(max_seqs=cap, sample_s=2.0))
    return _plot(
        f"An 8B model on one H100 gets {rate:.0f} requests a second; users wait before the first token, though others serve more on the same card. What limits?",
        served,
        Decisive("How many requests run at once, whatever waits?", cap, within=EXACT),
    )


@planted("kv-cache-preemption")
def crowded(rng: Rng) -> Plot:
    load = poisson(14, Traffic(lognormal(300), lognormal(900)), 900, seed=rng.whole(1, 999))
    served = simulate(SMALL, load, Settings(max_seqs=512, blocks=rng.whole(4200, 5000), sample_s=4.0))
    peak = max(s[1] for s in served.meter.samples)
    return _plot(
        "Long answers came into fashion among the users of an 8B model: the longer the peak lasts the fewer tokens everybody gets, and more requests wait. Why?",
        served,
        Decisive("How many requests run at once at most?", peak, Unit.COUNT, WORKED_OUT),
    )
