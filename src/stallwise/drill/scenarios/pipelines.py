# ruff: noqa: E501
"""Pipelines played by the schedule simulator with the fault in their times; what comes out is a trace of every rank, or their times."""

from __future__ import annotations

from stallwise.drill.artifacts.rank_traces import pipeline_traces
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.physics.sim.pipeline import PassTimes, PipelineRun, run_program
from stallwise.physics.sim.schedules import schedule_named
from stallwise.units import Unit

STAGES = 4


def _run(forward_s: tuple[float, ...], microbatches: int, p2p_s: float) -> PipelineRun:
    times = PassTimes(forward_s, tuple(1.0 * f for f in forward_s), tuple(1.0 * f for f in forward_s), p2p_s=p2p_s)
    return run_program(schedule_named("1f1b").program(len(forward_s), microbatches, 1, times), times)


def _traced(setup: str, run: PipelineRun, number: Decisive) -> Plot:
    return Plot(setup, tuple(exhibit("trace", f"rank{r}.json", t) for r, t in enumerate(pipeline_traces(run))), number)


@planted("pipeline-stage-imbalance")
def slow_stage(rng: Rng) -> Plot:
    slow, base = rng.whole(0, STAGES - 1), rng.between(4e-3, 7e-3)
    ratio = rng.between(1.5, 1.9)
    run = _run(tuple(base * (ratio if s == slow else 1.0) for s in range(STAGES)), rng.pick(16, 24), 2e-5)
    return _traced(
        f"A pipeline of {STAGES} stages idles {run.bubble_step_share:.0%} of its step; the formula promised far less. All ranks report the same step time. Why?",
        run,
        Decisive("Which rank's stage is it (from 0)?", slow, within=EXACT),
    )


@planted("virtual-stages-suboptimal")
def one_chunk(rng: Rng) -> Plot:
    micro = rng.pick(4, 6)
    run = _run((rng.between(5e-3, 8e-3),) * STAGES, micro, 2e-5)
    return _traced(
        f"A pipeline of {STAGES} equal stages can take no more than {micro} micro-batches a step, since the global batch is fixed. Can the idle time still be cut?",
        run,
        Decisive("Which share of the step does the pipeline idle?", run.bubble_step_share, Unit.SHARE, 1.25),
    )


@planted("pipeline-bubble")
def played_bubble(rng: Rng) -> Plot:
    stages, micro = 8, rng.pick(8, 12)
    run = _run((rng.between(5e-3, 8e-3),) * stages, micro, 0.0)
    share = run.bubble_step_share
    case = f'symptom = "pipeline bubble is larger than expected"\npp = {stages}\nmicrobatches = {micro}\nschedule = "1F1B"\nbubble = "{share:.0%}"\nstragglers = false\nfabric_healthy = true\ncheckpointing = false\nloss_normal = true\n'
    busy = ", ".join(f'"{b / micro * 1e3:.2f}ms"' for b in run.busy_s)
    return Plot(
        f"A new pipeline of {stages} stages idles {share:.0%} of its step. A colleague wants to replace the switches. Do you?",
        (
            exhibit("case", "case.toml", case, False),
            exhibit("stage-times", "stages.toml", f'stage_time = [{busy}]\np2p_share = "1%"\n'),
        ),
        Decisive("Which share of the step must this schedule idle?", share, Unit.SHARE),
    )
