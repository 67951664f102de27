"""A share of the fuzzing in every gate: the same cases each time, and none of what must never happen."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from stallwise.doctor import reading
from stallwise.evidence import error_boundary
from stallwise.readers import engine_iterations
from stallwise.surfaces.cli import causes
from tests.fuzz import commands, harness, many
from tests.fuzz.guide import Guide
from tests.fuzz.harness import run, seeds
from tests.fuzz.mutations import mutated

CASES = 150


@pytest.fixture(autouse=True)
def as_users_run_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):  # commands keep their records there
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("STALLWISE_CACHE", "off")
    monkeypatch.delenv("STALLWISE_DEBUG", raising=False)
    monkeypatch.setattr(
        error_boundary, "failure_of", error_boundary.failure_of
    )  # the harness watches it; put back afterwards
    monkeypatch.setattr(reading, "failure_of", reading.failure_of)


def test_damaged_inputs_never_break_the_run() -> None:
    files = seeds([])
    assert len(files) > 50
    found = run(CASES, 20261115, files)
    assert found.cases == CASES and set(found.targets) == set(harness.SHARES)
    assert found.answered > found.targets["whole"] / 2
    assert found.failures == 0, found.examples
    assert found.contained == 0, found.examples


def test_damage_is_the_same_each_time() -> None:
    files = seeds([])
    for number in range(30):
        first, second = (
            mutated(random.Random(number), files[number].read_bytes(), files[-1].read_bytes()) for _ in range(2)
        )
        assert first == second


def test_the_harness_sees_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    def silent(*_: object, **__: object) -> Iterator[None]:
        raise KeyError("x")
        yield

    files = sorted((harness.REPO / "tests/fuzz/seeds").glob("*.log"))
    monkeypatch.setattr(harness, "SHARES", {"whole": 1.0})
    monkeypatch.setattr(harness, "diagnose", broken)
    assert run(3, 1, files).escapes == 3
    monkeypatch.setattr(harness, "SHARES", {"readers": 1.0})
    monkeypatch.setattr(engine_iterations, "read", silent)
    assert run(12, 1, [f for f in files if f.name == "vllm_engine.log"]).contained > 0
    monkeypatch.setattr(harness, "SHARES", {"command": 1.0})
    monkeypatch.setattr(commands, "every_command", lambda: (("causes", click.Command("causes")),))
    monkeypatch.setattr(causes.command, "callback", broken)
    assert run(3, 1, files).escapes == 3


def test_the_guide_keeps_what_leads_on() -> None:
    guide = Guide()
    assert guide.told("a", b"1", "first") and not guide.told("b", b"2", "first")
    guide.lines += 1  # another line of the package was reached
    assert guide.told("c", b"3", "first") and [name for name, _ in guide.kept] == ["a", "c"]
    assert {guide.picked(random.Random(n)) for n in range(40)} == {None, ("a", b"1"), ("c", b"3")}


def test_a_process_that_dies_or_hangs_is_counted_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        os._exit(7)

    def hangs(*_: object) -> None:
        time.sleep(600)

    for act, kind in ((dies, "escapes"), (hangs, "over_time")):
        monkeypatch.setattr(many, "damage", act)
        monkeypatch.setattr(many, "SILENT_S", 0.3)
        monkeypatch.setattr(many, "CROWD", 1.0)
        monkeypatch.setattr(many, "LIMIT_S", 0.1)
        whole = many.Run(1, [], [], tmp_path)
        whole.go(1, 1.2)
        assert getattr(whole.tally, kind) >= 1 and whole.started >= 2
