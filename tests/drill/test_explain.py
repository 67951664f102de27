# ruff: noqa: E501
"""Concepts are whole pages: definition, formula, a number worked out by the cost model, and what belongs to them."""

from __future__ import annotations

import json
import math

import pytest
from click.testing import CliRunner

from stallwise.causes import all_rules
from stallwise.drill.deck import all_cards
from stallwise.drill.explain import concepts, explained, find_concept
from stallwise.errors import BadRequest
from stallwise.surfaces.cli.explain import command
from stallwise.units import Unit

CAUSES, CARDS = {r.cause for r in all_rules()}, {c.id for c in all_cards()}
# Names as the question seeds write them.
SEEDS = (
    "occupancy", "roofline", "GQA", "ZeRO", "ring", "NVLS", "bank conflict", "speculative decoding", "1F1B", "Xid", "MFU", "HFU",
    "KV cache", "tensor parallelism", "pipeline parallel", "FSDP", "FlashAttention", "CUDA graphs", "pinned memory", "coalescing",
    "activation checkpointing", "gradient accumulation", "mixed precision", "bf16", "FP8", "chunked prefill", "continuous batching",
    "TTFT", "arithmetic intensity", "all-reduce", "expert parallelism", "sequence parallelism", "MIG", "kernel fusion", "quantization",
)  # fmt: skip


@pytest.mark.parametrize("name", concepts())
def test_a_concept_is_a_whole_page(name: str) -> None:
    concept = concepts()[name]
    value, unit = concept.number
    assert math.isfinite(value) and value > 0 and isinstance(unit, Unit)
    assert len(concept.definition) > 60 and concept.equation and concept.shows and concept.causes
    assert set(concept.causes) <= CAUSES and set(concept.cards) <= CARDS
    assert find_concept(concept.title) is concept
    for other in concept.also:
        assert find_concept(other) is concept
    page = concept.page()
    assert concept.worked_line in page and "formula" in page and "shows in" in page


@pytest.mark.parametrize("name", SEEDS)
def test_what_the_seeds_speak_of_is_explained(name: str) -> None:
    assert "concept" in explained(name) or "cause" in explained(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gqa", 2 * 32 * 8 * 128 * 2), ("1f1b", 7 / 39), ("zero", 7.5e9 * 16 / 64), ("roofline", 989 / 3.35), ("kv-cache", 2 * 32 * 8 * 128 * 2 * 8192),
     ("speculative-decoding", sum(0.8**k for k in range(5))), ("occupancy", 0.125), ("hfu", 0.4 * 4 / 3), ("tensor-core", 989.4 / 66.9)],
)  # fmt: skip
def test_worked_numbers_are_those_of_arithmetic(name: str, value: float) -> None:
    assert concepts()[name].number[0] == pytest.approx(value, rel=0.01)


def test_the_command_prints_both_kinds_of_pages_and_near_names() -> None:
    runner = CliRunner()
    assert "131 kB" in runner.invoke(command, ["gqa"]).output
    assert "concepts  " in runner.invoke(command, ["kv-cache-preemption"]).output
    page = json.loads(runner.invoke(command, ["speculative decoding", "--json"]).output)
    assert page["concept"] == "speculative-decoding" and page["worked"]["value"] == pytest.approx(3.3616)
    listed = runner.invoke(command, []).output
    rows = listed.splitlines()[2:]  # below the count and the headings
    assert len(rows) == len(concepts()) >= 50
    with pytest.raises(BadRequest) as problem:
        explained("ocupancy")
    assert "occupancy" in problem.value.hint
