"""Every verb writes its answer as a page: -o picks the form, the picture is in it, and nothing of the input is markup."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.doctor.examine import diagnose
from stallwise.errors import BadRequest
from stallwise.render.blocks import Code, Facts, Group, Note, Verdict, document, steps, table
from stallwise.render.html import to_html
from stallwise.surfaces.cli import main
from tests.docs.blocks import REPO

FIXTURES = REPO / "tests" / "fixtures"
LOADER = str(REPO / "examples" / "traces" / "loader_slow")
HEALTHY = str(REPO / "tests" / "cases" / "none" / "compiled_healthy")
VERBS = {
    "compare": (["compare", HEALTHY, LOADER], ["Where a step goes, first and second", "Slower because"]),
    "kernels": (["kernels", str(FIXTURES / "kernels" / "kernels_raw.csv.gz")], ["Kernels under the roofline", "at stake"]),
    "plan train": (
        ["plan", "train", "--model", "llama-3-8b", "--cluster", "8xh100"], ["Where a step goes", "One knob moved"]
    ),
    "plan memory": (
        ["plan", "memory", "--model", "llama-3-8b", "--cluster", "8xh100", "--pp", "4"],
        ["The same through one step", "What frees memory", "last stage"],
    ),
    "plan serve": (
        ["plan", "serve", "--model", "llama-3.1-8b", "--rate", "2", "--no-simulation"],
        ["Time per token against throughput", "What would change it"],
    ),
    "whatif": (["whatif", LOADER, "--no-input-wait", "--graphs"], ["What a step takes with each change", "together"]),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_writes_a_page_and_its_data(verb: str, tmp_path: Path) -> None:
    words, titles = VERBS[verb]
    outs = [tmp_path / f"answer.{ending}" for ending in ("html", "json", "txt")]
    result = CliRunner().invoke(main, [*words, *(w for o in outs for w in ("-o", str(o)))], catch_exceptions=False)
    assert result.exit_code == 0
    html = outs[0].read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and "Content-Security-Policy" in html
    assert all(title in html for title in titles) and 'role="img"' in html
    assert not re.search(r'(?:src|href)="(?!data:|#)', html)
    assert json.loads(outs[1].read_text(encoding="utf-8"))
    assert outs[2].read_text(encoding="utf-8").rstrip() == result.stdout.rstrip()


def test_what_was_tried_is_a_page() -> None:
    diagnosis = diagnose(str(FIXTURES / "trials" / "nano124_eager.json"))
    html = to_html(diagnosis.trials[0], diagnosis=diagnosis)
    assert "compile is 1.24x as fast, measured" in html and "What was tried in the job" in html


def test_an_impossible_form_is_a_usage_error(tmp_path: Path) -> None:
    words = ["plan", "memory", "--model", "llama-3-8b", "--cluster", "8xh100", "-o"]
    for name in ("answer.pdf", "missing/answer.html"):
        assert isinstance(CliRunner().invoke(main, [*words, str(tmp_path / name)]).exception, BadRequest)


def test_nothing_of_the_input_is_markup() -> None:
    bad = "<img src=x onerror=alert(1)>"
    blocks = [
        table(bad, (bad,), [(bad,)], note=bad, folded=bad, slug="top"), table(bad, (bad,), [(bad,)]), steps(bad, [bad]),
        Facts(((bad, bad),), title=bad), Note(bad, title=bad, warns=True), Code(bad, bad, bad),
        Group((Note(bad),), (bad,), folded=True, title=bad),
    ]  # fmt: skip
    html = to_html(document(Verdict(bad, bad, bad, "bad", bad), *blocks, verb="whatif", subject=bad, inputs=(bad,)))
    assert "<img" not in html and "&lt;img" in html


@pytest.mark.parametrize(("name", "gpu"), [("kernels_details", None), ("extra_text", None), ("triton_details", "h200")])
def test_counters_that_name_no_card_find_it_or_are_told(name: str, gpu: str | None, tmp_path: Path) -> None:
    """A details page gives multiprocessors, capability and bandwidth, never the card's name."""
    file = next((FIXTURES / "kernels").glob(f"{name}*"))
    out = tmp_path / "answer.html"
    words = ["kernels", str(file), "-o", str(out), *(["--gpu", gpu] if gpu else [])]
    assert CliRunner().invoke(main, words, catch_exceptions=False).exit_code == 0
    assert "roofs of NVIDIA H200" in out.read_text(encoding="utf-8")
