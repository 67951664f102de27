"""Memory by the byte: against measured peaks, published tables and its own identities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.memory import activation_bytes, in_flight, memory, state_bytes
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model, find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload

EAGER = Recipe(style="ddp", weight_bytes=2.0, grad_bytes=2.0, master=False, fused=False, overlap=False)
ALONE = Layout(zero=0, sequence_parallel=False)


def decoder(layers: int, hidden: int, heads: int, kv: int, ffn: int, vocab: int) -> Model:
    return Model("decoder", layers, hidden, heads, kv, hidden // heads, ffn, vocab)


# Peaks of the allocator on one H200 in plain PyTorch: (model, seq, micro-batch, recompute, autocast, bytes).
MEASURED = [
    (decoder(24, 2048, 16, 16, 5504, 32000), 2048, 8, "none", False, 44748356608),
    (decoder(24, 2048, 16, 16, 5504, 32000), 2048, 8, "none", True, 58675620864),
    (decoder(16, 2048, 16, 4, 8192, 128256), 2048, 8, "none", False, 60668132352),
    (decoder(32, 4096, 32, 8, 14336, 128256), 4096, 2, "none", False, 109278129152),
    (decoder(24, 2048, 16, 16, 5504, 32000), 4096, 2, "full", True, 23116778496),
    (decoder(32, 4096, 32, 8, 14336, 128256), 2048, 8, "full", False, 77961423872),
]


@pytest.mark.parametrize(("model", "seq", "mb", "recompute", "autocast", "peak"), MEASURED)
def test_peaks_measured_on_an_h200_are_met_within_one_percent(
    model: Model, seq: int, mb: int, recompute: str, autocast: bool, peak: int
) -> None:
    recipe = replace(EAGER, weight_bytes=4.0, grad_bytes=4.0) if autocast else EAGER
    workload = Workload(seq, mb)
    grid = grid_of([replace(ALONE, micro_batch=mb, recompute=recompute)], workload)
    assert float(memory(model, grid, workload, recipe).allocated[0]) == pytest.approx(peak, rel=0.01)


def test_korthikanti_formula_falls_out_of_the_tensors() -> None:
    """s b h (34 + 5 a s / h) bytes per layer without tensor parallelism (Korthikanti et al. 2022, equation 1)."""
    h, a, s, b = 6144, 64, 2048, 4
    model = Model("gpt", 48, h, a, a, h // a, 4 * h, 51200, gated=False)
    recipe = Recipe(precision="fp16", attention="unfused", dropout=True)
    workload = Workload(s, b)
    grid = grid_of([Layout(micro_batch=b, sequence_parallel=False, zero=0)], workload)
    expected = s * b * h * (34 + 5 * a * s / h)
    assert float(activation_bytes(model, grid, workload, recipe, "none")[0]) == pytest.approx(expected)


def test_why_tp4_dp128_fails_where_tp8_dp64_fits() -> None:
    """70B on 512 H100s of 80 GB, distributed optimizer: the weights and gradients that TP alone divides decide."""
    model, workload = find_model("llama-3-70b"), Workload(8192, 512)
    recipe = Recipe()
    wide = Layout(tp=8, dp=64, micro_batch=1, recompute="full")
    narrow = Layout(tp=4, dp=128, micro_batch=1, recompute="full")
    grid = grid_of([wide, narrow], workload)
    used = memory(model, grid, workload, recipe).device
    assert used[0] < 80 * 2**30 < used[1]


def test_flash_attention_leaves_selective_recompute_little_to_save() -> None:
    """Megatron-LM issue 1225: 70% were expected from recomputing scores that a fused kernel never stores."""
    model, workload = find_model("llama-3-8b"), Workload(8192, 8)
    grid = grid_of([Layout(dp=8, micro_batch=1)], workload)
    flash, plain = Recipe(), Recipe(attention="unfused")
    saved_flash = activation_bytes(model, grid, workload, flash, "selective") / activation_bytes(
        model, grid, workload, flash, "none"
    )
    saved_plain = activation_bytes(model, grid, workload, plain, "selective") / activation_bytes(
        model, grid, workload, plain, "none"
    )
    assert float(saved_flash[0]) > 0.6 > 0.3 > float(saved_plain[0])


def test_adam_in_mixed_precision_takes_eighteen_bytes_a_parameter_and_sharding_leaves_six() -> None:
    model, workload = find_model("llama-2-7b"), Workload(4096, 64)
    recipe = Recipe()
    plain = state_bytes(model, grid_of([Layout(dp=64, zero=0)], workload), recipe)
    sharded = state_bytes(model, grid_of([Layout(dp=64, zero=1)], workload), recipe)
    params = model.parameters().total
    assert float(plain[0]) / params == pytest.approx(18, rel=1e-3)
    assert float(sharded[0]) / params == pytest.approx(6 + 12 / 64, rel=1e-3)


def test_the_first_stage_holds_most_microbatches_and_interleaving_more() -> None:
    workload = Workload(1024, 64)
    grid = grid_of([Layout(pp=8, dp=1, zero=0), Layout(pp=8, dp=1, zero=0, virtual_stages=4)], workload)
    first = in_flight(grid, "1f1b", np.zeros(2))
    last = in_flight(grid, "1f1b", np.full(2, 7.0))
    assert first.tolist() == [8.0, (3 * 8 + 2 * 8 - 1) / 4]
    assert last[0] == 1.0


def test_parts_sum_to_what_the_device_shows() -> None:
    model, workload = find_model("qwen3-30b-a3b"), Workload(4096, 512)
    grid = grid_of([Layout(dp=8, ep=8, micro_batch=2), Layout(dp=4, pp=2, ep=4, micro_batch=1)], workload)
    found = memory(model, grid, workload, Recipe())
    assert np.allclose(sum(found.parts().values()), found.device)


@given(
    mb=st.sampled_from([1, 2, 4]), tp=st.sampled_from([1, 2, 4, 8]), pp=st.sampled_from([1, 2, 4]),
    zero=st.sampled_from([0, 1, 2, 3]), recompute=st.sampled_from(["none", "selective", "full"]),
)  # fmt: skip
def test_more_of_anything_never_needs_less(mb: int, tp: int, pp: int, zero: int, recompute: str) -> None:
    model, workload = find_model("llama-3-8b"), Workload(4096, 64)
    base = Layout(tp=tp, pp=pp, dp=8, micro_batch=mb, zero=zero, recompute=recompute)
    grid = grid_of([base, replace(base, micro_batch=2 * mb), replace(base, recompute="full")], workload)
    used = memory(model, grid, workload, Recipe()).allocated
    assert used[1] >= used[0]
    assert used[2] <= used[0] * 1.001
