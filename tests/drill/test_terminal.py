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

    def type(self, line: str, until: str | re.Pattern[str] = PROMPT) -> str:
        """One line, and what it is answered with."""
        os.write(self.master, line.encode() + b"\n")
        return self.until(until)

    def line_of(self, words: str) -> str:
        """The number of the last listed line with these words."""
        found = re.findall(rf"^\s*(\d+)\. .*{re.escape(words)}", self.screen.replace("\r", ""), re.M)
        assert found, words
        return str(found[-1])

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
    examiner = tmp_path / "examiner.py"
    examiner.write_text("import json, sys; print('a fair account of', json.load(sys.stdin)['planted']['cause'])")
    first = Terminal(tmp_path, "round", "--scenario", "2")
    terminals.append(first)
    assert "512 H100" in first.until(PROMPT)
    assert "noted at 0:" in first.type("think most likely a degraded node")
    assert "slow_node" in first.type("can I see the times of each rank?")
    assert "2.182" in first.type("calc 48% / 22%")
    assert "how sure are you?" in first.type("commit")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()

    second = Terminal(tmp_path, "round", "--resume", "--examiner", f"{sys.executable} {examiner}")
    terminals.append(second)
    assert "how sure are you?" in second.until(PROMPT)
    assert "could be none or several" in second.type("banana 80%")
    assert "straggler-rank) 90%" in " ".join(second.type("one slow node, 90%").split())
    assert "no second fault" in second.type("none")
    assert "2.1 ratio" in second.type("about 2,1")
    order = [second.line_of(words) for words in ("Compare per-rank", "Check node 17", "Drain it")]
    assert "taken: Compare per-rank" in second.type(" then ".join(order))
    second.type(second.line_of("every rank arrives"))
    second.type(second.line_of("change sharding"))
    assert "not found" in second.type("One machine is late, all wait for it.").replace("did not find", "not found")
    verdict = second.type("1", r"a fair account of straggler-rank")
    assert "STAFF" in verdict and "How it could be told" in verdict and "Your examiner says" in verdict
    assert second.process.wait(timeout=PATIENCE_S) == 0
    (journal,) = (tmp_path / "stallwise" / "rounds").glob("*.jsonl")
    assert '"examiner"' in journal.read_text() and journal.read_text().count('"start"') == 1

    listed = Terminal(tmp_path, "rounds")
    terminals.append(listed)
    assert re.search(r"1 +2 +9\d +6 min .* staff", listed.until("most is lost in"))


def test_mistakes_are_answered_and_quitting_keeps_the_round(tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal(tmp_path, "round", "--seed", "4711")
    terminals.append(terminal)
    terminal.until(PROMPT)
    assert "do not know that artifact or command" in terminal.type("dance")
    assert "cannot be worked out" in terminal.type("calc __import__('os')")
    assert "do not know that artifact" in terminal.type("ask the weather")
    assert "not on the menu" in terminal.type("ask 99")
    assert "paused" in terminal.type("pause")
    assert "--resume" in terminal.type("quit", "--resume")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_a_mock_goes_from_one_incident_to_the_next_and_stops_when_left(
    tmp_path: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(tmp_path, "mock", "--sitting", "2")
    terminals.append(terminal)
    assert "Incident 5" in terminal.until(PROMPT)
    terminal.type("commit")
    for _ in range(6):
        terminal.type("skip")
    assert "FAIL" in terminal.type("skip") and "Incident 6" in terminal.screen
    assert "Stopped" in terminal.type("quit", "Stopped")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_a_card_is_answered_and_scheduled(tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal(tmp_path, "cards", "--topic", "serving", "--count", "1")
    terminals.append(terminal)
    terminal.until(r"you: ?$")
    terminal.type("decode reads weights, so bandwidth", r"you: ?$")
    assert "is not a line" in terminal.type("banana", r"you: ?$")
    assert "right" in terminal.type("reading weights and KV from memory", r"you: ?$")
    assert "pass; next time" in terminal.type("1", "next time")


def test_the_plan_and_an_incident_can_be_had_as_json() -> None:
    from click.testing import CliRunner

    from stallwise.surfaces.cli.drill import command

    plan = json.loads(CliRunner().invoke(command, ["mock", "--json"]).output)
    assert [len(titles) for titles in plan.values()] == [4, 4]
    case = json.loads(CliRunner().invoke(command, ["round", "--seed", "77", "--json"]).output)
    assert case["seed"] == 77 and case["artifacts"][0]["minutes"] and "cause" not in case
