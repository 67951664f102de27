"""Blocks begin and end with an empty device, whatever a trial has replaced."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs CPU PyTorch: pip install torch", allow_module_level=True)

import torch
from tests.recorder.trials.jobs import recorded
from tests.recorder.trials.queued_device import QueuedDevice

from stallwise.experiment.change import Change, Undo
from stallwise.experiment.device import CALLED
from stallwise.experiment.options import Options
from stallwise.experiment.results import Results
from stallwise.experiment.scene import Scene
from stallwise.experiment.session import Session
from stallwise.experiment.trials import all_changes

pytestmark = [pytest.mark.torch]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[QueuedDevice]:
    device = QueuedDevice()
    device.stands_for_cuda(monkeypatch)
    yield device
    device.close()


def tried(change: Change, device: QueuedDevice, folder: Path, host_s: float, device_s: float) -> Any:
    """A loop that hands work to the device and waits for it every step, with one change tried in it."""
    with recorded(folder) as recorder:
        recorder._find_device = lambda: None  # it has no events
        recorder.now, recorder.last_end = (lambda: device.now_s), 0.0
        session = Session(
            Scene(torch, recorder),
            [change],
            Options(only=(change.name,), budget_s=20.0),
            Results(str(folder)),
            now=recorder.now,
        )
        recorder.step_listeners.append(session.on_step)
        while not session.over:
            device.host_works(host_s)
            device.launch(device_s)
            torch.cuda.synchronize()
            recorder.step()
        return session.out.trials[0]


def named(name: str) -> Change:
    return next(c for c in all_changes() if c.name == name)


def test_a_host_that_only_runs_ahead_wins_nothing(device: QueuedDevice, tmp_path: Path) -> None:
    """The device is busy all the time: without the wait the host is done sooner and the job is not."""
    found = tried(named("stale-reads"), device, tmp_path, host_s=0.0, device_s=0.03)
    assert found.estimate is not None, (found.state, found.why)
    assert found.estimate.ratio == pytest.approx(1.0, abs=0.001) and found.state == "no difference"


def test_a_wait_that_costs_the_hosts_time_is_worth_just_that(device: QueuedDevice, tmp_path: Path) -> None:
    """10 ms on the host, then 20 ms on the device and a wait for it: 30 ms a step, and 20 where they overlap."""
    found = tried(named("stale-reads"), device, tmp_path, host_s=0.01, device_s=0.02)
    assert found.state == "faster" and found.estimate.ratio == pytest.approx(1.5, rel=0.01)


class ReplacesAll(Change):
    """Every function that a border calls does nothing, or lies."""

    name = title = needs = "replaces-all"

    def apply(self, scene: Any, undo: Undo) -> None:
        for name in CALLED:
            undo.wrap(torch.cuda, name, lambda call: lambda *args, **kwargs: 0)


def test_no_function_of_the_device_that_a_trial_replaces_is_used_by_its_boundaries(
    device: QueuedDevice, tmp_path: Path
) -> None:
    found = tried(ReplacesAll(), device, tmp_path, host_s=0.0, device_s=0.03)
    assert found.estimate is not None, (found.state, found.why)
    assert found.estimate.ratio == pytest.approx(1.0, abs=0.001)
    assert device.drained >= 2 * 2 * found.estimate.pairs  # before and after both blocks of every pair
