"""Shapes and counts of models against what their makers publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.errors import BadRequest, StallwiseError, UnreadableInput
from stallwise.physics.specs.model import Model, find_model
from stallwise.physics.specs.models import catalog, model_names

# Parameter counts as the checkpoints' index files give them.
PUBLISHED = {
    "llama-3.1-8b": 8_030_261_248,
    "llama-2-7b": 6_738_415_616,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "gpt2": 124_439_808,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-30b-a3b": 30_532_122_624,
    "mixtral-8x7b": 46_702_792_704,
    "llama-3.2-1b": 1_235_814_400,
    "gemma-2-9b": 9_241_705_984,
    "deepseek-v2-lite": 15_706_484_224,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_match_the_checkpoint_to_the_last_one(name: str) -> None:
    assert find_model(name).parameters().total == PUBLISHED[name]


def test_deepseek_v3_has_671_billion_without_its_prediction_block_and_37_active() -> None:
    counts = find_model("deepseek-v3").parameters()
    assert (counts.total - counts.mtp) / 1e9 == pytest.approx(671.03, abs=0.05)
    assert counts.active / 1e9 == pytest.approx(37.55, abs=0.05)


def test_every_catalogued_model_is_readable_and_says_its_source() -> None:
    assert len(model_names()) >= 40
    for name in model_names():
        model = find_model(name)
        assert model.source and model.parameters().active <= model.parameters().total


@pytest.mark.parametrize("spelling", ["meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8B", "LLAMA-3.1-8b"])
def test_people_spell_names_differently(spelling: str) -> None:
    assert find_model(spelling).name == "llama-3.1-8b"


def test_grouped_heads_shrink_the_cache_and_replicate_beyond_their_count() -> None:
    model = find_model("llama-3.1-70b")
    assert model.kv_bytes_per_token("bf16") == 2 * 80 * 8 * 128 * 2
    assert model.kv_bytes_per_token("bf16", tp=8) == model.kv_bytes_per_token("bf16", tp=16)


def test_a_latent_cache_does_not_shrink_with_tensor_parallelism() -> None:
    model = find_model("deepseek-v3")
    assert model.kv_bytes_per_token("bf16") == 61 * 576 * 2
    assert model.kv_bytes_per_token("bf16", tp=8) == model.kv_bytes_per_token("bf16")


def test_windowed_layers_stop_growing() -> None:
    model = find_model("gemma-3-27b")
    short, long = model.kv_bytes(1024), model.kv_bytes(101 * 1024)
    full = sum(k.layers for k in model.kinds if k.attention == "full")
    assert full == 10
    assert long / short == pytest.approx((full * 101 + 52) / 62)


def test_a_path_a_folder_and_the_text_half_of_a_multimodal_config(tmp_path: Path) -> None:
    text = {
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "intermediate_size": 128,
    }
    folder = tmp_path / "my-vlm"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"text_config": text, "vision_config": {"image_size": 224}}))
    model = find_model(str(folder))
    assert (model.name, model.layers, model.kv_heads) == ("my-vlm", 2, 4)
    assert find_model(str(folder / "config.json")) == model


def test_a_vision_model_is_refused_in_words() -> None:
    config = {
        "architectures": ["ViTForImageClassification"],
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "image_size": 224,
        "patch_size": 16,
    }
    with pytest.raises(BadRequest, match="vision model"):
        Model.from_config(config)


def test_unknown_names_come_back_with_the_nearest() -> None:
    with pytest.raises(BadRequest) as caught:
        find_model("lama-3.1-8b")
    assert "llama-3.1-8b" in caught.value.hint


def test_broken_files_are_unreadable_not_tracebacks(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(UnreadableInput):
        find_model(str(path))
    path.write_text("{}")
    with pytest.raises(BadRequest, match="num_hidden_layers"):
        find_model(str(path))


def test_key_value_heads_that_do_not_divide_get_the_nearest_that_do() -> None:
    with pytest.raises(BadRequest) as caught:
        Model("x", layers=2, hidden=64, heads=8, kv_heads=3, head_dim=8, intermediate=128, vocab=10)
    assert "2" in caught.value.hint


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(catalog())),
    st.dictionaries(
        st.sampled_from(["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
                         "vocab_size", "layer_types", "architectures", "quantization_config", "text_config",
                         "num_experts", "num_experts_per_tok", "kv_lora_rank", "sliding_window", "mlp_only_layers"]),
        st.sampled_from([None, 0, -1, "abc", [], [None], {}, 1e30, 10**40, True, float("nan"), float("inf"), "8"]),
        max_size=3,
    ),
)  # fmt: skip
def test_a_damaged_config_gives_a_model_or_a_sentence(name: str, damage: dict[str, object]) -> None:
    try:
        model = Model.from_config({**catalog()[name], **damage})
    except StallwiseError as error:
        assert error.problem
        return
    assert model.parameters().total > 0


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("LLaMA 70B", "llama-3.1-70b"),  # the latest of its size; all of them have one shape
        ("LLaMA 7B", "llama-2-7b"),
        ("GPT-J 6B", "gpt-j-6b"),
        ("Llama-3.3-70b-instruct v1.8.0", "llama-3.1-70b"),  # the release of the container is no part of the name
        ("nim/llama-3.1-8b-instruct:1.3.0", "llama-3.1-8b"),
    ],
)
def test_a_name_without_generation_or_with_a_container_s_release_is_known(spelling: str, name: str) -> None:
    assert find_model(spelling).name == name


def test_a_size_whose_generations_differ_is_not_guessed() -> None:
    with pytest.raises(BadRequest):
        find_model("Qwen 14B")  # Qwen2.5 and Qwen3 are built differently
