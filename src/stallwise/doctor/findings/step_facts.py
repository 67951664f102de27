"""How a rule of the step family reads its facts: seconds of a mean step, shares of it, and sentences with sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from stallwise.doctor.findings.finding import Gain, Reason
from stallwise.evidence.catalog import distributed, gains, stages
from stallwise.evidence.catalog import step as traced
from stallwise.evidence.catalog.hardware import GPU_MEMORY_TOTAL, GPU_MEMORY_USED
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Series
from stallwise.evidence.ledger import Category
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.step_time import step_time_s
from stallwise.late import np
from stallwise.units import Unit, show

NOTICEABLE = 0.03  # of a step; smaller losses drown in run-to-run noise
SHORTEST_S = 1e-5  # no step is as short as a few kernels; such windows are fragments of a trace
REPLAY_SPREAD = 1.12  # measured gains reach this far above replayed ones: the host's own limit is an estimate
HOST_KEEPS = 0.9  # of a saving on the device that reaches the step: below, the reader is told
MOSTLY_HOST = 2.0  # times the device's own seconds: more than half of the gain is the host's
CAPTURED = 0.4  # of the window
WORTH_FIXING = 0.05  # of a step; below, a gain is offered and nothing is called broken


@dataclass(frozen=True, eq=False)
class StepFacts:
    """A view of the evidence for rules about steps."""

    evidence: Evidence

    @cached_property
    def step_s(self) -> float:
        """The clean step, as the whole answer has it; 0 where nobody tells it."""
        seconds = step_time_s(self.evidence)
        return seconds if seconds == seconds else 0.0

    @cached_property
    def unit(self) -> str:
        """What a step is called here."""
        return self.evidence.text(traced.STEP_UNIT, "step")

    @cached_property
    def steps(self) -> int:
        """Steps seen in the trace."""
        return int(self.evidence.value(traced.STEP_COUNT, 0.0))

    @cached_property
    def on_host(self) -> bool:
        """A record of host times alone: the job has no GPU, or none was seen at work."""
        return self.evidence.value(stages.ON_DEVICE, 1.0) == 0

    def seconds(self, quantity: Quantity) -> float:
        """Seconds of a mean step; 0 where not measured."""
        value = self.evidence.value(quantity, 0.0)
        return value if value == value else 0.0

    def number(self, quantity: Quantity, default: float = 0.0) -> float:
        """A count or share; the default where not measured."""
        value = self.evidence.value(quantity, default)
        return value if value == value else default

    def knows(self, quantity: Quantity) -> bool:
        """Whether anybody measured it."""
        return bool(self.evidence.all(quantity))

    def word(self, quantity: Quantity) -> str:
        """A name; empty where not recorded."""
        return self.evidence.text(quantity)

    def share(self, seconds: float) -> float:
        """Of the step."""
        return seconds / self.step_s if self.step_s > SHORTEST_S else 0.0

    def range_of(self, quantity: Quantity) -> tuple[float, float]:
        """The interval of a measured saving."""
        fact = self.evidence.get(quantity)
        if fact is None:
            return 0.0, 0.0
        low = fact.low if fact.low is not None else fact.number
        high = fact.high if fact.high is not None else fact.number
        return low, high

    def because(self, text: str, *quantities: Quantity) -> Reason:
        """A sentence with the places of the facts it rests on."""
        facts = [fact for q in quantities if (fact := self.evidence.get(q)) is not None]
        return Reason.of(text, *facts)

    def gain(self, low_s: float, high_s: float, basis: str) -> Gain:
        """A range in order, never negative, never the whole step."""
        low, high = sorted((max(low_s, 0.0), max(high_s, 0.0)))
        most = 0.995 * self.step_s if self.step_s else high
        return Gain(min(low, most), min(high, most), basis)

    @cached_property
    def captured(self) -> bool:
        """Much of the window is the capture of a graph: what the host does there says nothing of how the run performs."""
        return self.share(self.seconds(traced.CAPTURE_WAIT)) >= CAPTURED

    @cached_property
    def slack_s(self) -> float:
        """What a typical rank waits for its peers: host time that it saves turns into more of this first."""
        waited = self.evidence.value(distributed.WAIT_FOR_PEERS, 0.0)
        return waited if waited == waited else 0.0

    def host_gain(self, low_s: float, high_s: float, basis: str) -> Gain:
        """A gain in host time, less the slack towards other ranks where they were traced together."""
        if not self.slack_s:
            return self.gain(low_s, high_s, basis)
        late = f"{basis}; less {ms(self.slack_s)} that ranks wait for each other"
        return self.gain(low_s - self.slack_s, high_s - self.slack_s, late)

    def replayed(self, change: Quantity, low_s: float, high_s: float, basis: str) -> Gain:
        """The gain of a change as the replay found it; the account's range where the trace could not be replayed."""
        low, high = self.range_of(change)
        # A clean step that is longer than the replayed one decides what waits in it.
        decided = self.knows(traced.CLEAN_STEP) and low_s > high
        if high <= 0 or decided or not self.knows(change):
            return self.host_gain(low_s, high_s, basis)
        gain = self.host_gain(low, high, self._replayed(change))
        return replace(gain, likely_s=_between(gain, self.seconds(change) - self.slack_s))

    def less_work(self, change: Quantity, low_s: float, high_s: float, basis: str) -> Gain:
        """The gain of a change in the device's work, as the replay found it; else as arithmetic has it, less what the host keeps."""
        if not self.knows(change):
            return self.device_gain(low_s, high_s, basis)
        low, high = self.range_of(change)
        gain = self.gain(low, high, self._replayed(change))
        return replace(gain, likely_s=_between(gain, self.seconds(change)))

    def _replayed(self, change: Quantity) -> str:
        """What the gain rests on, and whether the change has lost time elsewhere."""
        fact = self.evidence.get(change)
        _, mark, lost = fact.note.partition("; ") if fact is not None else ("", "", "")
        return f"replayed: {change.meaning.partition(', replayed ')[2]}{mark}{lost}"

    def category_of(self, change: Quantity, device_s: float) -> Category:
        """Where less work wins its time: on the device, or out of the host's launching where that is most of what the replay won."""
        return Category.LAUNCH_GAP if self.seconds(change) > MOSTLY_HOST * device_s else Category.COMPUTE

    def device_gain(self, low_s: float, high_s: float, basis: str) -> Gain:
        """A saving of device time, less what the host keeps of it: a device that is done sooner may only wait longer."""
        curves = self.evidence.series(gains.LESS_DEVICE_WORK)
        if len(curves) != 1 or len(curves[0].x) < 2:
            return self.gain(low_s, high_s, basis)
        curve = curves[0]
        low, high = (float(np.interp(s, curve.x, curve.values)) for s in (low_s, high_s))
        kept = low_s > 0 and low < HOST_KEEPS * low_s
        most = min(REPLAY_SPREAD * high, high_s)
        return self.gain(low, most, f"{basis}; replayed, the host keeps part of it" if kept else basis)

    def is_optional(self, gain: Gain) -> bool:
        """True when even the better end is below what is worth acting on."""
        return self.share(gain.high_s) < WORTH_FIXING

    def series(self, quantity: Quantity) -> Series | None:
        """Its values step by step, of the rank with most steps."""
        found = self.evidence.series(quantity)
        return max(found, key=lambda s: len(s.values), default=None)

    def steps_with(self, quantity: Quantity) -> tuple[int, int]:
        """In how many steps this takes a noticeable part, and of how many."""
        series = self.series(quantity)
        if series is None:
            return 0, self.steps
        usual = self.seconds(traced.STEP_MEDIAN) or self.step_s
        return int((series.values > NOTICEABLE * usual).sum()), len(series.values)

    def only_at_first(self, quantity: Quantity) -> bool:
        """True when of several steps only the first has it: the run, or its recording, was just beginning."""
        series = self.series(quantity)
        if series is None or len(series.values) < 3:
            return False
        usual = self.seconds(traced.STEP_MEDIAN) or self.step_s
        long = series.values > NOTICEABLE * usual
        return bool(long[0]) and not long[1:].any()

    @cached_property
    def memory_share(self) -> float:
        """Peak device memory over capacity; NaN where nobody recorded it."""
        total = self.evidence.value(GPU_MEMORY_TOTAL)
        total = total if total == total else self.evidence.value(traced.MEMORY_CAPACITY)
        used = self.evidence.value(GPU_MEMORY_USED)
        used = used if used == used else self.evidence.value(traced.MEMORY_PEAK)
        return used / total if total and total == total else float("nan")


def _between(gain: Gain, likely_s: float) -> float:
    return min(max(likely_s, gain.low_s), gain.high_s)


def ms(seconds: float) -> str:
    """Seconds as people read them."""
    return show(seconds, Unit.SECOND)


def percent(share: float) -> str:
    """A share as people read it."""
    return show(share, Unit.SHARE)


def bytes_text(size: float) -> str:
    """Bytes as people read them."""
    return show(size, Unit.BYTE)
