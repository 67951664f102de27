"""One block of steps of one side, and the switch between the sides."""

from __future__ import annotations

import gc
import math
from typing import Any, Callable, Generator, Optional

from stallwise.experiment import results
from stallwise.experiment.change import Change, Undo
from stallwise.experiment.device import Device
from stallwise.experiment.guard import Guard
from stallwise.experiment.numerics import Losses

MOST_SETTLE = 64  # steps


class Failed(Exception):
    """The trial cannot go on; the job can."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(text)
        self.state = state
        self.text = text


class Block:
    """What a block took."""

    def __init__(self, step_s: float, clock_mhz: float = 0.0, slowed: bool = False) -> None:
        self.step_s = step_s
        self.clock_mhz = clock_mhz
        self.slowed = slowed


class Trying:
    """The change that is being tried, and whether it is in force."""

    def __init__(self, scene: Any, throttle: Any, now: Callable[[], float], ranks: Any, memory_share: float) -> None:
        self.current: Optional[Change] = None
        self.changed = False
        self.broken: Optional[Failed] = None
        self._scene = scene
        self._device = Device(scene.torch)
        scene.failed = self.fail
        self.losses = Losses(scene.torch)
        self._throttle = throttle
        self._now = now
        self._ranks = ranks
        self._memory_share = memory_share
        self._undo = Undo()
        self._around = Undo()
        self._guard: Optional[Guard] = None
        self._peak = {False: 0, True: 0}
        self._used_before = 0

    def begin(self, change: Change) -> None:
        """A trial begins, as is."""
        self.current, self.broken = change, None
        self._peak = {False: 0, True: 0}
        if self._scene.device == "cuda":
            self._used_before = self._device.peak_bytes()
        self.losses.begin()
        self._guard = Guard(self._scene, lambda: self.changed, self.fail, self.losses.add)
        self._guard.stand()
        change.begin(self._scene, self._around)

    def end(self, result: Any) -> None:
        """A trial is over: everything as before it."""
        self.leave()
        result.more.update(self.losses.about())
        if self._peak[True] and self._peak[False]:
            result.more["memory_more_bytes"] = self._peak[True] - self._peak[False]

    def leave(self) -> None:
        """Back to as is, whatever was going on."""
        self.switch(False)
        self._around.back()
        if self._guard is not None:
            self._guard.leave()
        self._guard = self.current = None

    def step(self) -> None:
        """A step of the job has ended."""
        if self.current is not None and self.changed:
            self.current.on_step(self._scene)

    def switch(self, changed: bool) -> None:
        """To the other side, or back."""
        if changed == self.changed:
            return
        if not changed:
            self.changed = False
            self._undo.back()
            return
        self.changed = True
        try:
            assert self.current is not None
            self.current.apply(self._scene, self._undo)
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """The change does not work here: back at once, wherever the job is."""
        self.switch(False)
        text = " ".join(("%s: %s" % (type(error).__name__, error)).split())[:300]
        memory = "OutOfMemory" in type(error).__name__ or "out of memory" in str(error).lower()
        self.broken = Failed(results.MEMORY if memory else results.FAILED, text)
        self._ranks.fail(text)
        error.__traceback__ = None  # its frames hold the activations of the step that failed
        if memory:
            gc.collect()
            if self._scene.device == "cuda":
                self._device.give_back()

    def check(self) -> None:
        """Raises where this rank or another has failed, or the memory is above what was allowed."""
        if self._ranks.world > 1:
            decided = self._ranks.decide(self._ranks.failures() if self._ranks.leads else [])
            if decided and self.broken is None:
                self.broken = Failed(results.FAILED, str(decided[0]))
        if self.broken is None and self.changed and self._scene.device == "cuda":
            used = self._device.peak_bytes()
            if used > self._memory_share * self._device.memory_bytes() and used > self._used_before:
                self.broken = Failed(
                    results.MEMORY, "more than %.0f%% of the device's memory" % (100 * self._memory_share)
                )
        if self.broken is not None:
            self.switch(False)
            raise self.broken

    def _check_loss(self, changed: bool) -> None:
        """Raises where the loss is no number any more, or another than as is: the change is undone."""
        wrong = self.losses.block_ended(changed)
        if self.current is None or not self.current.keeps_loss:
            return
        wrong = self._ranks.decide(wrong or self.losses.differ())
        if wrong:
            self.switch(False)
            raise Failed(results.LOSS, str(wrong))

    def sync(self) -> None:
        """The device has done all it was given."""
        self._device.drain()

    def _settle(self, changed: bool, settle: int) -> int:
        """To the other side, and how many steps are to settle after it: a switch that took a while has let queues fill and the
        device cool, so the loop runs as long again before it is timed. What one side has queued is done before the other begins."""
        if changed == self.changed:
            return min(settle, 1)  # nothing is switched; the queue that the last block's end has drained fills again
        self.sync()
        began = self._now()
        self.switch(changed)
        paused = math.ceil((self._now() - began) / max(self._scene.step_s, 1e-9) - 0.5)
        return int(self._ranks.decide(max(settle, min(paused, MOST_SETTLE))))

    def block(self, changed: bool, steps: int, settle: int) -> Generator[int, None, Block]:
        """Some steps to settle, then those that are timed; the device is waited for before the first and after the last of them."""
        settle = self._settle(changed, settle)
        if settle:
            yield settle
            self.check()
        # The job's own counters are otherwise the job's.
        watched = self._scene.rehearsal and self._scene.device == "cuda"
        if watched:
            self._device.forget_peak()
        if self._throttle is not None:
            self._throttle.since()
        began = self._device.mark(self._now)
        yield steps
        took_s = self._device.seconds(began, self._device.mark(self._now))
        self.check()
        self._check_loss(changed)
        if watched:
            self._peak[changed] = max(self._peak[changed], self._device.peak_bytes())
        seen = self._throttle.since() if self._throttle is not None else {}
        return Block(took_s / steps, seen.get("clock_mhz", 0.0), bool(seen.get("slowed")))
