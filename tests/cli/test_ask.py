"""`diagnose --ask` as a person meets it: a real process on a real terminal, and scripted with --answer."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from functools import cache

import pytest

WORDS = "training is slow"
COMMAND = (sys.executable, "-m", "stallwise", "diagnose", WORDS, "--no-history")
LONGEST_S = 60.0


def on_terminal(*lines: str | bytes, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Exit code, standard output and what the terminal showed; each line is typed at a prompt of its own."""
    main, side = pty.openpty()
    child = subprocess.Popen(
        (*COMMAND, "--ask", *options), stdin=side, stderr=side, stdout=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: _own_terminal(side),
    )  # fmt: skip
    os.close(side)
    shown, left = "", list(lines)
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        ready, _, _ = select.select([main], [], [], 0.2)
        try:
            shown += os.read(main, 65536).decode(errors="replace") if ready else ""
        except OSError:
            break
        if shown.rstrip().endswith(">") and left:
            shown += "\n"
            typed = left.pop(0)
            os.write(main, typed if isinstance(typed, bytes) else f"{typed}\n".encode())
        elif child.poll() is not None and not ready:
            break
    out, _ = child.communicate(timeout=LONGEST_S)
    os.close(main)
    return child.returncode, out.decode(), shown


def _own_terminal(side: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(side, termios.TIOCSCTTY, 0)


@cache
def loader() -> int:
    """Which choice of the first question speaks of the DataLoader."""
    done = subprocess.run((*COMMAND, "--json"), capture_output=True, text=True, check=True)
    choices = json.loads(done.stdout)["questions"][0]["choices"]
    return 1 + next(at for at, choice in enumerate(choices) if "DataLoader" in choice)


def test_a_choice_by_number_ends_in_an_answer() -> None:
    code, out, shown = on_terminal(str(loader()), "?", "?", "?", "?")
    assert code == 0
    assert "CANNOT TELL YET" in shown and "?  Which of these do you see?" in shown and "[1] " in shown
    assert "the GPU waits for the DataLoader" in shown
    assert "input-starved" in " ".join(out.splitlines()[:2])
    assert "\n> " not in out  # prompts are not part of the answer


def test_a_wrong_number_is_asked_again_and_json_stays_clean() -> None:
    code, out, shown = on_terminal("77", str(loader()), "?", "?", "?", "?", options=("--json",))
    assert code == 0 and "there is no choice 77" in shown
    assert json.loads(out)["ranked"][0] == "input-starved"


@pytest.mark.parametrize("end", [b"\x03", b"\x04"], ids=["ctrl-c", "end of input"])
def test_it_can_be_ended_with_the_answer_so_far(end: bytes) -> None:
    code, out, _ = on_terminal(end)
    assert code == 0 and "CANNOT TELL YET" in out


def test_without_a_terminal_it_is_refused_with_the_way_out() -> None:
    done = subprocess.run((*COMMAND, "--ask"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--answer" in done.stderr and not done.stdout


def test_answers_can_be_scripted() -> None:
    def asked(*answers: str) -> dict[str, object]:
        options = [word for a in answers for word in ("--answer", a)]
        done = subprocess.run((*COMMAND, "--json", *options), capture_output=True, text=True, check=True)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    first = asked()
    (question,) = first["questions"]  # type: ignore[misc]
    assert question.keys() >= {"text", "choices", "separates"} and question["choices"][-1] == "don't know"
    number = loader()
    by_number, by_words = asked(str(number)), asked(question["choices"][number - 1])
    assert by_number == by_words
    assert by_number["ranked"][0] == "input-starved" and by_number != first  # type: ignore[index]
    bad = subprocess.run((*COMMAND, "--answer", "99"), capture_output=True, text=True, check=False)
    assert bad.returncode == 2 and "no choice 99" in bad.stderr


def test_an_unclear_answer_shows_the_one_question() -> None:
    text = subprocess.run(COMMAND, capture_output=True, text=True, check=True).stdout
    assert text.count("\nask    ") == 1 and "--ask" in text
