"""The order of trials follows the verdict on the first steps, and the budget gives one of them an answer before all of them none."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stallwise.experiment.budget import NAMED, OTHER, PROOF, Budget
from stallwise.experiment.first_steps import ONCE_S, ordered
from stallwise.experiment.trials import all_changes
from stallwise.experiment.verdict import ANSWERED, ASKED, Verdict, answer, ask, asked, forget
from stallwise.surfaces.cli._first_verdict import verdict_of

SCENE: Any = SimpleNamespace(shares={"batch_wait": 0.1}, device="cuda")


def names(verdict: Verdict, seconds: float = 150.0) -> list[str]:
    changes = [c for c in all_changes() if not c.only_asked and c.name != "static-cache"]
    return [c.name for c in ordered(changes, SCENE, verdict, seconds)]


def of(**shares: float) -> Verdict:
    return Verdict("sick", [{"cause": c.replace("_", "-"), "share": s} for c, s in shares.items()])


@pytest.mark.parametrize(
    ("cause", "trial"),
    [
        ("input_starved", "last-batch-again"),
        ("attention_materialized", "fused-attention"),
        ("recompute_unneeded", "no-recompute"),
        ("host_sync", "stale-reads"),
        ("tensor_cores_unused", "bf16-autocast"),
        ("layout_copies", "channels-last"),
    ],
)
def test_the_first_trial_is_the_one_that_proves_the_verdict(cause: str, trial: str) -> None:
    assert names(of(**{cause: 0.08, "elementwise_unfused": 0.3}))[0] == trial


def test_a_cause_without_a_trial_or_without_a_gain_leaves_the_place_to_the_next() -> None:
    assert names(of(host_work_unattributed=0.4, precision_headroom=0.0, host_sync=0.1))[0] == "stale-reads"


def test_a_compiler_is_no_first_trial_where_it_would_take_all_the_time() -> None:
    verdict = of(launch_bound=0.5, recompute_unneeded=0.2)
    assert names(verdict)[0] in ("compile", "compile-graphs")
    assert names(verdict, seconds=ONCE_S)[0] not in ("compile", "compile-graphs")


def test_after_it_what_saves_most_for_a_second_comes_first_and_what_is_not_named_comes_late() -> None:
    found = names(of(input_starved=0.2, optimizer_unfused=0.1, elementwise_unfused=0.2))
    assert found.index("fused-optimizer") < found.index("compile") < found.index("no-empty-cache")


def test_without_a_verdict_the_stages_decide() -> None:
    assert names(Verdict())[0] == "bf16-autocast"


def test_the_job_asks_and_goes_on_with_the_answer_or_without_one(tmp_path: Path) -> None:
    def answering() -> None:
        while not asked(str(tmp_path)):
            time.sleep(0.005)
        answer(str(tmp_path), of(input_starved=0.9))

    thread = threading.Thread(target=answering)
    thread.start()
    found = ask(str(tmp_path), 20.0, 24)
    thread.join()
    assert found.state == "sick" and found.shares == {"input-starved": 0.9}
    assert json.loads((tmp_path / ASKED).read_text()) == {"steps": 24}
    forget(str(tmp_path))
    assert not (tmp_path / ASKED).exists() and not (tmp_path / ANSWERED).exists()
    assert not ask(str(tmp_path), 0.05, 24).known


def test_a_damaged_answer_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / ANSWERED).write_text("[1, 2")
    assert not ask(str(tmp_path), 0.05, 24).known


def test_causes_and_shares_are_those_of_the_diagnosis() -> None:
    gain = {"low_s": 0.1, "high_s": 0.2, "low_share": 0.25, "high_share": 0.5}
    found = verdict_of(
        {"state": "sick", "findings": [{"cause": "host-sync", "gain": gain}, {"cause": "x", "gain": None}]}
    )
    assert found.state == "sick" and found.shares == {"host-sync": 0.375, "x": 0.0}
    assert not verdict_of({"state": "unclear", "findings": None}).known


def test_a_budget_ends_by_seconds_or_by_steps_and_is_not_cut_into_equal_parts() -> None:
    now = [0.0]
    budget = Budget(100.0, 50, lambda: now[0])
    assert not budget.over()
    budget.begin()
    assert budget.left_s(0.5) == pytest.approx(25.0) and budget.left_s(10.0) == pytest.approx(100.0)
    assert budget.part_s(10, 10.0, PROOF) == pytest.approx(100 * PROOF)
    assert budget.part_s(10, 10.0, 0.0) == pytest.approx(10.0)  # repeated: equal parts
    assert budget.part_s(1, 10.0, OTHER) == pytest.approx(100.0)
    assert PROOF > NAMED > OTHER
    budget.steps = 50
    assert budget.over() and budget.left_s(0.5) == 0.0
    budget.begin()
    now[0] = 101.0
    assert budget.over()
