"""The lexicon is data that must hold together: names of the catalogue, directions, wholes, and no phrase with two owners."""

from __future__ import annotations

from collections import defaultdict

import pytest

from stallwise.doctor.findings.symptom import Symptom
from stallwise.evidence.catalog import quantities
from stallwise.readers.text.entries import entries
from stallwise.readers.text.loop import column_of, columns, printed
from stallwise.readers.text.name import name
from stallwise.readers.text.phrases import phrase_table, statements_in, symptom_in
from stallwise.readers.text.words import word_table
from stallwise.units import Unit


def test_every_entry_is_a_quantity_of_the_catalogue_with_a_direction_or_none() -> None:
    known = quantities()
    for name_, entry in entries().items():
        assert known[name_] is entry.quantity
        one = entry.quantity
        assert one.better in ("", "lower", "higher")
        for other in (one.whole, one.tail, one.expected, one.limit):
            assert not other or other in known, (name_, other)
        assert not one.symptom or one.symptom in Symptom.__members__


def test_a_phrase_belongs_to_one_quantity_of_a_unit() -> None:
    owners = defaultdict(set)
    for entry in entries().values():
        if entry.quantity.words:
            for phrase in entry.phrases:
                owners[phrase, entry.quantity.unit].add(entry.quantity.name)
    twice = {phrase: names for phrase, names in owners.items() if len(names) > 1}
    assert len(twice) <= KNOWN_TWINS, twice


KNOWN_TWINS = 6  # "context" of a task and of a model and the like: the first in order is taken


@pytest.mark.parametrize(
    ("path", "unit", "quantity", "scale"),
    [
        (("observed", "achieved_tflops"), "", "run.flop_rate", 1e12),
        (("cuBLAS rate",), "TFLOPS", "library_flop_rate", 1e12),
        (("metrics", "reference", "tflops"), "", "library_flop_rate", 1e12),
        (("tensorCoreUtilization",), "%", "kernel.tensor_pipe_share", 0.01),
        (("elapsed time per iteration (ms)",), "", "run.step_time", 1e-3),
        (("p99_ttft_ms",), "", "serve.ttft_tail", 1e-3),
        (("Request throughput (req/s)",), "", "serve.achieved_rate", 1.0),
        (("request_rate",), "", "serve.offered_rate", 1.0),
        (("GPU KV cache usage",), "%", "serve.kv_max", 0.01),
        (("tensor_parallel_size",), "", "layout.tp", 1.0),
        (("data_wait_ms",), "", "run.data_time", 1e-3),
        (("peak_mem_gb",), "", "memory.peak", 1e9),
        (("speedup", "expected"), "", "expected_speedup", 1.0),
        (("bf16_accuracy",), "", "accuracy", 1.0),
    ],
)
def test_keys_of_strangers_have_a_name(path: tuple[str, ...], unit: str, quantity: str, scale: float) -> None:
    found = name(path, unit)
    assert found is not None and (found.quantity.name, found.scale) == (quantity, scale)


@pytest.mark.parametrize("path", [("foo bar",), ("seqnum",), ("port",), ("kernel", "version"), ("colour of the case",)])
def test_a_stranger_stays_without_a_name(path: tuple[str, ...]) -> None:
    assert name(path, "ms") is None


def test_the_unit_must_fit() -> None:
    assert name(("step time",), "GB") is None
    inverse = name(("it/s",))
    assert inverse is not None and inverse.inverse


@pytest.mark.parametrize(
    ("text", "symptom"),
    [
        ("slower since last night, nothing changed in the code", "SUDDEN_SLOWDOWN"),
        ("OOMs at batch 32", "OUT_OF_MEMORY"),
        ("8 GPUs only 3x faster than one", "SLOW_SCALING"),
        ("nvidia-smi shows 95% utilization but throughput is low", "BUSY_BUT_SLOW"),
        ("GPU utilisation is low", "LOW_GPU_UTILISATION"),
        ("Inference latency is mostly fine but spikes intermittently", "SERVING_SLOW"),
        ("Throughput dropping over time", "GRADUAL_SLOWDOWN"),
        ("oom=no", ""),
        ("the job does not hang", ""),
        ("no code change", ""),
    ],
)
def test_complaints_keep_word_boundaries_and_negations(text: str, symptom: str) -> None:
    assert symptom_in(text) == symptom


def test_every_symptom_of_the_table_exists_and_every_one_has_words() -> None:
    named = {row["name"] for row in word_table("symptoms.toml")["symptom"]}
    assert named == set(Symptom.__members__)


def test_statements_are_of_the_catalogue_and_can_be_denied() -> None:
    assert all(one.row["quantity"] in quantities() for one in phrase_table("statements"))
    assert {(s.quantity, s.value) for s in statements_in("No stragglers, the fabric is healthy.")} == {
        ("stragglers", "no"),
        ("fabric_healthy", "yes"),
    }
    assert quantities()["stragglers"].unit is Unit.FLAG


@pytest.mark.parametrize(
    ("key", "unit", "quantity", "scale"),
    [
        ("elapsed_time_per_iteration_ms", "K", "run.step_time", 1.0),
        ("train_step_timing in s", "", "run.step_time", 1.0),
        ("bwd_allreduce", "ms", "stage.gradient_sync", 1e-3),
        ("time_metrics/data_loading(%)", "", "run.data_share", 0.01),
        ("Tokens/s/device", "", "run.tokens_per_s", 1.0),
        ("memory/max_active (GiB)", "", "run.gpu_memory", 2.0**30),
        ("cuda_memory_allocated", "G", "run.gpu_memory", 2.0**30),
    ],
)
def test_keys_of_a_loop(key: str, unit: str, quantity: str, scale: float) -> None:
    found = column_of(key, unit)
    assert found is not None and found.quantity.name == quantity and found.scale == pytest.approx(scale)


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("num_tokens_per_req", ""),
        ("Available KV cache memory", "GiB"),
        ("Memory", "MHz"),
        ("consumed samples", ""),
        ("seq_length", ""),
    ],
)
def test_keys_that_are_no_loop_s(key: str, unit: str) -> None:
    assert printed(key, unit) is None


def test_every_column_of_the_loop_is_a_quantity() -> None:
    assert len(columns()) == len(word_table("loop.toml")["column"])


@pytest.mark.parametrize(
    ("key", "quantity"),
    [
        ("perf/mfu", "run.mfu"),
        ("trainer.step_time_ms", "run.step_time"),
        ("run-1 - system/gpu.0.powerWatts", "gpu.power"),
        ("blue-river-7 - train/loss", "run.loss"),
    ],
)
def test_a_key_that_a_tracker_flattened_is_read_as_a_path(key: str, quantity: str) -> None:
    named = name((key,))
    assert named is not None and named.quantity.name == quantity


@pytest.mark.parametrize("key", ["train.py", "libfoo.so.1", "10.0.0.1", "a/b/c.json", "v1.2"])
def test_a_name_of_a_file_is_no_path_of_keys(key: str) -> None:
    assert name((key,)) is None
