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

from tests.drill.test_claims import first

TOLD = first("right")
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
    assert "coll_exec_time_us" in first.type("can I see the times of each rank?")
    assert "clocks_event_reasons" in first.type("nvidia-smi")
    assert "2.182" in first.type("calc 48% / 22%")
    assert "a point for the hint" in first.type("hint")
    assert "as you would tell a colleague" in first.type("commit")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()

    second = Terminal(tmp_path, "round", "--resume", "--examiner", f"{sys.executable} {examiner}")
    terminals.append(second)
    assert "as you would tell a colleague" in second.until(PROMPT)
    first_line, _, rest = TOLD[2].partition(". ")
    assert "Enter to send" in second.type(f"{first_line}.", "Enter to send: $")
    second.type(rest, "Enter to send: $")
    assert "understood: one machine became slow" in second.type("")
    assert "between 0% and 100%" in second.type("180%")
    assert "taken: 90%" in second.type("90%")
    verdict = second.type("2,18", r"a fair account of straggler-rank")
    assert (
        re.search(r"PASS: \d+ of 12", verdict)
        and "How it could be explained" in verdict
        and "Your examiner says" in verdict
    )
    assert second.process.wait(timeout=PATIENCE_S) == 0
    (journal,) = (tmp_path / "stallwise" / "rounds").glob("*.jsonl")
    assert '"examiner"' in journal.read_text() and journal.read_text().count('"start"') == 1
    files = {p.name for p in journal.with_suffix("").iterdir()}
    assert {"nccl_inspector.jsonl", "nvidia_smi_node17.csv", "train.log"} <= files and "stallwise diagnose" in verdict

    listed = Terminal(tmp_path, "rounds")
    terminals.append(listed)
    shown = listed.until("most is lost in")
    assert (
        re.search(r"1 +2 +\d+ +8 min .* pass", shown)
        and re.search(r"artifacts +█", shown)
        and "90% to 100% sure" in shown
    )


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
    for _ in range(2):
        terminal.type("skip")
    assert "FAIL" in terminal.type("skip") and "Incident 6" in terminal.screen
    assert "Stopped" in terminal.type("quit", "Stopped")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0


def test_a_card_is_answered_and_scheduled(tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal(tmp_path, "cards", "--topic", "serving", "--count", "1")
    terminals.append(terminal)
    terminal.until(r"you: ?$")
    terminal.type("The decode reads all weights for each token, so it is bound by bandwidth.", r"you: ?$")
    assert "is not a line" in terminal.type("banana", r"you: ?$")
    assert "How sure" in terminal.type("reading weights and KV from memory", r"you: ?$")
    shown = terminal.type("95%", "next time")
    assert "right:" in shown and "strong; next time" in shown


def test_learn_is_walked_as_a_beginner_would(tmp_path: Path, terminals: list[Terminal]) -> None:
    """The first three mechanisms with a mistake, a typing error and a word of one's own; left in the middle and gone on with."""
    terminal = Terminal(tmp_path, "learn")
    terminals.append(terminal)
    opened = terminal.until(r"you: ?$")
    assert "Step 1 of" in opened and "(easy)" in opened and "formula" in opened
    assert "could not read" in terminal.type("cores", r"you: ?$")
    asked = terminal.type(
        "A GPU has thousands of simple lanes and a lot of bandwidth, while a CPU has few fast cores.", r"you: ?$"
    )
    assert "a clever" not in asked and "few clever cores" in asked
    assert "is not a line" in terminal.type("dunno", r"you: ?$")
    wrong = next(x for x in "abcd" if f"{x}. larger caches" in asked)
    terminal.type(wrong, r"you: ?$")
    told = terminal.type("60%", r"you: ?$")
    assert "wrong; right is: many simple lanes" in told and "The same step comes again." in told and "Step 1 of" in told
    assert "Step 1 of" in terminal.screen and terminal.screen.count("formula") == 1  # the page is not shown twice
    asked = terminal.type("Many simple lanes work in parallel, and a lot of bandwidth feeds them.", r"you: ?$")
    right = next(x for x in "abcd" if f"{x}. many simple lanes" in asked)
    terminal.type(right, r"you: ?$")
    told = terminal.type("95%", r"you: ?$")
    assert "strong." in told and "Step 2 of" in told
    assert "go on with: stallwise drill learn" in terminal.type("quit", "drill learn")
    assert terminal.process.wait(timeout=PATIENCE_S) == 0
    later = Terminal(tmp_path, "learn", "--steps", "1")
    terminals.append(later)
    assert "Step 2 of" in later.until(r"you: ?$")


def test_the_plan_and_an_incident_can_be_had_as_json() -> None:
    from click.testing import CliRunner

    from stallwise.surfaces.cli.drill import command

    plan = json.loads(CliRunner().invoke(command, ["mock", "--json"]).output)
    assert [len(titles) for titles in plan.values()] == [4, 4]
    case = json.loads(CliRunner().invoke(command, ["round", "--seed", "77", "--json"]).output)
    assert case["seed"] == 77 and case["artifacts"][0]["minutes"] and "cause" not in case
