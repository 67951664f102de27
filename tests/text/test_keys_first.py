"""Numbers that follow their keys, and numbers that stand before what they count: the same facts either way."""

from __future__ import annotations

import pytest

from stallwise.readers.shapes import shapes_in
from stallwise.readers.text.mentions import mentions
from stallwise.readers.text.understand import understand

TOLD = [
    ("ISL 2000 OSL 300 at 16 requests/s", {"serve.prompt_tokens": 2000, "serve.output_tokens": 300}),
    ("isl 1024 osl 128 concurrency 64", {"serve.prompt_tokens": 1024, "serve.output_tokens": 128, "serve.concurrency": 64}),
    ("2000 prompt tokens and 300 output tokens", {"serve.prompt_tokens": 2000, "serve.output_tokens": 300}),
    ("TP 8 PP 4 DP 16 on 512 GPUs", {"layout.tp": 8, "pp": 4, "dp": 16, "gpus": 512}),
    ("4 nodes 8 GPUs 32 samples", {"layout.nodes": 4, "gpus": 8}),
    ("PP 8 32 microbatches", {"pp": 8, "microbatches": 32}),
    ("99% KV usage and 500 requests waiting, 60 running", {"serve.waiting": 500, "serve.running": 60}),
    ("A100 80GB, grad accum 8", {"memory.capacity": 80e9}),
    ("mbs 2, gbs 1024", {"microbatch": 2, "global_batch": 1024}),
]  # fmt: skip


@pytest.mark.parametrize(("told", "facts"), TOLD, ids=[t for t, _ in TOLD])
def test_each_number_has_its_own_name(told: str, facts: dict[str, float]) -> None:
    assert facts.items() <= _facts(told).items()


def test_a_key_that_has_no_name_is_not_its_neighbours() -> None:
    assert _facts("input length 2000, output length 300")["serve.output_tokens"] == 300


def test_a_time_without_a_unit_is_not_taken_from_the_number_behind_it() -> None:
    assert _facts("batch 32 on 8 cards, depth 12 step time 2 s")["run.step_time"] == 2


@pytest.mark.parametrize(
    "told",
    ["mfu 22% (was 48%)", "mfu is 22%, down from 48%", "mfu 22% vs 48% before",
     "mfu fell from 48% to 22%", "mfu 0.22, it used to be 0.48"],
)  # fmt: skip
def test_what_a_number_was_stands_beside_it(told: str) -> None:
    found = understand(list(shapes_in("mail.txt", told)), told, "mail.txt", written=True)
    assert {(f.scope.run, f.value) for f in found.facts if f.quantity.name == "run.mfu"} == {
        (None, 0.22),
        ("before", 0.48),
    }


def test_a_number_of_another_thing_is_no_earlier_value() -> None:
    found = _facts("mfu 22%, the bubble was 48%")
    assert found["run.mfu"] == 0.22 and found["bubble"] == 0.48


def test_time_that_goes_into_waiting_for_a_batch_is_no_queue() -> None:
    assert "serve.queue_time" not in _facts("the step takes 545 ms, of which 200 ms is waiting for the next batch")


def test_a_setting_may_be_one_word_with_its_number_and_a_card_is_none() -> None:
    found = {
        f.quantity.name: f.value for f in mentions("TP8 PP4 DP16 on gpu3 of an H100 with fp16 and pcie4", "mail.txt")
    }
    assert found == {"layout.tp": 8, "pp": 4, "dp": 16, "gpu": "H100"}


def _facts(text: str) -> dict[str, object]:
    found = understand(list(shapes_in("mail.txt", text)), text, "mail.txt", written=True)
    return {f.quantity.name: f.value for f in found.facts}
