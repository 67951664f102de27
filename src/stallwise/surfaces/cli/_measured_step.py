"""One measured step time out of artifacts or out of what the user typed."""

from __future__ import annotations

from stallwise.errors import BadRequest
from stallwise.units import Unit, parse


def measured_step_s(paths: tuple[str, ...], typed: str | None) -> tuple[float, str]:
    """Seconds of a step and where they come from."""
    if typed:
        seconds = parse(typed, Unit.SECOND)
        if seconds <= 0:
            raise BadRequest(f"a step of {typed} cannot be", hint="such as --step-time 9.3s")
        return seconds, "as stated"
    if not paths:
        raise BadRequest("no run was given", hint="give a trace or a log, or --step-time 9.3s")
    from stallwise.doctor.gather import gather
    from stallwise.evidence.catalog import run, step

    evidence = gather(paths)
    for quantity in (step.STEP_TIME, run.STEP_TIME):
        facts = evidence.all(quantity)
        values = sorted(float(f.value) for f in facts if isinstance(f.value, (int, float)))
        if values:
            return values[len(values) // 2], f"{quantity.name} in {', '.join(evidence.inputs[:2])}"
    raise BadRequest(
        "no step time was found in what you gave", hint="give a profiler trace or a training log, or --step-time 9.3s"
    )
