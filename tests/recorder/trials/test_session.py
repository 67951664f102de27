"""The plan on a clock of ours: a simulated job whose steps take what we say, with and without the change."""

from __future__ import annotations

import math
import random
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stallwise.experiment import paired
from stallwise.experiment.change import Change, Undo
from stallwise.experiment.options import Options
from stallwise.experiment.ranks import Disagreement, Ranks
from stallwise.experiment.results import Result, Results
from stallwise.experiment.scene import Scene
from stallwise.experiment.session import Session
from stallwise.experiment.throttle import Throttle
from stallwise.experiment.together import Together


class FakeCuda:
    """No device."""

    @staticmethod
    def is_initialized() -> bool:
        return False


TORCH = SimpleNamespace(cuda=FakeCuda, __version__="2.0")


class Said(Change):
    """A change with an effect on a job's clock."""

    def __init__(self, name: str = "said", ratio: float = 1.0, once_s: float = 0.0, fails_at: int = 0) -> None:
        self.name = self.title = self.needs = name
        self.ratio, self.once_s, self.fails_at = ratio, once_s, fails_at
        self.on = False
        self.applied = self.undone = 0

    def apply(self, scene: Any, undo: Undo) -> None:
        self.applied += 1
        if self.fails_at < 0:
            raise RuntimeError("cannot be applied")
        self.on = True
        undo.later(self._off)

    def _off(self) -> None:
        self.on = False
        self.undone += 1


class Job:
    """Steps on a clock of our own."""

    def __init__(
        self, changes: list[Said], step_s: float = 0.05, noise: float = 0.005, seed: int = 3, **how: Any
    ) -> None:
        self.now_s = 0.0
        self.changes = changes
        self.step_s = step_s
        self.noise = noise
        self.chance = random.Random(seed)
        self.recorder = SimpleNamespace(
            last_step_s=0.0,
            number=0,
            window=None,
            not_the_jobs=lambda s: None,
            boundaries=SimpleNamespace(kind="optimizer"),
            stages=SimpleNamespace(captured_graphs=False),
        )
        self.scene = Scene(TORCH, self.recorder)
        self.scene.look = lambda watched: None  # type: ignore[method-assign]
        self.scene.looked = lambda: None  # type: ignore[method-assign]
        folder = how.pop("folder")
        self.out = Results(str(folder))
        self.session = Session(
            self.scene,
            changes,
            Options(**how.pop("options", {})),
            self.out,
            now=lambda: self.now_s,
            **how,  # type: ignore[arg-type]
        )
        self.session._trying._guard = None
        self.first = {c.name: True for c in changes}

    def step(self) -> None:
        took = self.step_s * (1 + 0.1 * self.now_s / 100) * (1 + self.noise * self.chance.gauss(0, 1))
        for change in self.changes:
            if change.on:
                took /= change.ratio
                if self.first[change.name]:
                    took += change.once_s
                    self.first[change.name] = False
        self.now_s += took
        self.recorder.last_step_s = took
        self.recorder.number += 1
        self.session.on_step(self.recorder.number)

    def run(self, most: int = 100_000) -> dict[str, Any]:
        for _ in range(most):
            self.step()
            if self.session.over:
                break
        return {r.name: r for r in self.out.trials}


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guards stand around real models; here there are none."""
    from stallwise.experiment.guard import Guard

    monkeypatch.setattr(Guard, "stand", lambda self: None)


def test_a_gain_is_found_with_its_interval_and_the_one_off_cost_apart(tmp_path: Path) -> None:
    job = Job([Said("good", 1.24, once_s=9.0)], folder=tmp_path)
    found = job.run()["good"]
    assert found.state == "faster" and found.estimate.low < 1.24 < found.estimate.high
    assert found.estimate.high - found.estimate.low < 0.08
    assert found.more["one_off_s"] == pytest.approx(9.0, abs=0.2)
    assert job.session.out.about["ended"] == "done" and (tmp_path / "trials.json").is_file()


def test_both_sides_are_made_in_random_order_and_undone_as_often_as_applied(tmp_path: Path) -> None:
    change = Said("good", 1.1)
    orders = set()
    for seed in range(6):
        job = Job([change], folder=tmp_path, options={"seed": seed})
        job.run()
        orders.add(change.applied)
    assert change.applied == change.undone and not change.on
    assert len(orders) > 1


def test_nothing_is_no_difference_and_a_loss_is_a_loss(tmp_path: Path) -> None:
    found = Job([Said("nothing", 1.0), Said("worse", 0.8), Said("hopeless", 0.1)], noise=0.002, folder=tmp_path).run()
    assert found["nothing"].state == "no difference" and found["worse"].state == "slower"
    assert found["hopeless"].state == "slower" and "times as slow" in found["hopeless"].why


def test_nothing_changed_over_two_hundred_blocks(tmp_path: Path) -> None:
    """A/A: nine intervals out of ten hold no difference."""
    blocks = wrong = trials = 0
    for seed in range(12):
        job = Job(
            [Said("nothing", 1.0)],
            noise=0.04,
            seed=seed,
            folder=tmp_path,
            options={"seed": seed, "repeat": 10, "budget_s": 1e6},
        )
        job.run()
        for result in job.out.trials:
            trials += 1
            blocks += 2 * result.estimate.pairs
            wrong += result.estimate.excludes_none()
    assert trials == 120 and blocks >= 200
    assert wrong <= 0.1 * trials


def test_a_machine_that_becomes_slow_is_no_slow_change(tmp_path: Path) -> None:
    """Somebody else's load comes with the first changed steps and stays: the steps as they are take as long from then on."""

    class Crowded(Job):
        def step(self) -> None:
            self.step_s = 0.05 if not change.applied else 0.25
            super().step()

    change = Said("nothing", 1.0)
    found = Crowded([change], noise=0.002, folder=tmp_path, options={"budget_s": 600.0}).run()["nothing"]
    assert found.state == "no difference" and not found.why


def test_a_pause_before_one_side_does_not_count_for_it(tmp_path: Path) -> None:
    """The way back takes half a second, in which queues fill and the device cools: the steps after it run faster for a while."""

    class Rests(Said):
        def _off(self) -> None:
            super()._off()
            job.now_s += 0.5
            job.rested_until_s = job.now_s + 0.4

    class Rested(Job):
        rested_until_s = 0.0

        def step(self) -> None:
            self.step_s = 0.045 if self.now_s < self.rested_until_s else 0.05
            super().step()

    job = Rested([Rests("nothing", 1.0)], noise=0.002, folder=tmp_path)
    assert job.run()["nothing"].state == "no difference"


def test_noise_that_hides_everything_is_inconclusive_and_says_what_would_show(tmp_path: Path) -> None:
    found = Job([Said("little", 1.01)], noise=1.5, folder=tmp_path, options={"budget_s": 60}).run()["little"]
    assert found.state in ("inconclusive", "no difference") and found.more["detectable_ratio"] > 1.02


def test_the_best_two_are_tried_together(tmp_path: Path) -> None:
    job = Job([Said("one", 1.5), Said("two", 1.2), Said("none", 1.0)], folder=tmp_path)
    job.run()
    both = job.out.together
    assert both is not None and both["of"] == ["one", "two"]
    assert both["ratio"] == pytest.approx(1.8, rel=0.05) and both["adds"] == "they add"


@pytest.mark.parametrize(
    ("ratio", "half", "word"),
    [
        (1.8, 0.02, "they add"),
        (1.5, 0.02, "less than both: they win part of the same time"),
        (2.2, 0.02, "more than both: one makes room for the other"),
        (1.8, 0.9, "whether they add is not known"),
        (1.02, 0.05, "whether they add is not known"),
        (1.8, math.inf, "whether they add is not known"),
    ],
)
def test_a_pair_that_is_inconclusive_is_not_said_to_add(ratio: float, half: float, word: str) -> None:
    one, other = Said("one", 1.5), Said("two", 1.2)
    alone = [Result(one), Result(other)]
    for result, known in zip(alone, (1.5, 1.2), strict=True):
        result.estimate = paired.Estimate(math.log(known), 0.01, 10)
    both = Together(one, other)
    measured = Result(both)
    measured.estimate = paired.Estimate(math.log(ratio), half, 10)
    assert both.adds(measured, alone)["adds"] == word


def test_what_is_expected_to_save_most_comes_first_and_what_was_not_reached_is_listed(tmp_path: Path) -> None:
    little, much, dear = Said("a-little", 1.1), Said("z-much", 1.9), Said("m-dear", 1.9)
    little.usual, much.usual, dear.usual, dear.costly = 0.05, 0.6, 0.6, True
    job = Job([little, dear, much], folder=tmp_path)
    while not little.applied and not dear.applied:
        job.step()
    job.session.stop("the job ended before its trials")
    states = {r.name: (r.state, r.why) for r in job.out.trials}
    assert next(iter(states)) == "z-much" and states["z-much"][0] == "faster"
    assert (
        states["a-little"] == ("not reached", "the job ended before its trials") or states["m-dear"][0] == "not reached"
    )
    assert len(states) == 3


def test_a_job_that_ends_in_the_middle_of_a_trial_keeps_what_its_pairs_say(tmp_path: Path) -> None:
    change = Said("good", 1.05)
    job = Job([change], folder=tmp_path, noise=0.004, options={"budget_s": 1e6})
    while not job.out.trials and change.applied < 9:
        job.step()
    job.session.stop("the job ended before its trials")
    found = {r.name: r for r in job.out.trials}["good"]
    assert found.estimate is not None and found.state in ("faster", "inconclusive")


def test_a_trial_that_cannot_be_applied_is_undone_and_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    found = Job([Said("bad", 1.0, fails_at=-1), Said("good", 1.3)], folder=tmp_path).run()
    assert found["bad"].state == "failed" and "cannot be applied" in found["bad"].why
    assert found["good"].state == "faster"


def test_out_of_memory_has_its_own_word(tmp_path: Path) -> None:
    class Hungry(Said):
        def apply(self, scene: Any, undo: Undo) -> None:
            raise MemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    assert Job([Hungry("hungry")], folder=tmp_path).run()["hungry"].state == "out of memory"


def test_a_trial_that_does_not_apply_says_why_and_a_dry_run_only_lists(tmp_path: Path) -> None:
    class Refused(Said):
        def refuses(self, scene: Any) -> str:
            return "there is no loader"

    job = Job([Refused("refused"), Said("good", 1.3)], folder=tmp_path, options={"dry_run": True})
    found = job.run()
    assert found["refused"].state == "not applicable" and found["refused"].why == "there is no loader"
    assert found["good"].state == "would be tried" and found["good"].estimate is None
    assert job.changes[1].applied == 0


def test_time_is_kept(tmp_path: Path) -> None:
    changes = [Said(f"c{n}", 1.0 + n / 50) for n in range(6)]
    job = Job(changes, noise=0.05, folder=tmp_path, options={"budget_s": 20.0})
    job.run()
    assert job.now_s < 20.0 + 8.0  # the warm-up comes before it


def test_every_trial_gets_as_far_as_an_interval(tmp_path: Path) -> None:
    class Slow(Said):
        def settle_steps(self, scene: Any) -> int:
            return 24  # batches that loader workers have ready

    changes = [Slow("input"), Said("one"), Said("two"), Said("three")]
    job = Job(changes, step_s=0.068, noise=0.01, folder=tmp_path, options={"budget_s": 62.0})
    found = job.run()
    assert all(r.state == "no difference" and r.estimate.high < 1.02 for r in found.values()), found
    assert job.now_s < 62.0 + 10.0


def test_an_interrupt_undoes_at_once_and_keeps_what_is_known(tmp_path: Path) -> None:
    change = Said("good", 1.3)
    job = Job([Said("first", 1.0), change], folder=tmp_path)
    while not change.on:
        job.step()
    job.session.stop("interrupted")
    assert not change.on and job.session.over
    assert {r.name: r.state for r in job.out.trials}["good"] == "interrupted"
    assert '"ended": "interrupted"' in (tmp_path / "trials.json").read_text()
    job.step()  # nothing more happens
    assert change.applied == change.undone


def test_a_throttled_pair_is_taken_again_and_then_marked(tmp_path: Path) -> None:
    class Hot:
        def since(self) -> dict[str, float]:
            return {"clock_mhz": 1200.0, "slowed": 1.0}

    found = Job([Said("good", 1.3)], folder=tmp_path, throttle=Hot()).run()["good"]
    assert "throttled" in found.more and found.more["clock_before_mhz"] == 1200.0


def test_clocks_are_read_from_what_nvidia_smi_appends(tmp_path: Path) -> None:
    file = tmp_path / "nvidia_smi.csv"
    head = "timestamp, index, clocks.current.sm [MHz], clocks_event_reasons.active\n"
    file.write_text(head + "t, 0, 1980 MHz, 0x0000000000000000\nt, 1, 300 MHz, 0x0000000000000040\n")
    throttle = Throttle(str(tmp_path), "0")
    assert throttle.since()["clock_mhz"] == 1980.0
    with file.open("a") as stream:
        stream.write("t, 0, 1200 MHz, 0x0000000000000040\nt, 0, 14")
    seen = throttle.since()
    assert seen["clock_mhz"] == 1200.0 and seen["slowed"] == 1.0
    assert "clock_mhz" not in throttle.since()


def test_ranks_follow_the_first_one_and_hear_of_each_other(tmp_path: Path) -> None:
    heard: dict[int, Any] = {}

    def rank(number: int) -> None:
        ranks = Ranks(str(tmp_path), number, 3)
        heard[number] = (ranks.decide(f"from {number}"), ranks.gather({"me": number}))
        if number == 2:
            ranks.fail("no room")

    threads = [threading.Thread(target=rank, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(said == "from 0" for said, _ in heard.values())
    assert heard[1][1] == [{"me": 0}, {"me": 1}, {"me": 2}]
    assert Ranks(str(tmp_path), 0, 3).failures() == ["rank 2: no room"]


def test_a_rank_that_never_comes_ends_the_trials_and_not_the_job(tmp_path: Path) -> None:
    clock = iter(range(0, 10_000_000, 50))
    lonely = Ranks(str(tmp_path), 1, 2, now=lambda: float(next(clock)), sleep=lambda s: None)
    with pytest.raises(Disagreement):
        lonely.decide(None)
    change = Said("good", 1.3)
    job = Job([change], folder=tmp_path, ranks=lonely)
    job.run(400)
    assert job.session.over and not change.on
