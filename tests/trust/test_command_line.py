"""The command line as people use it: completion, widths, colours, versions, and sentences that were wrong once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from stallwise.causes.hardware.nvlink_fault import nvlink_fault
from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog.hardware import XID_NVLINK
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source
from stallwise.surfaces.cli._fitted import colored, fitted
from tests.trust.inputs import here

REPO = Path(__file__).parents[2]


def completions(*words: str) -> list[str]:
    environment = {
        **os.environ, "_STALLWISE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("stallwise", *words)),
        "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    from click.testing import CliRunner

    from stallwise.surfaces.cli import main

    return CliRunner(env=environment).invoke(main, [], prog_name="stallwise").output.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("diagnose", "exa"), "file,exa"),
        (("compare", "a", "b c"), "file,"),
        (("watch", "x"), "file,x"),
        (("explain", "nvlink-f"), "plain,nvlink-fault"),
        (("diagnose", "--fail-on", "unc"), "plain,unclear"),
        (("causes", "--family", "hard"), "plain,hardware"),
        (("plan", "train", "--model", "llama-3.1-70"), "plain,llama-3.1-70b"),
        (("plan", "cost", "--gpu", "h100-s"), "plain,h100-sxm"),
        (("plan", "memory", "--cluster", "8xh100-s"), "plain,8xh100-sxm"),
        (("plan", "pipeline", "--schedule", "1f"), "plain,1f1b"),
        (("plan", "validate", "x.csv", "--kind", "coll"), "plain,collectives"),
        (("plan", "formula", "adam"), "plain,adam-states"),
    ],
)
def test_the_shell_completes_files_and_names(words: tuple[str, ...], wanted: str) -> None:
    assert any(found.startswith(wanted) for found in completions(*words))


def test_texts_without_a_colon_are_quoted_whole() -> None:
    evidence = Evidence()
    evidence.add([Fact(XID_NVLINK, "NVLink broke", Source("dmesg.txt", "line 1"))])
    (found,) = nvlink_fault.verdicts(evidence)
    assert "NVLink broke" in found.headline  # type: ignore[union-attr]


def test_a_clock_is_never_worth_itself() -> None:
    from stallwise.causes.hardware.thermal_throttle import _regained
    from stallwise.evidence.catalog.hardware import GPU_CLOCK

    clock = Fact(GPU_CLOCK, 1.2e9, Source("q.txt"))
    assert _regained(clock, 0.0) == _regained(clock, 1e-6) == _regained(None, 0.5) == "full clocks"
    assert _regained(clock, 0.5) == "2.40 GHz instead of 1.20 GHz"


def test_help_shows_only_options_that_exist() -> None:
    import click

    from stallwise.surfaces.cli import main

    def commands(group: click.Group, name: str):
        context = click.Context(group)
        for word in group.list_commands(context):
            one = group.get_command(context, word)
            yield from commands(one, f"{name} {word}") if isinstance(one, click.Group) else [(f"{name} {word}", one)]

    known = {
        name: {o for p in c.params for o in (*p.opts, *p.secondary_opts)} for name, c in commands(main, "stallwise")
    }
    wrong = []
    for name, one in commands(main, "stallwise"):
        for example in re.split(r";|then:|\bin a client|\(", one.epilog or ""):
            called = max((n for n in known if f"{n} " in f"{example} "), key=len, default="")
            own = example.split(" -- ")[0]
            for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", own[own.find(called) :] if called else ""):
                if option not in known[called] | {"-h", "--help"}:
                    wrong.append((name, called, option))
    assert wrong == []


def test_an_interval_that_the_write_sets_is_explained() -> None:
    ran = here("plan", "cost", "--gpus", "16384", "--model", "llama-3.1-405b", "--async")
    said = " ".join(ran.stdout.split())
    assert "times the write itself" in said and "for the stall alone: Young" in said


def test_formats_say_how_to_capture_each() -> None:
    ran = here("formats", "nvidia-smi")
    assert ran.stdout.count("$ nvidia-smi") >= 4  # report, samples, links, topology


def test_colours_follow_the_usual_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert colored()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colored()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert not colored()


def test_long_lines_go_on_under_their_column() -> None:
    line = "name            " + "word " * 30
    pieces = fitted(line.rstrip(), 60).split("\n")
    assert all(len(p) <= 60 for p in pieces) and len(pieces) > 2
    assert all(p.startswith(" " * 16 + "word") for p in pieces[1:])
    assert " ".join(" ".join(pieces).split()) == " ".join(line.split())


def test_the_version_needs_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    from click.testing import CliRunner

    from stallwise import __version__
    from stallwise.surfaces.cli import main

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert CliRunner().invoke(main, ["--version"]).output.strip() == __version__


def test_links_of_the_pages_lead_to_files_that_are_here() -> None:
    broken = []
    for page in (*REPO.glob("docs/**/*.md"), *REPO.glob("*.md")):
        for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", link) and not (page.parent / link).exists():
                broken.append((page.name, link))
    assert broken == []


def test_limits_are_options(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("step 1 loss 2 step_time 0.1\n" * 50)
    ran = here("diagnose", str(tmp_path / "a.log"), "--max-seconds", "0.001")
    assert ran.returncode == 3 and "raise --max-seconds" in ran.stderr
    assert diagnose(str(tmp_path / "a.log")).evidence.formats
