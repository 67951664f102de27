"""A gain that was predicted, and what came of it when it was tried in the same job."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.finding import Gain
from stallwise.doctor.findings.trial import Trial


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds a step, before and after the fact."""

    bundle: str
    cause: str
    trial: Trial
    predicted: Gain

    @property
    def measured_s(self) -> float:
        """What a step became shorter by."""
        return self.trial.saved_s(self.trial.ratio)

    @property
    def inside(self) -> bool:
        """What was measured, with its own doubt, meets the predicted range."""
        low_s, high_s = self.trial.saved_s(self.trial.low), self.trial.saved_s(self.trial.high)
        return low_s <= self.predicted.high_s and high_s >= self.predicted.low_s

    @property
    def middle_inside(self) -> bool:
        """The measured gain itself lies in the range, its doubt left aside."""
        return self.predicted.low_s <= self.measured_s <= self.predicted.high_s

    @property
    def miss(self) -> str:
        """Which way the prediction was wrong."""
        if self.inside:
            return ""
        return "too high" if self.measured_s < self.predicted.low_s else "too low"
