"""A round in a real terminal: played to the end, and killed in the middle and gone on with."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE_S = 60.0
PROMPT = re.compile(r"\[\d+:\d\d\] > $")


class Terminal:
    """The program behind a pseudo-terminal; lines in, screen out."""

    def __init__(self, home: Path, *words: str) -> None:
        self.master, slave = pty.openpty()
        src = Path(__file__).parents[2] / "src"
        place = {**os.environ, "XDG_DATA_HOME": str(home), "PYTHONPATH": str(src), "TERM": "dumb", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "stallwise", "drill", *words]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=place, close_fds=True)
        os.close(slave)
        self.screen = ""

    def until(self, pattern: str | re.Pattern[str]) -> str:
        """Reads until the screen ends in (or holds) this; what came since the last time is returned."""
        got = ""
        while not re.search(pattern, got.replace("\r", "")):
            ready, _, _ = select.select([self.master], [], [], PATIENCE_S)
            assert ready, f"nothing came for {PATIENCE_S} s after: {got[-500:]}"
            try:
                piece = os.read(self.master, 65536)
            except OSError:  # Linux says so when the other end is gone
                break
            if not piece:
                break
            got += piece.decode("utf-8", "replace")
        self.screen += got
        return got.replace("\r", "")

    def type(self, line: str) -> str:
        """One line, and what it is answered with."""
        os.write(self.master, line.encode() + b"\n")
        return self.until(PROMPT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_a_round_is_played_killed_resumed_and_scored(tmp_path: Path, terminals: list[Terminal]) -> None:
    first = Terminal(tmp_path, "round", "--scenario", "2")
    terminals.append(first)
    assert "512 H100" in first.until(PROMPT)
    assert "noted at 0:" in first.type("think most likely a degraded node, a straggler; sharding is less likely")
    assert "slow_node" in first.type("ask nccl per-rank times")
    assert "2.182" in first.type("calc 48% / 22%")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()

    second = Terminal(tmp_path, "round", "--resume")
    terminals.append(second)
    assert "512 H100" in second.until(PROMPT)
    assert "nvidia-smi" in second.type("ask nvidia-smi")
    assert "1. " in second.type(
        "fixes compare per-rank times, finds the node; check throttle reasons and ECC on node 17; drain it, 2.18x back"
    )
    os.write(second.master, b"commit one degraded node, node 17: a straggler that holds 512 GPUs at 2.18x\n")
    verdict = second.until(r"dispute a mark \(empty: none\):? ?$")
    assert "root cause: the mechanism, straggler-rank" in verdict
    assert "first one after" in verdict and "STRONG PASS" in verdict
    assert "How it could be told" in verdict
    os.write(second.master, b"the time is mine\n")
    assert "kept beside the mark" in second.until("kept beside")
    assert second.process.wait(timeout=PATIENCE_S) == 0
    (journal,) = (tmp_path / "stallwise" / "rounds").glob("*.jsonl")
    assert '"dispute"' in journal.read_text() and journal.read_text().count('"start"') == 1


def test_mistakes_are_answered_and_quitting_keeps_the_round(tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal(tmp_path, "round", "--seed", "4711")
    terminals.append(terminal)
    terminal.until(PROMPT)
    assert "is no command" in terminal.type("dance")
    assert "cannot be worked out" in terminal.type("calc __import__('os')")
    assert "do not know that artifact" in terminal.type("ask the weather")
    assert "paused" in terminal.type("pause")
    os.write(terminal.master, b"quit\n")
    assert "--resume" in terminal.until("--resume")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_a_mock_goes_from_one_incident_to_the_next_and_stops_when_left(
    tmp_path: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(tmp_path, "mock", "--sitting", "2")
    terminals.append(terminal)
    assert "Incident 5" in terminal.until(PROMPT)
    os.write(terminal.master, b"commit no idea\n")
    assert "FAIL" in terminal.until(r"\(empty: none\):? ?$")
    assert "Incident 6" in terminal.type("")
    os.write(terminal.master, b"quit\n")
    assert "Stopped" in terminal.until("Stopped")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0

    listed = Terminal(tmp_path, "rounds")
    terminals.append(listed)
    assert "1 played, 0 strong" in listed.until("strong")


def test_the_plan_and_an_incident_can_be_had_as_json() -> None:
    from click.testing import CliRunner

    from stallwise.cli.drill import command

    plan = json.loads(CliRunner().invoke(command, ["mock", "--json"]).output)
    assert [len(titles) for titles in plan.values()] == [4, 4]
    case = json.loads(CliRunner().invoke(command, ["round", "--seed", "77", "--json"]).output)
    assert case["seed"] == 77 and case["artifacts"] and "cause" not in case
