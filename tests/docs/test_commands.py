"""Every command in README and docs runs and prints what the page says."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from stallwise.errors import StallwiseError
from stallwise.surfaces.cli import main
from tests.docs.blocks import FILES, REPO, Step, blocks, inline, matches, mentioned, rewritten, steps

UPDATE = bool(os.environ.get("STALLWISE_UPDATE_DOCS"))
WIDTH = "110"  # what a pipe gets
STEPS = steps()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "examples").symlink_to(REPO / "examples")
    return folder


def printed(command: str, folder: Path) -> str:
    """What a command prints; plain calls of ours run in this process, all else in a shell."""
    words = shlex.split(command)
    if words[0] == "stallwise" and not set(command) & set("|;&>$`"):
        return _ours(words[1:], folder)
    env = {**os.environ, "PYTHONPATH": str(REPO / "src"), "COLUMNS": WIDTH, "NO_COLOR": "1"}
    program = f'stallwise() {{ "{sys.executable}" -m stallwise "$@"; }}; {command}'
    done = subprocess.run(["bash", "-c", program], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return done.stdout


def _ours(words: list[str], folder: Path) -> str:
    here = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner(env={"COLUMNS": WIDTH, "NO_COLOR": "1"}).invoke(main, words, prog_name="stallwise")
    finally:
        os.chdir(here)
    if isinstance(result.exception, StallwiseError):
        return f"stallwise: {result.exception.problem}\n  try: {result.exception.hint}\n"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_command_prints_what_the_page_says(step: Step, scratch: Path) -> None:
    seen = printed(step.command, scratch)
    if UPDATE:
        SEEN.setdefault(step.file, {})[step.line] = seen
        return
    assert matches(step.output, seen), f"{step}: $ {step.command}\n{seen}"


SEEN: dict[Path, dict[int, str]] = {}


@pytest.mark.skipif(not UPDATE, reason="only when outputs are rewritten")
def test_outputs_are_rewritten() -> None:
    for file, outputs in SEEN.items():
        file.write_text(rewritten(file, outputs), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "line", "body"), blocks("sh"), ids=lambda v: v.name if isinstance(v, Path) else str(v)[:20]
)
def test_a_command_that_is_not_run_still_exists(file: Path, line: int, body: str) -> None:
    for words in mentioned(body):
        _parsed(main, words, f"{file.name}:{line}")


@pytest.mark.parametrize(("file", "call"), inline(), ids=lambda v: v.name if isinstance(v, Path) else v[:50])
def test_a_command_in_running_text_exists(file: Path, call: str) -> None:
    if call.startswith("stallwise drill") and not (REPO / "src/stallwise/surfaces/cli/drill.py").exists():
        pytest.skip("the drill is not part of this checkout")
    for words in mentioned(call):
        _parsed(main, words, file.name)


def _parsed(command: click.Command, words: list[str], where: str) -> None:
    """Walks to the sub-command and checks every option's name."""
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        inner = command.get_command(click.Context(command), words[0])
        assert inner is not None, f"{where}: no command {words[0]}"
        command, words = inner, words[1:]
    if "--" in words:
        words = words[: words.index("--")]
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help", "-h", "--version"}
    unknown = [
        w for w in words if w.startswith("-") and len(w) > 1 and w.split("=")[0] not in known and not w[1].isdigit()
    ]
    assert not unknown, f"{where}: {command.name} has no {unknown}"


def test_every_page_is_looked_at() -> None:
    assert len(FILES) > 6 and len(STEPS) > 10


@pytest.mark.parametrize(
    ("said", "seen", "same"),
    [("a\nb\n", "a\nb\n", True), ("a\n...\nc\n", "a\nx\ny\nc\n", True), ("a\n...\n", "a\n", True), ("a\n", "b\n", False),
     ("a 1\n", "a 2\n", False), ("", "x\n", False), ("", "", True), ("a.c\n", "abc\n", False)],
)  # fmt: skip
def test_outputs_are_compared_line_by_line(said: str, seen: str, same: bool) -> None:
    assert matches(said, seen) is same
