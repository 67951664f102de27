"""Published rows as questions: words are understood, damage becomes a note, never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.errors import StallwiseError
from stallwise.search.predict import predict, work_of
from stallwise.search.runs import number, run_of, sharding_of, software_year
from stallwise.search.validation import kind_named
from stallwise.specs.hardware import gpu

ROW = {
    "row_id": "x", "source": "nowhere", "model": "some-13b", "params_b": "13", "layers": "40", "hidden": "5120",
    "heads": "40", "kv_heads": "40", "ffn": "13824", "gated_mlp": "1", "vocab": "32000", "seq": "4096", "experts": "",
    "topk": "", "gpu": "H100-80GB", "num_gpus": "64", "tp": "2", "pp": "2", "vp": "", "dp": "16", "cp": "1", "ep": "1",
    "sp": "1", "sharding": "distributed-optimizer", "micro_batch": "1", "global_batch": "256", "recompute": "none",
    "precision": "bf16", "schedule": "", "tokens_per_s_per_gpu": "", "tflops_per_gpu": "", "tflops_kind": "",
    "mfu_pct": "", "step_time_s": "5.0", "notes": "",
}  # fmt: skip
JUNK = ["", "0", "-1", "1e30", "nan", "inf", "abc", "3.5", "7", "9" * 20, "none", "[x]", "128 (a)"]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(ROW)), st.sampled_from(JUNK), max_size=4))
def test_damaged_rows_are_noted_not_raised(damage: dict[str, str]) -> None:
    for kind in ("training", "memory"):
        scored = kind_named(kind).validate([{**ROW, **damage}], 0)
        assert len(scored) == 1
        assert scored[0].predicted is None or scored[0].predicted > 0


def test_the_measured_columns_are_never_looked_at() -> None:
    results = {"step_time_s": "99", "tokens_per_s_per_gpu": "1", "tflops_per_gpu": "7", "mfu_pct": "3", "hfu_pct": "4"}
    one, other = (kind_named("training").validate([row], 0)[0] for row in (ROW, {**ROW, **results}))
    assert one.predicted == other.predicted
    assert (one.low, one.high) == (other.low, other.high)


@pytest.mark.parametrize(
    ("text", "pp", "stage"),
    [("none", 1, 0), ("", 1, 1), ("distributed-optimizer", 1, 1), ("fsdp2", 1, 3), ("ZeRO-3".lower(), 1, 3),
     ("zero-2", 1, 2), ("zero-2", 8, 1), ("fsdp-shard_grad_op", 1, 2), ("fsdp2 (shard 1)", 1, 0)],
)  # fmt: skip
def test_words_for_sharding(text: str, pp: int, stage: int) -> None:
    assert sharding_of(text, pp)[0] == stage


def test_what_is_not_said_is_chosen_so_that_it_fits() -> None:
    row = {**ROW, "recompute": "", "micro_batch": "", "model": "llama3-70b", "layers": "80", "hidden": "8192"}
    row |= {"heads": "64", "kv_heads": "8", "ffn": "28672", "vocab": "128256", "seq": "8192", "tp": "4", "pp": "4"}
    settled, work = work_of(run_of(row))
    assert set(settled.open_knobs) >= {"recompute", "micro_batch"}
    assert predict(settled, work).seconds > 0


def test_a_power_limit_in_the_notes_slows_the_card() -> None:
    limited = run_of({**ROW, "notes": "H100 96 GB HBM2e, 500 W"}).cluster.gpu
    assert limited.power_w == 500
    assert limited.bandwidth_byte_per_s < gpu("h100").bandwidth_byte_per_s
    slow, quick = (work_of(run_of({**ROW, "notes": n})) for n in ("500 W", ""))
    assert predict(*slow).seconds > predict(*quick).seconds


def test_a_size_alone_gives_a_usual_shape() -> None:
    bare = {**ROW, "layers": "", "hidden": "", "model": "nobody-knows-this"}
    assert run_of(bare).model.parameters().total / 13e9 == pytest.approx(1, abs=0.15)
    with pytest.raises(StallwiseError):
        run_of({**bare, "params_b": ""})


def test_releases_are_read_as_years_and_footnotes_dropped() -> None:
    assert software_year("Megatron-Bridge 26.04.01") == pytest.approx(2026.29, abs=0.01)
    assert software_year("Narayanan et al. 2021 Table 1") == 0.0
    assert number({"a": "597[^note]"}, "a") == 597
