"""One question, one number: the command line, the library, the page, `plan memory` and `plan validate` agree."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from click.testing import CliRunner

import stallwise
from stallwise.planner.standing import KNOWN, UNKNOWN
from stallwise.planner.validation import kind_named
from stallwise.surfaces.cli._plan.memory import command as memory_command
from stallwise.surfaces.cli._plan.train import command as train_command
from stallwise.surfaces.web.answers import layout as on_the_page

MODELS = (
    ("llama-3-8b", "h100-sxm", 64, 256), ("llama-3-70b", "h100-sxm", 512, 512), ("llama-2-7b", "a100-80gb-sxm", 32, 128),
    ("qwen3-30b-a3b", "h100-sxm", 64, 512), ("llama-3.1-405b", "gb200", 1024, 1024),
    ("llama-3-8b", "h200", 8, 64),
)  # fmt: skip
CUTS = ((1, 1, 1), (2, 1, 2), (4, 4, 1), (8, 4, 2), (8, 2, 0))  # TP, PP, ZeRO
STYLES = (("bf16", "none"), ("fp8", "selective"), ("bf16", "full"), ("fp8", "none"))
LARGE = ("llama-3-70b", "llama-3.1-405b")  # do not fit on two ways
SHARDING = ("none", "zero-1", "zero-2", "zero-3")


def questions() -> list[tuple[Any, ...]]:
    found = [
        (model, cut, style)
        for cut, model, style in product(CUTS, MODELS, STYLES)
        if not (style[0] == "fp8" and "a100" in model[1]) and not (model[0] in LARGE and cut[0] < 4)
    ]
    return found[:: len(found) // 50][:50]


def test_there_are_fifty() -> None:
    assert len(questions()) == 50


@pytest.mark.parametrize("model, cut, style", questions())
def test_doors_agree(model: tuple[str, str, int, int], cut: tuple[int, int, int], style: tuple[str, str]) -> None:
    (name, card, gpus, batch), (tp, pp, zero), (precision, recompute) = model, cut, style
    if gpus == 8:  # inside one domain there is one way to shard weights
        tp, pp, zero = 1, 1, 3
    axes = {"tp": tp, "pp": pp, "zero": zero, "micro_batch": 1}
    asked: dict[str, Any] = {"vp": 1, "cp": 1, "recompute": recompute, "precision": precision, "top": 1}
    if "a3b" in name:
        asked["ep"] = 8
    library = stallwise.plan(name, f"{gpus}x{card}", seq=4096, global_batch=batch, **axes, **asked)
    best = library.best[0]
    words = [f"--{k.replace('_', '-')}={v}" for k, v in {**axes, **asked}.items()]
    where = [f"--model={name}", f"--cluster={gpus}x{card}", "--seq=4096", f"--global-batch={batch}"]
    shown = json.loads(CliRunner().invoke(train_command, [*where, *words, "--json"]).stdout)["best"][0]
    page = on_the_page({
        "model": name, "gpu": card, "gpus": gpus, "seq": 4096, "global_batch": batch, "precision": precision,
        "recompute": recompute, **axes, "ep": asked.get("ep", 1),
    })  # fmt: skip
    for field in ("seconds", "low_s", "memory_bytes", "memory_low_bytes", "memory_high_bytes", "fit", "mfu_share"):
        assert shown[field] == pytest.approx(getattr(best, field)), field
        assert page[field] == pytest.approx(getattr(best, field)), field
    held = [w for w in words if not w.startswith("--top")]
    alone = CliRunner().invoke(memory_command, [*where, *held, "--json"])
    assert json.loads(alone.stdout)["peak_bytes"] == pytest.approx(best.memory_bytes)
    row = {
        "row_id": "q", "source": "", "model": name, "gpu": card, "num_gpus": str(gpus), "seq": "4096",
        "global_batch": str(batch), "tp": str(tp), "pp": str(pp), "cp": "1", "vp": "1", "ep": str(asked.get("ep", 1)),
        "micro_batch": "1", "sharding": SHARDING[zero], "recompute": recompute, "precision": precision,
        "attention": "fa2" if "a100" in card else "fa3", "framework": "megatron", "kernels": "fused",
        "tp_overlap": "ring", "overlap": "yes", "scaling": "tensorwise",
        "param": best.layout.param_dtype, "grad": best.layout.grad_dtype,
    }  # fmt: skip
    (scored,) = kind_named("training").validate([row], 0)
    told = {a.name: a.seconds for a in library.answers}
    assert scored.predicted == pytest.approx(told.get(KNOWN) or told[UNKNOWN]), scored.note
