"""The trials of one job, written as a plan that is handed the job's steps.

The plan is a generator: each `yield n` gives the job n steps; it goes on at the border of the last of them. So the schedule
reads from top to bottom, and between the borders nothing of it runs.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple

from stallwise.experiment import budget, paired, report, results
from stallwise.experiment.block import Block, Failed, Trying
from stallwise.experiment.change import Change
from stallwise.experiment.first_steps import ONCE_S, expected, ordered, stage_shares
from stallwise.experiment.options import Options
from stallwise.experiment.ranks import Alone, Disagreement
from stallwise.experiment.results import Result, Results
from stallwise.experiment.scene import Scene
from stallwise.experiment.together import Together, best_pair
from stallwise.experiment.verdict import Verdict
from stallwise.recorder.error_origin import ours, say
from stallwise.recorder.settling import Settling

LOOKED_AT = 4  # steps over which models, loaders and calls are counted
CHECK_EVERY = 8  # steps between two decisions of several ranks on whether the loop has settled
# A border costs the refill of the queue, some milliseconds. What disturbs a machine lasts seconds: short blocks and many pairs.
LEAST_BLOCK_S, MOST_BLOCK_S = 0.15, 2.0
NOISE_FROM = 24  # steps: the last of the warm-up, as many as tell a spread
# Changed steps before the first block: compiling, autotuning and allocating are done by then.
FEWEST_ONCE, MOST_ONCE = 3, 24
HOPELESS = 3.0  # times as slow once it has settled: no reason to make whole blocks of it
ALIKE, LITTLE = 1.5, 0.1  # the last of them differ no more than this, or by no more than this part of a step as is
WAITED_FOR = 48  # more steps as is for a trial that has not yet seen what it needs
REPEATS_HELD_BACK = 3  # pairs taken again because the machine was throttled; then the trial is marked
OTHER_CLOCK = 0.03  # clocks of the two sides this far apart are said
ROOM_S = 5.0  # of the budget, left for the best pair

Plan = Generator[int, None, None]


class Session:
    """Follows the plan at every step's end. `first` records and diagnoses some steps before the first trial."""

    def __init__(
        self,
        scene: Scene,
        changes: List[Change],
        options: Options,
        out: Results,
        ranks: Optional[Alone] = None,
        throttle: Any = None,
        first: Callable[[], Generator[int, None, Verdict]] = lambda: _unasked(),
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.scene = scene
        self.options = options
        self.out = out
        self.over = False
        self.left = False  # the job has been told to end
        self._changes = options.chosen(changes)
        self._ranks = ranks or Alone()
        self._now = now
        self._random = random.Random(options.seed)
        self._settling = Settling(now)
        self._durations: List[float] = []
        self._trying = Trying(scene, throttle, now, self._ranks, options.memory_share)
        self._first = first
        self._verdict = Verdict()
        self._thread = 0
        self._left = 0
        self._budget = budget.Budget(options.budget_s, options.max_steps, now)
        self._running: Optional[Tuple[Result, paired.Looks]] = None
        self._due: List[Change] = []  # trials that are still to be made
        self._plan = self._whole()

    # -- the job's steps

    def on_step(self, number: int) -> None:
        """`number` steps have ended."""
        if self.over:
            return
        if self._thread not in (0, threading.get_ident()):
            return  # another thread's steps are not in the plan
        self._trying.step()
        self._budget.steps += 1
        if self._left > 0:
            self._durations.append(self.scene.recorder.last_step_s)
            self._left -= 1
        if self._left > 0 and not self._trying.broken:
            return
        recorder, began = self.scene.recorder, time.perf_counter()
        self._advance()
        recorder.not_the_jobs(time.perf_counter() - began)

    def _advance(self) -> None:
        try:
            self._left = next(self._plan)
        except StopIteration:
            self._end()
        except Disagreement as error:
            self._end()
            say("the trials end here: %s" % error)
        except Exception as error:
            self._end()
            if not ours(error):
                raise
            say("the trials end here (%s: %s)" % (type(error).__name__, error))

    def stop(self, why: str = "interrupted") -> None:
        """Undoes whatever is changed and ends the plan: Ctrl-C, the end of the job."""
        if self.over:
            return
        if self._trying.current is not None:
            self.out.trials.append(self._so_far(self._trying.current, why))
            self._due = self._due[1:]
        self._end(why)

    def _so_far(self, change: Change, why: str) -> Result:
        """Of a trial that is cut short: what its pairs say, where they say something."""
        if self._running is not None:
            result, looks = self._running
            if result.name == change.name and len(looks.differences) >= paired.LOOKS[0][0] and looks.decides():
                result.estimate = looks.look()
                result.state = result.estimate.verdict()
                result.more.update(detectable_ratio=looks.detectable(), one_off_s=0.0)
                return result
        return Result(change, results.STOPPED, why)

    def _end(self, why: str = "") -> None:
        self.over = True
        self._trying.leave()
        self.out.about.update(steps=self._budget.steps, took_s=self._budget.took_s())
        self.scene.looked()
        self.scene.recorder.window = None
        if why:
            self.out.about["ended"] = why
        self.out.about.setdefault("ended", "done")
        self.out.trials += [Result(change, results.NOT_REACHED, why) for change in self._due]
        self._due = []
        self.out.write()

    # -- the plan

    def _whole(self) -> Plan:
        yield from self._warm_up()
        yield from self._look()
        recent = self._durations[-NOISE_FROM:]
        if self._ranks.world > 1:
            recent = self._ranks.decide(recent)
        able = self._sorted_out()
        if not self.options.dry_run:
            self._verdict = yield from self._first()
        tried = self._in_order(able)
        self._describe(recent)
        if self.options.dry_run:
            return
        self._budget.begin()
        self.scene.recorder.window = "trial"
        shares = len(tried) + (len(tried) > 1)  # the best pair is one more
        for place, change in enumerate(tried):
            part_s = self._budget.part_s(shares - place, self.scene.step_s, self._part(change, place))
            result = yield from self._try(change, recent, part_s)
            self._due.pop(0)
            self.out.add(result)
            self._report(result)
        yield from self._together(tried, recent)
        report.noise(self.out)
        self.scene.recorder.window = None
        self.out.about["ended"] = "done"
        self.out.write()

    def _warm_up(self) -> Plan:
        """Until the loop has settled; several ranks look at the same steps."""
        number, every = 0, CHECK_EVERY if self._ranks.world > 1 else 1
        while True:
            seen = len(self._durations)
            yield every
            number += every
            for duration_s in self._durations[seen:]:
                self._settling.add(duration_s)
            self._thread = threading.get_ident()
            if self._ranks.decide(self._settling.ready(number)):
                return

    def _look(self) -> Plan:
        """What the job consists of."""
        self.scene.look(self._changes)
        seen = len(self._durations)
        for _ in range(LOOKED_AT):
            yield 1
            self.scene.step()
        self.scene.looked()
        del self._durations[seen:]  # slowed by looking
        self.scene.step_s = statistics.median(self._durations[-NOISE_FROM:])
        self.scene.shares = stage_shares(self.scene.recorder)

    def _sorted_out(self) -> List[Change]:
        """Which trials can be made here; the others are listed with their reasons."""
        tried: List[Change] = []
        own: Dict[str, Optional[str]] = {c.name: self._refusal(c) for c in self._changes}
        by_rank = self._ranks.gather(own) if self._changes else []
        for change in self._changes:
            reasons = [r[change.name] for r in by_rank if r.get(change.name)]
            if reasons and (self.options.dry_run or not change.asked_late):
                self.out.add(Result(change, results.NOT_HERE, str(reasons[0])))
            elif self.options.dry_run:
                self.out.add(Result(change, results.WOULD))
            else:
                tried.append(change)
        return tried

    def _in_order(self, able: List[Change]) -> List[Change]:
        """The verdict's own trial first; rank 0's order holds for all."""
        best_first = ordered(able, self.scene, self._verdict, self.options.budget_s)
        places = self._ranks.decide([[c.name for c in self._changes].index(c.name) for c in best_first])
        self._due = [self._changes[place] for place in places for _ in range(self.options.repeat)]
        return list(self._due)

    def _part(self, change: Change, place: int) -> float:
        """Of what is left, for this trial. One that is made again and again gets equal parts."""
        if self.options.repeat > 1:
            return 0.0
        if not any(self._verdict.shares.get(cause, 0.0) > 0 for cause in change.causes):
            return budget.OTHER
        return budget.PROOF if place == 0 else budget.NAMED

    def _block_steps(self, change: Change, recent: List[float], settle: int, part_s: float) -> int:
        """Steps of a block: as many as show what is expected, within what this trial may cost."""
        most_s = max(LEAST_BLOCK_S, min(MOST_BLOCK_S, part_s / (2 * paired.LOOKS[1][0])))
        effect = self._effect(change)
        least_s = LEAST_BLOCK_S / (2 if effect > 0.5 else 1)  # a large gain shows beside the refill of a queue
        steps, _ = paired.block_steps(recent, least_s, most_s, effect)
        return paired.fitting(steps, settle, self.scene.step_s, part_s, least_s)

    def _effect(self, change: Change) -> float:
        """The smallest gain that its blocks are to show: half of what the diagnosis expects, or what is worth a change at all."""
        if not any(cause in self._verdict.shares for cause in change.causes):
            return paired.WORTH
        share = min(0.9, expected(change, self.scene, self._verdict))
        return max(paired.WORTH, 0.5 * share / (1.0 - share))

    def _refusal(self, change: Change) -> Optional[str]:
        try:
            return change.refuses(self.scene)
        except Exception as error:
            return "its test failed: %s: %s" % (type(error).__name__, error)

    def _try(self, change: Change, recent: List[float], part_s: float) -> Generator[int, None, Result]:
        result, trying = Result(change), self._trying
        began = self._now()
        refused = self._ranks.decide(self._refusal(change))
        if refused and change.asked_late:
            steps_s = max(self.scene.step_s, 1e-9)
            yield self._ranks.decide(max(1, min(WAITED_FOR, int(part_s / 4 / steps_s))))
            refused = self._ranks.decide(self._refusal(change))
        if refused:
            return Result(change, results.NOT_HERE, str(refused))
        settle = change.settle_steps(self.scene)
        steps = self._block_steps(change, recent, settle, part_s)
        settle, steps = self._ranks.decide([settle, change.block_steps(self.scene, steps)])
        expected_s = 2 * paired.LOOKS[0][0] * (steps + settle) * self.scene.step_s
        if change.costly and any(r.estimate for r in self.out.trials):  # the only answer may cost all of the time
            expected_s += ONCE_S / 2
        if self._ranks.decide(expected_s > self._budget.left_s(self.scene.step_s)):
            why = "its first look would take %.0f s" % expected_s
            why = "the time for trials was used up" if self._budget.over() else why
            return Result(change, results.NOT_REACHED, why + "; --seconds gives more")
        trying.begin(change)
        try:
            yield from self._once(change, result, settle)
            until_s = max(began + part_s, self._now() + part_s / 2)  # whatever the one-off part took
            yield from self._pairs(change, result, steps, settle, until_s)
        except Failed as failed:
            result.state, result.why, result.estimate = failed.state, failed.text, None
        finally:
            trying.end(result)
        return result

    def _once(self, change: Change, result: Result, settle: int) -> Plan:
        """Changed steps that count for nothing but the one-off cost."""
        self._trying.switch(True)
        began, seen = self._now(), len(self._durations)
        for count in range(1, MOST_ONCE + 1):
            yield 1
            self._trying.check()
            last = self._durations[seen:][-3:]
            # What is left of a step after a large gain may vary much and still be little.
            alike = max(last) <= max(ALIKE * min(last), min(last) + LITTLE * self.scene.step_s)
            steady = count >= max(FEWEST_ONCE, settle) and alike
            if self._ranks.decide(self._budget.over()):
                raise Failed(results.NOT_REACHED, "its one-off part alone took %.0f s" % (self._now() - began))
            if self._ranks.decide(steady):
                break
        if self._ranks.decide(min(last) > HOPELESS * self.scene.step_s * change.work_ratio):
            slow_s, since, aside = min(last), len(self._durations), self._now()
            self._trying.switch(False)
            self._trying.sync()
            yield max(FEWEST_ONCE, settle)  # the machine itself may have become as slow meanwhile
            if self._ranks.decide(slow_s > HOPELESS * max(self._durations[since:]) * change.work_ratio):
                raise Failed(
                    paired.SLOWER, "%.0f times as slow in its first steps; left at that" % (slow_s / self.scene.step_s)
                )
            self._trying.switch(True)
            yield max(1, settle)
            self._trying.check()
            began += self._now() - aside
        self._trying.sync()
        result.more["one_off_s"] = self._now() - began  # the steady part is taken off when it is known
        result.more["one_off_steps"] = count
        del self._durations[seen:]

    def _pairs(self, change: Change, result: Result, steps: int, settle: int, until_s: float) -> Plan:
        looks, repeats = paired.Looks(), REPEATS_HELD_BACK
        self._running = result, looks
        clocks: Dict[bool, List[float]] = {False: [], True: []}
        sides: List[bool] = []
        while True:
            if len(sides) < 2:
                sides = self._random.choice(([False, True], [True, False]))
                sides = sides + sides[::-1]  # the next pair has the other order
            order, sides = sides[:2], sides[2:]
            blocks: Dict[bool, Block] = {}
            for changed in order:
                blocks[changed] = yield from self._trying.block(changed, steps, settle)
            held_back = any(b.slowed for b in blocks.values())
            if self._ranks.decide(held_back and repeats > 0):
                repeats -= 1
                continue
            for changed, block in blocks.items():
                clocks[changed] += [block.clock_mhz] if block.clock_mhz else []
            if held_back:
                result.more["throttled"] = "the machine was throttled in some of its blocks"
            result.before_s.append(blocks[False].step_s)
            result.after_s.append(blocks[True].step_s / change.work_ratio)
            looks.add(result.before_s[-1], result.after_s[-1], changed_first=order[0])
            over = self._budget.over()
            out_of_time = over or self._now() > until_s
            enough = len(looks.differences) >= paired.LOOKS[0][0] and (over or looks.decides())
            last = out_of_time and enough
            if self._ranks.decide(looks.due() or last):
                result.estimate = looks.look()
                if self._ranks.decide(result.estimate.clear() or looks.full() or last):
                    break
        result.state = result.estimate.verdict()
        result.more.update(
            steps_per_block=steps, detectable_ratio=looks.detectable(),
            one_off_s=max(0.0, result.more["one_off_s"] - result.more["one_off_steps"] * result.after_s[-1] * change.work_ratio),
        )  # fmt: skip
        _say_clocks(result, clocks)

    def _together(self, tried: List[Change], recent: List[float]) -> Plan:
        """The best two at once: do their gains add?"""
        pair = self._ranks.decide([c.name for c in best_pair(tried, self.out.trials)])
        if len(pair) < 2 or self._ranks.decide(self._budget.over()):
            return
        one, other = (next(c for c in tried if c.name == name) for name in pair)
        both = Together(one, other)
        result = yield from self._try(both, recent, max(ROOM_S, self._budget.left_s(self.scene.step_s)))
        self.out.together = {**result.to_dict(), **both.adds(result, self.out.trials)}
        self.out.write()
        self._report(result)

    # -- output

    def _describe(self, recent: List[float]) -> None:
        """What is agreed before the first trial."""
        steps, noise = paired.block_steps(recent, LEAST_BLOCK_S, MOST_BLOCK_S)
        self.out.about.update(
            ranks=self._ranks.world,
            level=paired.LEVEL,
            seed=self.options.seed,
            budget_s=self.options.budget_s,
            verdict=self._verdict.to_dict(),
            **report.about(self.scene, recent, steps, noise),
        )
        self.out.write()
        if self._ranks.leads:
            say(report.opening(self.out.about, self._verdict))

    def _report(self, result: Result) -> None:
        if self._ranks.leads:
            say(report.line(result))


def _unasked() -> Generator[int, None, Verdict]:
    """No diagnosis: the order follows the stages of the first steps alone."""
    return Verdict()
    yield 0


def _say_clocks(result: Result, clocks: Dict[bool, List[float]]) -> None:
    if clocks[False] and clocks[True]:
        before, after = statistics.fmean(clocks[False]), statistics.fmean(clocks[True])
        result.more.update(clock_before_mhz=before, clock_after_mhz=after)
        if abs(after - before) > OTHER_CLOCK * before:
            result.more["clocks"] = "the clock was %.0f MHz as is and %.0f MHz changed" % (before, after)
