"""What one training log shows of itself: its series, what moved in them, and how they read in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.findings.step_facts import ms, percent
from stallwise.evidence.catalog import change, distributed, numerics, run, serving, stages
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Series
from stallwise.evidence.quantity import Quantity

PACE = (run.STEP_TIME, run.TOKENS_PER_S, run.SAMPLES_PER_S)
LEARNS = (run.LOSS, run.REWARD)
OF_ENGINES = (serving.ENGINE, serving.SAMPLES, serving.START_PHASE, serving.KV_TOKENS, serving.MAX_LENGTH)
OVERFIT = 1.05  # evaluation loss at the end over its lowest
LOUD = ("error", "fatal", "critical")
GIB = float(1 << 30)


@dataclass(frozen=True, slots=True)
class Logged:
    """One file."""

    evidence: Evidence
    file: str

    def series(self, quantity: Quantity) -> Series | None:
        """The longest of this quantity."""
        own = [s for s in self.evidence.series(quantity) if s.source.file == self.file]
        return max(own, key=lambda s: len(s.values), default=None)

    def values(self, quantity: Quantity) -> NDArray[np.float64]:
        """Its finite values."""
        series = self.series(quantity)
        return series.values[np.isfinite(series.values)] if series is not None else np.empty(0)

    def value(self, quantity: Quantity, default: float = float("nan")) -> float:
        """The largest fact that stands in this file."""
        return max((f.number for f in self.evidence.all(quantity) if f.source.file == self.file), default=default)

    @property
    def longest(self) -> Series | None:
        """What the file tells most of."""
        found = [s for q in (*PACE, *LEARNS) if (s := self.series(q)) is not None]
        return max(found, key=lambda s: len(s.values), default=None)

    @property
    def spread(self) -> float:
        """Of the middle half of the steps over their median; NaN without step times."""
        times = self.values(run.STEP_TIME)
        if len(times) < 2:
            return float("nan")
        low, middle, high = np.percentile(times, (25, 50, 75))
        return float((high - low) / middle) if middle > 0 else float("inf")

    @property
    def mfu(self) -> float:
        """The median of the log, else what is stated."""
        values = self.values(run.MFU)
        return float(np.median(values)) if len(values) else self.evidence.value(run.MFU)


def logs(evidence: Evidence) -> list[Logged]:
    """The files that tell of training: a series of its pace or of its loss, and no engine's own lines."""
    served = {f.source.file for q in OF_ENGINES for f in evidence.all(q)}
    files = dict.fromkeys(s.source.file for q in (*PACE, *LEARNS) for s in evidence.series(q))
    return [Logged(evidence, file) for file in files if file and file not in served]


def moved(values: NDArray[np.float64]) -> tuple[float, float]:
    """Where a series begins and ends, less its noise."""
    ends = max(1, min(len(values) // 4, 50))
    return float(np.median(values[:ends])), float(np.median(values[-ends:]))


def described(log: Logged) -> str:
    """The numbers of one log, one after the other."""
    parts = [_pace(log), *_rates(log), _loading(log), _curve(log, run.LOSS, "loss"), _curve(log, run.REWARD, "reward")]
    parts += [_evaluation(log), _range(log, run.GRAD_NORM, "gradient norm"), _scale(log), _memory(log), _experts(log)]
    parts += [_progress(log), _stamps(log)]
    return ", ".join(part for part in parts if part)


def _pace(log: Logged) -> str:
    times = log.values(run.STEP_TIME)
    if len(times) < 2:
        return ""
    middle = float(np.median(times))
    rate = f" ({1 / middle:.3g} a second)" if 0 < middle < 1 else ""
    series = log.series(run.STEP_TIME)
    every = float(np.median(np.diff(series.x))) if series is not None else 1.0
    pace = (
        f"{len(times)} steps of {ms(middle)}{rate}"
        if every <= 1
        else f"{ms(middle)} a step{rate} at {len(times)} points"
    )
    return f"{pace}, the middle half within {percent(log.spread)}"


def _rates(log: Logged) -> list[str]:
    parts = []
    for quantity, unit, scale in ((run.TOKENS_PER_S, "tokens/s", 1.0), (run.SAMPLES_PER_S, "samples/s", 1.0),
                                  (run.FLOP_RATE, "TFLOP/s", 1e12)):  # fmt: skip
        values = log.values(quantity) / scale
        if len(values):
            middle = float(np.median(values))
            parts.append(f"{middle:,.0f} {unit}" if middle >= 100 else f"{middle:.3g} {unit}")
    return parts + ([f"MFU {log.mfu:.1%}"] if log.mfu == log.mfu else [])


def _loading(log: Logged) -> str:
    waits, times = log.values(run.DATA_TIME), log.values(run.STEP_TIME)
    if not len(waits) or not len(times):
        return ""
    wait, step = float(np.median(waits)), float(np.median(times))
    return f"data wait {ms(wait)} ({percent(wait / step)})" if step > 0 else f"data wait {ms(wait)}"


def _curve(log: Logged, quantity: Quantity, word: str) -> str:
    values = log.values(quantity)
    if len(values) < 2:
        return f"{word} {_short(values[0])} at one point" if len(values) else ""
    return f"{word} {_short(values[0])} -> {_short(values[-1])} over {len(values)} points"


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _evaluation(log: Logged) -> str:
    losses, times = log.values(run.EVAL_LOSS), log.values(stages.EVALUATION)
    parts = [f"evaluation loss {_short(losses[0])} -> {_short(losses[-1])}" if len(losses) > 1 else ""]
    trained = log.values(run.LOSS)
    if len(losses) > 1 and len(trained) > 1 and losses[-1] > OVERFIT * losses.min() and trained[-1] < trained[0]:
        parts[0] += (
            f" (lowest {_short(losses.min())}: it rises while the loss falls, which is overfitting and no fault of numbers)"
        )
    parts.append(f"{len(times)} evaluations of {np.median(times):,.4g} s" if len(times) > 1 else "")
    return ", ".join(part for part in parts if part)


def _range(log: Logged, quantity: Quantity, word: str) -> str:
    values = log.values(quantity)
    return f"{word} {values.min():.3g}-{values.max():.3g}" if len(values) > 1 else ""


def _scale(log: Logged) -> str:
    scale, skipped = log.values(run.LOSS_SCALE), log.values(run.SKIPPED_STEPS)
    parts = []
    if len(scale):
        same = scale.min() == scale.max()
        parts.append(f"loss scale {scale[-1]:.0f} " + ("throughout" if same else f"at the end (from {scale[0]:.0f})"))
    if len(skipped):
        parts.append(f"{skipped.max():.0f} skipped steps")
    return ", ".join(parts)


def _memory(log: Logged) -> str:
    used = log.values(run.GPU_MEMORY)
    if len(used) < 2:
        return ""
    flat = used.max() <= 1.02 * used.min()
    return f"memory {used[-1] / 1e9:.1f} GB ({used[-1] / GIB:.2f} GiB) {'flat' if flat else f'from {used[0] / 1e9:.1f} GB'}"


def _experts(log: Logged) -> str:
    spread = log.value(distributed.EXPERT_SPREAD)
    return f"the busiest expert or rank gets {spread:.2f}x the mean tokens" if spread == spread else ""


def _progress(log: Logged) -> str:
    """How far it got, of a run whose length is said."""
    planned, longest = log.value(run.STEPS_PLANNED), log.longest
    last = float(np.nanmax(longest.x)) if longest is not None and np.isfinite(longest.x).any() else float("nan")
    return f"up to step {last:,.0f} of {planned:,.0f}" if 0 < last <= planned else ""


def _stamps(log: Logged) -> str:
    every, whole = log.value(run.LOG_INTERVAL), log.value(run.LOGGED_TIME)
    return f"one point each {every:.3g} s over {whole / 3600:.1f} h" if every == every and whole == whole else ""


def spikes(log: Logged) -> tuple[float, float, float]:
    """How often the loss left its range, the part of them that came back, and how far it went."""
    return log.value(numerics.SPIKES, 0.0), log.value(numerics.RECOVERED, 1.0), log.value(numerics.LOSS_RATIO, 1.0)


def shifted(log: Logged) -> bool:
    """A change of level or a drift of the step time."""
    return any(log.value(q) == log.value(q) for q in (change.DROP_RATIO, change.DRIFT_RATIO))


def evaluating(log: Logged) -> float:
    """Part of the time that evaluations take; 0 where either is not timed."""
    series, times = log.series(run.STEP_TIME), log.values(stages.EVALUATION)
    if series is None or len(series.x) < 2 or not len(times):
        return 0.0
    every = float(np.median(np.diff(series.x)))
    training = float(np.nansum(series.values)) * max(every, 1.0)
    return float(times.sum() / (times.sum() + training))


def failed(log: Logged) -> Event | None:
    """The first error in the file that is no advice and no message of known harmlessness."""
    return next(
        (e for e in log.evidence.events
         if e.source.file == log.file and e.level in LOUD and e.role in (Role.ROOT, Role.CASCADE, Role.CONFIRMATION)),
        None,
    )  # fmt: skip
