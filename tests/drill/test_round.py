# ruff: noqa: E501
"""The state of a round: clock, papers, arithmetic, journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.drill import door
from stallwise.drill.artifact_words import KINDS, WHAT, kinds_meant
from stallwise.drill.calculator import calculate
from stallwise.drill.fix_order import meant, rank_correlation
from stallwise.drill.round import HARD_STOP_S, load, start
from stallwise.drill.rubric import score
from stallwise.errors import BadRequest, StallwiseError
from stallwise.evidence import capture
from stallwise.specs.hardware import gpu
from tests.drill.players import Clock


@pytest.mark.parametrize(
    ("request_text", "kind"),
    [
        ("nccl per-rank times", "rank-times"), ("can I see Nsight Compute output?", "ncu"), ("dmesg | grep -i xid", "kernel-log"),
        ("NCCL_DEBUG=INFO output", "nccl-log"), ("nvidia-smi -q, throttle reasons", "gpu-state"), ("a pytorch profiler trace", "trace"),
        ("vLLM logs with running and waiting", "engine-log"), ("what does the loss curve look like", "loss-curve"),
        ("per-stage timings", "stage-times"), ("busbw from nccl-tests", "nccl-tests"), ("amax per layer", "layer-stats"),
        ("the OOM message please", "oom-message"), ("watchdog timeout of each rank's stderr", "rank-logs"),
    ],
)  # fmt: skip
def test_requests_are_understood_in_many_words(request_text: str, kind: str) -> None:
    assert kind in kinds_meant(request_text)[:2]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found_by_its_own_description(kind: str) -> None:
    assert kind in kinds_meant(WHAT[kind])[:2]


CAPTURES = [value for value in vars(capture).values() if isinstance(value, capture.Capture)]


@pytest.mark.parametrize("wanted", CAPTURES, ids=lambda c: c.artifact)
def test_what_the_doctor_would_ask_for_can_be_asked_for_in_its_words(wanted: capture.Capture) -> None:
    assert kinds_meant(wanted.artifact)


def test_the_clock_stands_while_paused_and_after_a_crash(tmp_path: Path) -> None:
    clock = Clock()
    played = start(2, clock, tmp_path / "r.jsonl")
    clock.wait(30)
    played.hypothesis("a straggler")
    played.pause()
    clock.wait(5000)
    assert played.elapsed_s == 30
    played.resume()
    clock.wait(10)
    played.ask("per-rank times")
    again = load(tmp_path / "r.jsonl", clock)  # the terminal died here
    clock.wait(9000)
    assert again.elapsed_s == 40 and again.paused
    assert [e.kind for e in again.events] == ["start", "hypothesis", "pause", "resume", "ask"]


def test_a_line_cut_off_by_a_crash_costs_only_itself(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "r.jsonl"
    start(2, clock, path).hypothesis("a straggler")
    path.write_text(path.read_text() + '{"kind": "ask", "te')
    assert [e.kind for e in load(path, clock).events] == ["start", "hypothesis"]


def test_after_the_hard_stop_only_a_commitment_is_taken(tmp_path: Path) -> None:
    clock = Clock()
    played = start(2, clock, tmp_path / "r.jsonl")
    clock.wait(HARD_STOP_S + 1)
    with pytest.raises(BadRequest):
        played.hypothesis("late")
    played.commit("a degraded node")
    with pytest.raises(BadRequest):
        played.commit("or not")


@pytest.mark.parametrize(
    ("work", "value"),
    [
        ("70B * 2 bytes", 140e9), ("140GB / 3.35TB/s", 140e9 / 3.35e12), ("48% / 22%", 0.48 / 0.22), ("2*(512-1)/512", 2 * 511 / 512),
        ("h100.bandwidth * 2", 2 * gpu("h100").bandwidth_byte_per_s), ("6 * 70e9 * 1e6 / (989TFLOPS * 40%)", 6 * 70e15 / (989e12 * 0.4)), ("32 * 8192^2 * 2", 32 * 8192**2 * 2),
        ("45ms + 5 ms", 0.05), ("1 GiB", 2.0**30), ("max(3, ceil(2.1))", 3.0),
    ],
)  # fmt: skip
def test_the_calculator_knows_units_and_the_catalogue(work: str, value: float) -> None:
    assert calculate(work) == pytest.approx(value)


@pytest.mark.parametrize(
    "work", ["__import__('os').system('x')", "9**9**9**9", "1/0", "(lambda: 1)()", "", "a.b.c", "[1]*9", "1e999"]
)
def test_the_calculator_runs_no_code_and_says_what_is_wrong(work: str) -> None:
    with pytest.raises(StallwiseError):
        calculate(work)


@given(st.text(max_size=60))
def test_whatever_is_typed_into_the_calculator_is_a_number_or_a_sentence(text: str) -> None:
    try:
        assert isinstance(calculate(text), float)
    except StallwiseError as problem:
        assert problem.hint


@given(st.permutations(range(5)))
def test_rank_correlation_is_one_for_the_same_order_and_minus_one_for_the_reverse(order: list[int]) -> None:
    assert -1 <= rank_correlation(order) <= 1
    assert rank_correlation(sorted(order)) == 1 and rank_correlation(sorted(order, reverse=True)) == -1
    assert rank_correlation(order) == pytest.approx(-rank_correlation(order[::-1]))


def test_opposite_moves_are_not_the_same_fix() -> None:
    assert meant("smaller evaluation batch", ["a smaller evaluation batch"]) == 0
    assert meant("increase the evaluation batch", ["a smaller evaluation batch"]) is None


def test_a_trap_is_named_and_keeps_a_strong_pass_away(tmp_path: Path) -> None:
    clock = Clock()
    played = start(2, clock, tmp_path / "r.jsonl")
    played.hypothesis("most likely a straggler node, 48% to 22% is 2.18x; exotic causes less likely")
    played.ask("per-rank times")
    played.ask("nvidia-smi")
    played.fixes(["change sharding and recompute code", "compare per-rank times", "drain the node, worth 2.18x"])
    played.commit("straggler node 17, 2.18x, 277 GPUs lost")
    result = score(played)
    assert "sharding" in result.trap and result.word == "pass"


def test_naming_everything_is_no_diagnosis(tmp_path: Path) -> None:
    played = start(2, Clock(), tmp_path / "r.jsonl")
    played.commit(
        "straggler, thermal, power limit, ecc, data loader, checkpoint, garbage collection, socket, recompilation, preemption"
    )
    assert score(played).marks[2].word == "fail"


def test_the_page_plays_a_round_to_its_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert len(door.scenarios()) == 9
    opened = door.start("6")
    assert "340 ms" in opened["says"]
    assert "cross_pod_bandwidth" in door.reply(opened["session"], "ask nccl-tests across pods")["says"]
    door._OPEN.clear()  # the server was restarted
    last = door.reply(opened["session"], "commit a topology border at 512: cross-pod links, 46 against 9 GB/s")
    assert last["over"] and "collective-topology-cliff" in last["says"]
    with pytest.raises(BadRequest):
        door.reply("../../etc/passwd", "help")
