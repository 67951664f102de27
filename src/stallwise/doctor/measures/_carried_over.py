"""Replayed seconds carried over to the step that the answer tells.

A replay knows the trace alone. Where untraced steps of the same run were measured, they are the step, and the host of the run is
quicker or slower than the traced one: what host changes win goes with that pace, what changes of the device's work win stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stallwise.doctor.measures._replay_range import OF_THE_WORK
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Scope
from stallwise.evidence.step_time import step_time_s

IDLE_SHARE = 0.03  # of the step: less idle time on either side tells nothing of the host's pace
MOST_PACE = 2.0  # of the host in one run over another of the same job


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """From the replayed step to the told one."""

    step_s: float  # as the answer tells it
    replayed_s: float  # of the replay without a change
    busy_s: float  # of the device, in either
    pace: float = 1.0  # host time of the run over that of its trace

    def won_s(self, won_s: float, changes: Mapping[str, float]) -> float:
        """What changes win together; `changes` says what each wins alone, which decides how much of it is the host's."""
        alone = sum(changes.values())
        host = sum(won for name, won in changes.items() if name not in OF_THE_WORK)
        part = host / alone if alone > 0 else 0.0
        carried = won_s * (part * self.pace + (1.0 - part))
        return min(carried, self.step_s - self._least_s(self.replayed_s - won_s, spares_work=part < 1.0))

    def _least_s(self, after_s: float, spares_work: bool) -> float:
        """No change leaves less: the device's work stays unless it is what is changed, and then it takes its part of the step."""
        part_s = after_s * min(1.0, self.step_s / self.replayed_s) if self.replayed_s > 0 else 0.0
        return part_s if spares_work else min(max(part_s, min(self.busy_s, after_s)), self.step_s)


def carried_over(evidence: Evidence, replayed_s: float, scope: Scope = WHOLE) -> CarriedOver:
    """For the replays of one scope."""
    answer_step_s, busy_s = step_time_s(evidence, scope), evidence.value(catalog.BUSY_TIME, 0.0)
    answer_step_s = answer_step_s if answer_step_s == answer_step_s else replayed_s
    return CarriedOver(answer_step_s, replayed_s, busy_s, _pace(evidence, busy_s))


def _pace(evidence: Evidence, busy_s: float) -> float:
    """Idle time of a step that was measured without a profiler over that of the replayed one; 1 where nobody measured it."""
    clean, replayed = evidence.value(catalog.CLEAN_STEP), evidence.value(catalog.REPLAYED_STEP)
    if not (clean == clean and replayed == replayed and min(clean, replayed) - busy_s > IDLE_SHARE * replayed):
        return 1.0
    return min(max((clean - busy_s) / (replayed - busy_s), 1.0 / MOST_PACE), MOST_PACE)
