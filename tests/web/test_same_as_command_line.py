"""The page answers a question with the numbers of the command line: one code path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from stallwise.surfaces.cli._plan.serve import command as serve
from stallwise.surfaces.cli._plan.train import command as train
from stallwise.surfaces.web import answers

SERVED = (
    {"model": "llama-3.1-70b", "isl": 2000, "osl": 300, "rate": 16, "ttft": "500ms", "tpot": "40ms"},
    {"model": "llama-3.1-8b", "gpu": "a100-80gb-sxm", "isl": 800, "osl": 400, "rate": 30, "ttft": "1s", "tpot": "50ms"},
)


@pytest.mark.parametrize("question", SERVED, ids=lambda q: q["model"])
def test_a_service_is_sized_alike(question: dict[str, Any]) -> None:
    words = [part for key, value in question.items() for part in (f"--{key}", str(value))]
    typed = json.loads(CliRunner().invoke(serve, [*words, "--json"], catch_exceptions=False).stdout)
    page = answers.service(question)
    shown = typed["options"][: len(page["options"])]
    for key in ("replicas", "gpus", "dollar_per_hour", "headroom_share", "limited_by"):
        assert [o[key] for o in page["options"]] == [o[key] for o in shown], key
    for key in ("ttft_s", "tpot_s"):
        assert [o[key] for o in page["options"]] == [o["now"][key] for o in shown], key
    assert page["tried"] == typed["tried"] and page["refused"] == typed["refused"]


def test_a_layout_is_searched_alike() -> None:
    words = ["--model", "llama-3-8b", "--cluster", "64xh100-sxm", "--seq", "4096", "--global-batch", "512", "--json"]
    typed = json.loads(CliRunner().invoke(train, words, catch_exceptions=False).stdout)
    page = answers.best_layouts(
        {"model": "llama-3-8b", "gpu": "h100-sxm", "gpus": 64, "seq": 4096, "global_batch": 512}
    )
    assert page["best"][0]["label"] == typed["best"][0]["label"]
    assert page["best"][0]["seconds"] == pytest.approx(typed["best"][0]["seconds"])
    assert page["feasible"] == typed["feasible"]
