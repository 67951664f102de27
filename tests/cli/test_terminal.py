"""Every command on an eighty-column terminal: no line of its help or answer is longer; colours, quiet, progress, completion."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from stallwise.progress import Progress
from stallwise.surfaces.cli import console, main
from stallwise.surfaces.cli._everywhere import examples_of, words_of
from stallwise.surfaces.cli._fitted import fitted
from tests.docs.blocks import REPO

WIDTH = 80
FIXTURES = REPO / "tests" / "fixtures"
LOADER = "examples/traces/loader_slow"
MODEL = ("--model", "llama-3-8b", "--cluster", "8xh100")
SERVED = ("--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--isl", "1000", "--osl", "100")
# A real answer of every command; those that ask questions or serve until they are stopped are named with the reason.
ANSWERS: dict[str, list[tuple[str, ...]]] = {
    "accuracy": [("--from-trials", "trials")],
    "attach": [],  # needs another process: tests/recorder
    "causes": [()],
    "check": [(LOADER, "--config", "stallwise.toml"), ("--example",)],
    "compare": [(LOADER, "examples/scenarios/02_mfu_collapse"), ("good", "bad"), ("days",)],
    "completion": [],  # a script for the shell
    "demo": [()],
    "diagnose": [
        (LOADER,), ("examples/scenarios/03_serving_collapse",), ("--fact", "mfu=0.22"), ("oom.pickle.gz",), ("engine.log",),
        ("tests_of_a_name_that_no_terminal_can_hold_in_one_line_because_somebody_likes_long_names_a_lot.log",),
    ],
    "drill cards": [], "drill export": [], "drill import": [], "drill learn": [], "drill mock": [], "drill numbers": [],
    "drill round": [],
    "drill progress": [()],
    "drill rounds": [()],
    "explain": [("input-starved",), ("occupancy",)],
    "facts": [(), ("mfu",)],
    "formats": [()],
    "history": [()],
    "kernels": [("kernels.csv.gz",), ("kernels.csv.gz", "--all")],
    "lint": [("examples/slow_loader.py", "examples/slow_checkpoint.py")],
    "mcp": [],  # speaks to a program
    "measure": [], "measure loader": [], "measure preflight": [],  # take the machine for half a minute: tests/probe
    "numerics": [],  # runs a model: tests/cli/test_numerics.py
    "plan calibrate": [],  # needs a run of the model: tests/planner
    "plan collective": [("allreduce", "2GB", "--gpus", "64")],
    "plan cost": [("--gpus", "512", "--params", "70B", "--storage", "20GB/s")],
    "plan formula": [(), ("adam-states", "params=8B")],
    "plan load": [(*SERVED[:4], "--users", "4", "--requests", "20")],
    "plan memory": [MODEL],
    "plan models": [()],
    "plan pipeline": [("--stages", "4")],
    "plan share": [("--model", "llama-3.1-8b", "--by", "mig")],
    "plan serve": [(*SERVED, "--rate", "2")],
    "plan train": [MODEL, (*MODEL, "--explain", "--smaller")],
    "plan validate": [("bubbles.csv", "--kind", "bubbles", "--rows")],
    "record": [], "run": [],  # run a job: tests/recorder
    "try": [("--list",)],
    "ui": [],  # serves until it is stopped: tests/web
    "watch": [("recorded", "--once")],
    "whatif": [(LOADER,)],
}  # fmt: skip


def walked(
    command: click.Command = main, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if above:
        yield above, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walked(below, (*above, name))


COMMANDS = dict(walked())
LEAVES = [" ".join(path) for path, c in COMMANDS.items() if path not in (("plan",), ("drill",))]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "examples").symlink_to(REPO / "examples")
    shutil.copy(FIXTURES / "kernels" / "kernels_raw.csv.gz", folder / "kernels.csv.gz")
    shutil.copy(FIXTURES / "memory" / "oom_logits.pickle.gz", folder / "oom.pickle.gz")
    (folder / "trials").mkdir()
    shutil.copy(FIXTURES / "trials" / "nano124_eager.json", folder / "trials" / "trials.json")
    (folder / "stallwise.toml").write_text('[budgets]\nstep_time = "1s"\ninput_wait = "2%"\nttft = "1s"\n')
    rows = "".join(f"1f1b,{p},{m},1,,,{(p - 1) / (m + p - 1)},a\n" for p, m in ((4, 8), (8, 32)))
    head = "schedule,stages,microbatches,virtual_stages,forward,backward,bubble_share,source\n"
    (folder / "bubbles.csv").write_text(head + rows)
    logs = {"good": 0.2, "bad": 0.26, "days/1": 0.2, "days/2": 0.2, "days/3": 0.26, "days/4": 0.26}
    for name, step_s in logs.items():
        log = folder / (f"{name}.log" if "/" in name else f"{name}/train.log")
        log.parent.mkdir(exist_ok=True)
        log.write_text(
            "".join(f"step {n} loss {3 - n / 100:.3f} step_time {step_s + n % 3 / 100:.3f}\n" for n in range(40))
        )
    (folder / "recorded").mkdir()
    steps = [{"k": "step", "n": n, "t": n * 0.1, "d": 0.1, "s": {"forward": 0.05}} for n in range(30)]
    record = [{"k": "run", "v": 1, "rank": 0, "world": 1, "t": 0, "env": {}}, *steps]
    (folder / "recorded" / "rank-00000.jsonl").write_text("".join(json.dumps(x) + "\n" for x in record))
    engine = (
        "INFO 03-01 10:00:{:02d} [loggers.py:118] Engine 000: Avg prompt throughput: 900.1 tokens/s, Avg generation "
        "throughput: 1800.0 tokens/s, Running: 64 reqs, Waiting: 12 reqs, GPU KV cache usage: 99.1%\n"
    )
    (folder / "engine.log").write_text("".join(engine.format(n) for n in range(40)))
    long = "tests_of_a_name_that_no_terminal_can_hold_in_one_line_because_somebody_likes_long_names_a_lot.log"
    (folder / long).write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n" * 3)
    return folder


def on_a_terminal(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, width: int = WIDTH, **env: str
) -> tuple[str, str]:
    """What the console script shows on a terminal of this width: its answer, and what stands beside it."""
    out, err = io.StringIO(), io.StringIO()
    for stream, name in ((out, "stdout"), (err, "stderr")):
        stream.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, name, stream)
    for name, value in {"COLUMNS": str(width), **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["stallwise", *words])
    with pytest.raises(SystemExit) as ended:
        console()
    sys.stdout.flush()
    assert ended.value.code in (0, 1, None), err.getvalue()
    return out.getvalue(), err.getvalue()


def too_wide(text: str, width: int = WIDTH) -> list[str]:
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).replace("\r", "\n")
    return [line for line in plain.splitlines() if cell_len(line) > width]


def test_every_command_is_walked() -> None:
    assert set(ANSWERS) == set(LEAVES)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_and_its_examples_can_be_called(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    shown = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(main, [*path, "--help"], prog_name="stallwise").output
    assert too_wide(shown) == []
    _, examples, _ = examples_of(command)
    assert examples and "Example" in shown
    for call, _ in examples:
        words = words_of(call.split("|")[-1].split(">")[0])
        if words[0] != "stallwise":
            continue
        named = COMMANDS.get(tuple(words[1:3])) or COMMANDS[tuple(words[1:2])]
        own = words[: words.index("--")] if "--" in words else words
        known = {name for p in named.params for name in (*p.opts, *p.secondary_opts)}
        assert {w for w in own if re.match(r"--?[a-z]", w)} <= known, call


@pytest.mark.parametrize(
    ("name", "words"),
    [pytest.param(n, w, id=" ".join((n, *w))[:60]) for n, all_words in ANSWERS.items() for w in all_words],
)
def test_an_answer_fits(name: str, words: tuple[str, ...], desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    out, err = on_a_terminal((*name.split(), *words), monkeypatch, STALLWISE_DRILL=str(desk / "drill"))
    assert out.strip()
    assert too_wide(out) == [] and too_wide(err) == []


def test_a_wider_terminal_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("diagnose", "--fact", "mfu=0.22", "mfu.before=0.48", "gpu=h100", "gpus=512")
    narrow, _ = on_a_terminal(words, monkeypatch)
    wide, _ = on_a_terminal(words, monkeypatch, 130)
    assert too_wide(wide) and too_wide(wide, 130) == []
    assert len(wide.splitlines()) < len(narrow.splitlines())


def test_an_error_fits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setattr(sys, "argv", ["stallwise", "diagnose", "/nowhere/" + "a-folder/" * 20])
    with pytest.raises(SystemExit):
        console()
    assert too_wide(capsys.readouterr().err) == []


def test_a_word_longer_than_a_line_is_cut_at_its_joints() -> None:
    assert fitted("see /one/two/" + "three/" * 4 + "four", 24).split("\n") == [
        "see",
        "/one/two/three/three/",
        "three/three/four",
    ]
    assert fitted("x" * 50, 40).split("\n") == ["x" * 40, "x" * 10]


def test_json_and_what_a_program_reads_are_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = on_a_terminal(("diagnose", "--fact", "mfu=0.22", "--json"), monkeypatch)
    assert too_wide(out)


@pytest.mark.parametrize(
    ("options", "env", "colored"),
    [
        ((), {}, True), ((), {"NO_COLOR": "1"}, False), ((), {"TERM": "dumb"}, False),
        (("--color", "never"), {}, False), (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True), (("--color", "auto"), {"NO_COLOR": "1"}, False),
        ((), {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)  # fmt: skip
def test_colours_are_chosen(
    options: tuple[str, ...], env: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    out, _ = on_a_terminal(("diagnose", "--fact", "mfu=0.22", *options), monkeypatch, **{"TERM": "xterm", **env})
    assert ("\x1b[" in out) is colored


def test_a_pipe_gets_colours_only_when_they_are_asked_for() -> None:
    plain = CliRunner(env={"FORCE_COLOR": ""}).invoke(main, ["diagnose", "--fact", "mfu=0.22"])
    asked = CliRunner().invoke(main, ["--color", "always", "diagnose", "--fact", "mfu=0.22"], color=True)
    assert "\x1b[" not in plain.output and "\x1b[" in asked.output


def test_quiet_leaves_the_answer_and_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("demo",)
    told, beside = on_a_terminal(words, monkeypatch)
    quiet, nothing = on_a_terminal((*words, "--quiet"), monkeypatch)
    assert beside and not nothing and quiet == told
    failing = CliRunner().invoke(main, ["-q", "diagnose", "--fact", "mfu=0.22", "--fail-on", "unclear"])
    assert failing.exit_code == 1 and not failing.stderr


def test_quiet_still_tells_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["stallwise", "diagnose", "/nowhere", "-q"])
    with pytest.raises(SystemExit):
        console()
    assert "/nowhere" in capsys.readouterr().err


def test_progress_says_how_fast_and_how_long_still() -> None:
    files = Progress("reading", 10, things="files")
    files.advance(4)
    assert files.line(2.0).endswith("4 of 10 files  2 files/s  3 s left")
    stored = Progress("reading", 8e6, position=lambda: 2e6)
    assert "2.00 MB of 8.00 MB" in stored.line(1.0) and "2.00 MB/s  3 s left" in stored.line(1.0)
    assert Progress("reading", 10, things="files").line(65.0).endswith("0 of 10 files  1 min 05 s so far")
    assert len(stored.line(1.0, 40)) < 40


def test_progress_is_drawn_for_people_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from stallwise import progress

    monkeypatch.setattr(progress, "PATIENCE_S", 0.02)
    monkeypatch.setattr(progress, "TICK_S", 0.02)
    for terminal in (True, False):
        stream = io.StringIO()
        stream.isatty = lambda terminal=terminal: terminal  # type: ignore[misc]
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(progress.shown((x for x in range(3) if not time.sleep(0.06)), 3, "reading", "files")) == [0, 1, 2]
        assert ("files/s" in stream.getvalue()) is terminal
        assert not terminal or stream.getvalue().endswith("\x1b[K")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("explain input-st", "input-starved"), ("plan train --model llama-3.1-4", "llama-3.1-405b"),
        ("plan serve --gpu h100-s", "h100-sxm"), ("plan validate x --kind bub", "bubbles"), ("causes --family st", "step"),
        ("try --only compile,bf16", "compile,bf16-autocast"), ("drill cards --topic mem", "memory"),
        ("plan train --optimizer adamw-", "adamw-8bit"), ("lint --select host-s", "host-sync"),
        ("diagnose --color al", "always"), ("diagnose --fact mf", "mfu="), ("plan load --policy prefill", "prefill-first"),
    ],
)  # fmt: skip
def test_values_are_completed(line: str, offered: str) -> None:
    env = {
        "_STALLWISE_COMPLETE": "bash_complete",
        "COMP_WORDS": f"stallwise {line}",
        "COMP_CWORD": str(len(line.split())),
    }
    shown = CliRunner(env=env).invoke(main, [], prog_name="stallwise", complete_var="_STALLWISE_COMPLETE").output
    assert f"plain,{offered}" in shown.splitlines()
