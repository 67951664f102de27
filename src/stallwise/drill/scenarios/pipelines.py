"""Pipelines played by the schedule simulator with the fault in their times; what comes out is traces, or what a run logs of itself."""

from __future__ import annotations

import json
from typing import Any

from stallwise.drill.artifacts.rank_traces import pipeline_traces
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted
from stallwise.physics.sim.pipeline import PassTimes, PipelineRun, run_program
from stallwise.physics.sim.schedules import schedule_named

STAGES = 4


def _run(forward_s: tuple[float, ...], microbatches: int, p2p_s: float = 2e-5) -> PipelineRun:
    times = PassTimes(forward_s, forward_s, forward_s, p2p_s=p2p_s)
    return run_program(schedule_named("1f1b").program(len(forward_s), microbatches, 1, times), times)


def _traced(run: PipelineRun, value: float, **words: Any) -> Drawn:
    traces = (exhibit("trace", f"rank{r}.json", text) for r, text in enumerate(pipeline_traces(run)))
    return drawn(value, *traces, stages=STAGES, idle=run.bubble_step_share, **words)


@planted("pipeline-stage-imbalance")
def slow_stage(rng: Rng) -> Drawn:
    slow, base, ratio = rng.whole(0, STAGES - 1), rng.between(4e-3, 7e-3), rng.between(1.5, 1.9)
    return _traced(_run(tuple(base * (ratio if s == slow else 1.0) for s in range(STAGES)), rng.pick(16, 24)), slow)


@planted("virtual-stages-suboptimal")
def one_chunk(rng: Rng) -> Drawn:
    micro = rng.pick(4, 6)
    run = _run((rng.between(5e-3, 8e-3),) * STAGES, micro)
    return _traced(run, run.bubble_step_share, micro=micro)


def _logged(rng: Rng, pass_s: float, microbatches: int, p2p_share: float) -> tuple[Drawn, PipelineRun]:
    """Eight equal stages: their times, the run's own metrics, and how it was launched."""
    run = _run((pass_s,) * 8, microbatches, p2p_share * pass_s)
    times = "".join(f"{n},{s},{rng.near(3e3 * pass_s, 0.003):.2f}\n" for n in range(700, 703) for s in range(8))
    metrics = {
        "step_time": round(run.step_s, 4),
        "bubble": round(run.bubble_step_share, 3),
        "p2p_share": round(p2p_share, 3),
    }
    launch = f"pipeline_parallel: 8\nmicrobatches: {microbatches}\nschedule: 1F1B\n"
    files = (
        exhibit("stage-times", "stage_times.csv", f"step,stage,microbatch_ms\n{times}"),
        exhibit(
            "train-log", "metrics.jsonl", "".join(json.dumps({"step": n} | metrics) + "\n" for n in range(690, 706))
        ),
        exhibit("case", "train.yaml", launch, False),
    )
    return drawn(p2p_share, *files, micro=microbatches, base=3e3 * pass_s, idle=run.bubble_step_share), run


@planted("pipeline-bubble")
def few_micro_batches(rng: Rng) -> Drawn:
    made, run = _logged(rng, rng.between(5e-3, 8e-3), rng.pick(8, 12, 16), 0.01)
    return drawn(run.bubble_step_share, *made.exhibits, **made.words)


@planted("pipeline-p2p-latency")
def long_hand_offs(rng: Rng) -> Drawn:
    return _logged(rng, rng.between(1.2e-3, 2.4e-3), rng.pick(32, 64), rng.between(0.25, 0.4))[0]
