"""trainer_state.json: gradients without a number, records cut off, keys that are no evidence, rows named as rows."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words

NAN = float("nan")


def state(*, dead_from: int = 0, loss_then: float | None = None, points: int = 60) -> str:
    """A history as transformers saves it; from point `dead_from` on the gradient is NaN and the loss `loss_then`."""
    history: list[dict[str, float]] = []
    for at in range(1, points + 1):
        dead = bool(dead_from) and at >= dead_from
        loss = round(2.5 * math.exp(-at / 40) + 0.4 + 0.01 * (at % 3), 4)
        history.append(
            {"epoch": at / 20, "grad_norm": NAN if dead else 1.2 + 0.05 * (at % 4), "learning_rate": 2e-5 * (1 - at / points),
             "loss": loss_then if dead and loss_then is not None else loss, "step": 10 * at}
        )  # fmt: skip
    settings = {
        "eval_steps": 500,
        "global_step": 10 * points,
        "logging_steps": 10,
        "max_steps": 10 * points,
        "save_steps": 500,
    }
    return json.dumps({**settings, "log_history": history, "num_train_epochs": 3}, indent=2)


@pytest.mark.parametrize(("loss", "shown"), [(NAN, "NaN"), (0.0, "0")])
def test_gradients_without_a_number_and_a_loss_without_one_are_a_dead_run(
    tmp_path: Path, loss: float, shown: str
) -> None:
    answer = asked(tmp_path, "trainer_state.json", state(dead_from=20, loss_then=loss))
    said = words(answer)
    assert answer.state is not State.HEALTHY and answer.ranked[0] == "grad-explosion"
    assert (
        "from step 200 on" in said and f"the loss is {shown}" in said and "last 41 of 60" in said and "row 20" in said
    )


@pytest.mark.parametrize("first", [1, 20])
def test_a_norm_that_is_no_number_while_the_loss_falls_is_said_and_names_no_dead_run(
    tmp_path: Path, first: int
) -> None:
    answer = asked(tmp_path, "trainer_state.json", state(dead_from=first))
    said = words(answer)
    assert answer.state is State.UNCLEAR and "while the loss goes on" in said and "the loss is NaN" not in said
    assert all(h.probability < 0.1 for h in answer.hypotheses if h.cause == "checkpoint-stall")  # "save_steps" is a key


def test_a_whole_state_is_in_line_and_a_cut_one_is_read_up_to_the_cut(tmp_path: Path) -> None:
    whole = state()
    assert asked(tmp_path, "trainer_state.json", whole).state is State.HEALTHY
    answer = asked(tmp_path, "trainer_state.json", whole[: len(whole) * 2 // 3])
    said = words(answer)
    assert answer.state is State.UNCLEAR and "cut off: 39 whole records were read" in said
    assert "over 39 points" in said and "grad-explosion" not in said
    damaged = asked(tmp_path, "trainer_state.json", whole.replace('"step": 300', '"step": 3\x01}{'))
    assert damaged.state is State.UNCLEAR and "damaged: 59 whole records were read" in words(damaged)


def test_a_state_with_one_entry_gives_its_numbers_and_no_trend(tmp_path: Path) -> None:
    answer = asked(tmp_path, "trainer_state.json", state(points=1).replace('"max_steps": 10', '"max_steps": 700'))
    assert answer.state is State.UNCLEAR and "at one point of a run of 700 steps" in words(answer)
    assert "NCCL_DEBUG" not in words(answer)


def test_values_that_vary_by_factors_from_step_to_step_are_no_explosion(tmp_path: Path) -> None:
    """Small batches of preference pairs: each loss is near 0 or near 1, and its gradient with it."""
    rng = random.Random(7)
    history = []
    for at in range(1, 201):
        loss = 0.7 * math.exp(-at / 40) * math.exp(rng.gauss(0.0, 1.5)) + 0.001
        history.append({"grad_norm": 30 * min(loss, 1.0) * math.exp(rng.gauss(0.0, 0.5)), "loss": loss, "step": at})
    noisy = json.dumps({"log_history": history, "max_steps": 400})
    answer = asked(tmp_path, "trainer_state.json", noisy)
    assert answer.state is not State.SICK and "up to step 200 of 400" in words(answer)
    for row in history[150:]:
        row.update(grad_norm=1e4 * row["step"], loss=50.0 + row["step"])
    assert asked(tmp_path, "trainer_state.json", json.dumps({"log_history": history})).state is not State.HEALTHY
