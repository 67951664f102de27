"""Nothing is called sick where nothing ails, in the words of programs that no rule was written with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.measures.loss_trend import rises
from tests.causes.examined import diagnosis_of
from tests.healthy_controls.logs import healthy_logs

LOGS = healthy_logs()


@pytest.mark.parametrize("name", LOGS)
def test_calm_runs_are_not_called_sick(name: str) -> None:
    assert diagnosis_of(dict(LOGS[name])).state is not State.SICK


def scales(levels: Callable[[int], float], steps: int = 120) -> str:
    return "".join(f"step {i} loss {10.0 - i / 50:.3f} loss_scale {levels(i):g} time 0.400s\n" for i in range(steps))


def test_a_search_for_the_loss_scale_that_ends_is_normal_and_one_that_does_not_is_a_collapse() -> None:
    found = diagnosis_of(scales(lambda i: 2.0 ** max(32 - i, 15)))
    lost = diagnosis_of(scales(lambda i: 2.0 ** (32 - i)))
    fell_later = diagnosis_of(scales(lambda i: 2.0 ** (16 if i < 100 else 16 - (i - 99))))
    assert found.state is not State.SICK
    assert lost.ranked[0] == fell_later.ranked[0] == "loss-scale-collapse"
    assert lost.state is fell_later.state is State.SICK


def losses(rise: float, level: float = 10.9) -> str:
    noise = np.random.default_rng(5).normal(0.0, 0.03, 300)
    return "vocab_size: 50257\n" + "".join(
        f"step {i} loss {level + rise * i + noise[i]:.4f} time 0.410s\n" for i in range(300)
    )


def test_a_loss_above_chance_that_rises_is_a_complaint() -> None:
    rising, falling, low = (diagnosis_of(losses(*how)) for how in ((0.004,), (-0.004,), (0.001, 3.0)))
    assert "complained" in rising.why_unclear
    assert "complained" not in falling.why_unclear and "complained" not in low.why_unclear


@pytest.mark.parametrize("steps", [40, 400, 40_000])
def test_a_curve_that_wavers_does_not_rise_however_long_it_is(steps: int) -> None:
    noise = np.random.default_rng(steps)
    alarms = sum(rises(3.0 + noise.normal(0.0, 0.1, steps)) for _ in range(50))
    assert alarms == 0
    assert rises(3.0 + np.linspace(0.0, 0.5, steps) + noise.normal(0.0, 0.1, steps))


def card(busy: int, held_mib: int, minutes: int) -> str:
    rows = (
        f"2025/06/01 {8 + i // 60:02d}:{i % 60:02d}:00.000, 0, {busy} %, {held_mib} MiB, 81559 MiB, 118 W\n"
        for i in range(minutes)
    )
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]\n"
    return head + "".join(rows)


def test_a_card_that_is_held_for_hours_and_idles_is_a_complaint() -> None:
    idle, short, empty, busy = (
        diagnosis_of({"smi.csv": card(*how)})
        for how in ((5, 71_000, 180), (5, 71_000, 20), (0, 4, 180), (97, 71_000, 180))
    )
    assert "complained" in idle.why_unclear
    assert not any("complained" in d.why_unclear for d in (short, empty, busy))
