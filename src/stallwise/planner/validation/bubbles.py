"""Bubble rates of pipeline schedules (columns as in pipeline_bubbles.csv): the schedule simulated with its pass times.

Rates are counted as in the Zero Bubble paper: the busiest device's idle share of its own span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stallwise.errors import StallwiseError
from stallwise.physics.sim.pipeline import PassTimes, even_times, run_program
from stallwise.physics.sim.schedules import schedule_named
from stallwise.planner.scoring import Row, Scored, number

KIND = "bubbles"


@dataclass(frozen=True, slots=True)
class Profile:
    """Pass times of one device, any unit, and what else the schedule depends on."""

    forward: float
    input_grad: float
    weight_grad: float
    p2p: float
    layers_per_device: int  # interleaving splits a device into single layers
    weight_held_share: float  # 32h / (34h + 5as): without fused attention most memory goes with the input gradient


# Inputs of Zero Bubble's Table 5, in ms: the authors' profiled pass times of their four models on A100s (Qi et al.
# 2024, arXiv 2401.10241, appendix), shapes from its Table 3. A model of another name falls back to USUAL.
PROFILES = {
    "1.5b": Profile(18.522, 18.086, 9.337, 0.601, 3, 0.366),
    "6.2b": Profile(29.718, 29.444, 19.927, 0.527, 4, 0.432),
    "14.6b": Profile(11.347, 11.248, 8.132, 0.377, 3, 0.432),
    "28.3b": Profile(10.419, 10.207, 7.715, 0.408, 2, 0.432),
}
# The middle of those: input gradients as long as forwards, weight gradients 0.7 of them (no attention, no norms).
USUAL = Profile(1.0, 0.99, 0.70, 0.035, 2, 0.432)
SPREAD_KNOWN = 0.015  # points of the step: what automatic schedules differ by between searches
SPREAD_USUAL = 0.04  # and what unknown pass times and message costs add


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """One simulation per row; nothing is fitted, so `calibrate` only leaves the first rows of a source out."""
    scored: list[Scored] = []
    seen: dict[str, int] = {}
    for row in rows:
        source = row.get("citation") or row.get("source") or "?"
        seen[source] = seen.get(source, 0) + 1
        if seen[source] > calibrate:
            scored.append(_predict(row, source))
    return scored


def _predict(row: Row, source: str) -> Scored:
    measured = number(row, "bubble_rate")
    row_id = row.get("row_id", "")
    stages, microbatches = number(row, "stages_p"), number(row, "microbatches_m")
    if not stages or not microbatches:
        return Scored(row_id, source, "bubble_share", measured, note="stages_p or microbatches_m missing")
    profile = PROFILES.get(row.get("model", "").strip().lower())
    try:
        share = bubble_share(row.get("schedule", ""), int(stages), int(microbatches), profile or USUAL)
    except StallwiseError as error:
        return Scored(row_id, source, "bubble_share", measured, note=error.problem)
    spread = SPREAD_KNOWN if profile else SPREAD_USUAL
    note = "" if profile else "pass times assumed: F, 0.99 F, 0.70 F"
    return Scored(row_id, source, "bubble_share", measured, share, max(0.0, share - spread), share + spread, note)


def bubble_share(schedule: str, stages: int, microbatches: int, profile: Profile) -> float:
    """The simulated rate."""
    module = schedule_named(schedule)
    chunks = module.CHUNKS or profile.layers_per_device
    per_device = stages * (2 if module.NAME == "dualpipe" else 1)
    times: PassTimes = even_times(
        per_device,
        profile.forward,
        profile.input_grad,
        profile.weight_grad,
        chunks=1 if module.NAME == "dualpipe" else chunks,
        p2p_s=profile.p2p,
    )
    times = replace(times, weight_held_share=profile.weight_held_share)
    return run_program(module.program(stages, microbatches, chunks, times), times).own_span_share
