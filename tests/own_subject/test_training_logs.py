"""A training log, a trainer's state, a table of metrics or an event file: what it shows of pace, loss and numbers."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words

DICE = random.Random(3)


def noisy(value: float, share: float = 0.01) -> float:
    return value * (1 + DICE.uniform(-share, share))


def titan(seconds: list[float], stall: float = 0.0) -> str:
    """Lines with whole-second stamps, ten steps each."""
    clock, lines = 8 * 3600.0, []
    for at, took in enumerate(seconds):
        clock += 10 * took + (stall if at % 15 == 14 else 0.0)
        whole = int(clock)
        stamp = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
        loss = 2.0 + 8.0 / (1 + at / 10)
        lines.append(f"2026-03-02 {stamp} - root - INFO - step: {10 * (at + 1)}  loss: {loss:.4f}  grad_norm: 0.81")
    return "\n".join(lines) + "\n"


def state(losses: list[float], evaluations: list[float] = ()) -> str:  # type: ignore[assignment]
    rows: list[dict[str, float]] = [
        {"epoch": at / 10, "grad_norm": noisy(1.2), "learning_rate": 1e-5, "loss": loss, "step": 10 * (at + 1)}
        for at, loss in enumerate(losses)
    ]
    for at, loss in enumerate(evaluations):
        rows.append({"eval_loss": loss, "eval_runtime": 90.5, "eval_samples_per_second": 70.1,
                     "eval_steps_per_second": 17.5, "step": 100 * (at + 1)})  # fmt: skip
    return json.dumps({"global_step": 10 * len(losses), "log_history": rows, "save_steps": 500})


def events(tags: dict[str, list[float]], cut: int = 0) -> bytes:
    """A TensorBoard file with a point each 20 s."""

    def field(number: int, kind: int, value: bytes) -> bytes:
        size = bytes([len(value)]) if kind == 2 else b""
        return bytes([number << 3 | kind]) + size + value

    def record(body: bytes) -> bytes:
        return struct.pack("<QI", len(body), 0) + body + struct.pack("<I", 0)

    data = record(field(1, 1, struct.pack("<d", 1e9)) + field(3, 2, b"brain.Event:2"))
    for at in range(max(map(len, tags.values()))):
        for tag, values in tags.items():
            value = field(1, 2, tag.encode()) + field(2, 5, struct.pack("<f", values[at]))
            wall = field(1, 1, struct.pack("<d", 1e9 + 20 * at))
            data += record(wall + bytes([2 << 3, at + 1]) + field(5, 2, field(1, 2, value)))
    return data[: len(data) - cut]


def test_a_clock_of_whole_seconds_makes_no_slow_steps(tmp_path: Path) -> None:
    answer = asked(tmp_path, "train.log", titan([0.4117] * 150))
    said = words(answer)
    assert answer.state is State.HEALTHY and "a step" in said and "41" in said
    assert "loss 10 -> " in said and "not in this file" in said


def test_a_stall_of_seconds_still_shows_under_such_a_clock(tmp_path: Path) -> None:
    assert asked(tmp_path, "train.log", titan([0.4117] * 150, stall=9.0)).state is not State.HEALTHY


def test_a_slower_second_half_still_shows_under_such_a_clock(tmp_path: Path) -> None:
    assert asked(tmp_path, "train.log", titan([0.41] * 80 + [0.52] * 80)).state is not State.HEALTHY


def test_the_state_of_a_trainer_is_read_by_its_losses_and_never_by_the_pace_of_its_evaluations(tmp_path: Path) -> None:
    answer = asked(tmp_path, "trainer_state.json", state([1.2 / (1 + at / 5) for at in range(40)], [0.9, 0.8, 0.7]))
    said = words(answer)
    assert answer.state is State.HEALTHY and "loss 1.2 -> 0.136" in said and "3 evaluations of 90.5 s" in said
    assert "57.1 ms" not in said and "70.1" not in said


def test_overfitting_is_named_and_is_no_fault_of_numbers(tmp_path: Path) -> None:
    falling = [0.3 / (1 + at) ** 2 for at in range(60)]
    falling[50] *= 2.5  # of a ten-thousandth: no spike
    answer = asked(tmp_path, "trainer_state.json", state(falling, [0.32, 0.35, 0.42]))
    assert answer.state is State.HEALTHY and "overfitting" in words(answer)


@pytest.mark.parametrize(
    "losses",
    [
        [0.8 + at / 40 for at in range(40)],  # rises
        [1.0 / (1 + at / 5) for at in range(30)] + [float("nan")] * 5,
        [1.0 / (1 + at / 9) for at in range(30)] + [9.0, 9.5, 9.1, 9.4, 9.2, 9.0, 9.3, 9.1],  # spikes and stays
    ],
)
def test_a_loss_that_rises_breaks_or_spikes_is_never_in_line(tmp_path: Path, losses: list[float]) -> None:
    assert asked(tmp_path, "trainer_state.json", state(losses)).state is not State.HEALTHY


def test_a_scale_that_settles_is_in_line(tmp_path: Path) -> None:
    scales = [2.0 ** max(17, 24 - at) for at in range(60)]
    lines = [
        f" iteration {at + 1}/ 500 | elapsed time per iteration (ms): {noisy(800):.1f} | lm loss: {9 - at / 10:.4f} | "
        f"loss scale: {scale:.1f} | grad norm: 1.1 |"
        for at, scale in enumerate(scales)
    ]
    answer = asked(tmp_path, "megatron.log", "\n".join(lines) + "\n")
    assert answer.state is State.HEALTHY and "loss scale 131072" in words(answer)


def test_a_progress_bar_of_carriage_returns_is_read_by_its_steps(tmp_path: Path) -> None:
    bars = "".join(
        f"\rEpoch 0:  {at}%|##   | {5 * at}/500 [00:{at % 60:02d}<00:10, {noisy(7.04):.2f}it/s, train_loss={2 - at / 100:.3f}]"
        for at in range(100)
    )
    answer = asked(
        tmp_path, "bar.log", f"GPU available: True\n{bars}\n`Trainer.fit` stopped: `max_epochs=1` reached.\n"
    )
    said = words(answer)
    assert answer.state is State.HEALTHY and "7.0" in said and "2 -> 1.01" in said


def test_event_files_tell_rewards_and_the_pace_of_their_points(tmp_path: Path) -> None:
    rising = {
        "rollout/ep_rew_mean": [8.0 * at - 50 for at in range(100)],
        "train/loss": [0.01 * at for at in range(100)],
    }
    answer = asked(tmp_path, "events.out.tfevents.1", events(rising))
    said = words(answer)
    assert answer.state is State.HEALTHY and "-50 -> 742" in said and "each 20 s" in said


def test_a_falling_reward_is_not_in_line(tmp_path: Path) -> None:
    falling = {"rollout/ep_rew_mean": [50 - 8.0 * at for at in range(100)]}
    assert asked(tmp_path, "events.out.tfevents.1", events(falling)).state is not State.HEALTHY


def test_a_cut_event_file_says_so_and_is_not_called_well(tmp_path: Path) -> None:
    answer = asked(
        tmp_path, "events.out.tfevents.1", events({"train/loss": [1 / (1 + at) for at in range(60)]}, cut=30)
    )
    assert answer.state is State.UNCLEAR and "cut or damaged" in words(answer)


def test_a_handful_of_steps_is_too_few(tmp_path: Path) -> None:
    answer = asked(tmp_path, "trainer_state.json", state([1.0, 0.9, 0.8]))
    assert answer.state is State.UNCLEAR
