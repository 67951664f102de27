"""Published rows as questions: words are understood, damage becomes a note, never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.errors import StallwiseError
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.recipe_text import habit, read_recipe, software_year
from stallwise.planner.predict import asked, predict
from stallwise.planner.runs import number, run_of
from stallwise.planner.validation import kind_named

ROW = {
    "row_id": "x", "source": "nowhere", "model": "some-13b", "params_b": "13", "layers": "40", "hidden": "5120",
    "heads": "40", "kv_heads": "40", "ffn": "13824", "gated_mlp": "1", "vocab": "32000", "seq": "4096", "experts": "",
    "topk": "", "gpu": "H100-80GB", "num_gpus": "64", "tp": "2", "pp": "2", "vp": "", "dp": "16", "cp": "1", "ep": "1",
    "sp": "1", "sharding": "distributed-optimizer", "micro_batch": "1", "global_batch": "256", "recompute": "none",
    "precision": "bf16", "schedule": "", "tokens_per_s_per_gpu": "", "tflops_per_gpu": "", "tflops_kind": "",
    "mfu_pct": "", "step_time_s": "5.0", "notes": "",
}  # fmt: skip
JUNK = ["", "0", "-1", "1e30", "nan", "inf", "abc", "3.5", "7", "9" * 20, "none", "[x]", "128 (a)"]


@settings(max_examples=20, deadline=None)
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
    ("text", "stage"),
    [("none", 0), ("distributed-optimizer", 1), ("fsdp2", 3), ("ZeRO-3", 3), ("zero-2", 2), ("fsdp-shard_grad_op", 2),
     ("fsdp2 (shard 1)", 0), ("zero1 (group 8)", 1), ("fsdp (optimizer+grad sharded, weights not resharded after fwd)", 2)],
)  # fmt: skip
def test_words_for_sharding(text: str, stage: int) -> None:
    assert run_of({**ROW, "sharding": text}).layout.zero == stage


def test_words_nobody_knows_are_open_never_a_guess() -> None:
    run = run_of({**ROW, "sharding": "quux mode", "recompute": "sometimes", "tp": "1", "pp": "1"})
    assert set(run.open_knobs) >= {"zero", "recompute", "attention"}
    assert all(abs(sum(w.values()) - 1) < 1e-9 for w in run.open_knobs.values() if w)


def test_an_unsaid_knob_widens_the_interval_by_what_its_settings_differ() -> None:
    said = {**ROW, "notes": "FlashAttention 2, Megatron-LM, TP comm overlap, overlap-grad-reduce, Jan 2025", "vp": "1"}
    vague = {**said, "recompute": ""}
    told, open_ = (predict(*asked(run_of(row))) for row in (said, vague))
    assert told.doubt.knobs < 0.01 < open_.doubt.knobs
    assert open_.high_s / open_.low_s > told.high_s / told.low_s


def test_a_publisher_is_no_recipe() -> None:
    """The same words mean the same run whoever prints them."""
    one, other = (run_of({**ROW, "sharding": "fsdp-full_shard", "source": s}) for s in ("llm-foundry", "somebody else"))
    assert one.layout == other.layout
    assert one.recipe.attention == other.recipe.attention


def test_what_is_not_said_is_a_mixture_of_what_fits() -> None:
    row = {**ROW, "recompute": "", "micro_batch": "", "model": "llama3-70b", "layers": "80", "hidden": "8192"}
    row |= {"heads": "64", "kv_heads": "8", "ffn": "28672", "vocab": "128256", "seq": "8192", "tp": "4", "pp": "4"}
    settled, choices = asked(run_of(row))
    assert set(settled.open_knobs) >= {"recompute", "micro_batch"}
    assert choices.weights.sum() == pytest.approx(1)
    assert predict(settled, choices).seconds > 0


def test_a_power_limit_in_the_notes_slows_the_card() -> None:
    limited = run_of({**ROW, "notes": "H100 96 GB HBM2e, 500 W"}).cluster.gpu
    assert limited.power_w == 500
    assert limited.bandwidth_byte_per_s < gpu("h100").bandwidth_byte_per_s
    slow, quick = (asked(run_of({**ROW, "notes": n})) for n in ("500 W", ""))
    assert predict(*slow).seconds > predict(*quick).seconds


def test_a_size_alone_gives_a_usual_shape() -> None:
    bare = {**ROW, "layers": "", "hidden": "", "model": "nobody-knows-this"}
    assert run_of(bare).model.parameters().total / 13e9 == pytest.approx(1, abs=0.15)
    with pytest.raises(StallwiseError):
        run_of({**bare, "params_b": ""})


def test_releases_are_read_as_years_and_footnotes_dropped() -> None:
    assert software_year("Megatron-Bridge 26.04.01") == pytest.approx(2026.29, abs=0.01)
    assert software_year("PaddlePaddle 2.5.1 of Nov 2023") == pytest.approx(2023.88, abs=0.01)
    assert software_year("Narayanan et al. 2021 Table 1") == 2021.5
    assert software_year("a table") == 0.0
    assert number({"a": "597[^note]"}, "a") == 597


SAID = [
    ("notes", "FlashAttention 2, no communication overlap (stated)", {"attention": "fa2", "overlap": "no", "tp_overlap": "none"}),
    ("notes", "torch.compile; AsyncTP", {"kernels": "fused", "tp_overlap": "ring"}),
    ("notes", "fused RMSNorm off", {"kernels": "eager"}),
    ("notes", "compile: off", {"kernels": None}),
    ("notes", "activation offload ratio 0.0", {"offload": None}),
    ("notes", "activation offload ratio 0.25", {"offload": "activations", "offload_share": 0.25}),
    ("notes", "nodes of 8 with 4x100 Gb RoCE", {"network_byte_per_s": 6.25e9}),
    ("notes", "400Gb/s per GPU", {"network_byte_per_s": 50e9}),
    ("notes", "InfiniBand 200 Gb (rails not stated)", {"network_byte_per_s": None}),
    ("notes", "4x HDR200, 4 GPUs per node", {"network_byte_per_s": 25e9}),
    ("notes", "nodes of 8 GPUs, 3.2 Tbps EFA per node", {"network_byte_per_s": 50e9}),
    ("nic", "25 GB/s per GPU", {"network_byte_per_s": 25e9}),
    ("notes", "8x80 GB, 80 GB per GPU, 640 GB per node", {"network_byte_per_s": None}),
    ("notes", "four nodes, tokens per GPU 900", {"network_byte_per_s": None}),
    ("recompute", "selective(op)", {"recompute": "operator"}),
    ("recompute", "selective(mlp-act+norm)", {"recompute": "none", "recompute_modules": ("mlp_act", "attn_norm", "mlp_norm")}),
    ("recompute", "partial(12/80 layers full)", {"recompute": "full", "recompute_layer_share": 0.15}),
    ("precision", "fp8-rowwise", {"scaling": "rowwise"}),
    ("attention", "fa3", {"attention": "fa3"}),
    ("framework", "jax", {"framework": "jax"}),
]  # fmt: skip


@pytest.mark.parametrize(("column", "text", "meaning"), SAID)
def test_words_of_a_recipe(column: str, text: str, meaning: dict[str, object]) -> None:
    said = read_recipe({column: text})
    assert {key: getattr(said, key) for key in meaning} == meaning


def test_a_small_node_is_a_small_domain() -> None:
    cluster = run_of({**ROW, "gpu": "A100-40GB", "notes": "nodes of 4 with 4x HDR200"}).cluster
    assert (cluster.gpus_per_node, cluster.domain, cluster.nic_byte_per_s) == (4, 4, 25e9)


def test_habits_are_odds_and_follow_the_calendar() -> None:
    assert habit("attention", year=2021.5, architecture="ampere") == {"unfused": 1.0}
    later = habit("attention", year=2025.0, architecture="hopper", framework="megatron")
    assert sum(later.values()) == pytest.approx(1)
    assert later["fa3"] > 0.5
