"""The files such users have, with other values than the seeds': tables of two formats, of a library, of group sizes, an OOM log."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import memory, run, stated


def answered(folder: Path, **files: str) -> Diagnosis:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return diagnose(folder, cache=False)


def test_results_in_two_formats_by_length(tmp_path: Path) -> None:
    table = "task,ctx_len,bf16,fp8\nmmlu,1024,70.1,70.0\nneedle,8192,90.0,89.1\nneedle,65536,79.0,48.5\n"
    found = answered(tmp_path, results__csv=table)
    assert found.ranked[0] == "fp8-saturation"
    assert found.evidence.value(stated.ACCURACY, run="before") == 0.79
    assert found.evidence.value(stated.TASK_CONTEXT) == 65536


def test_a_loss_beside_it_is_no_accuracy(tmp_path: Path) -> None:
    table = "metric,bf16,fp8\nval loss,1.91,1.95\n"
    assert not answered(tmp_path, loss__csv=table).evidence.all(stated.ACCURACY)


def test_rates_of_the_library_and_of_ones_own_kernel(tmp_path: Path) -> None:
    table = "impl,gpu,m,n,k,dtype,tflops\nmine,H100,2048,2048,2048,fp16,55.0\ncublas,H100,2048,2048,2048,fp16,440.0\n"
    evidence = answered(tmp_path, bench__csv=table).evidence
    assert (evidence.value(run.FLOP_RATE), evidence.value(stated.LIBRARY_FLOP_RATE)) == (55e12, 440e12)
    assert evidence.value(stated.GEMM_N) == 2048


def test_logs_of_several_group_sizes_are_one_series(tmp_path: Path) -> None:
    times = {16: 40.0, 32: 44.0, 64: 49.0, 128: 310.0}
    logs = {f"run_{n}__log": _megatron(n, ms) for n, ms in times.items()}
    found = answered(tmp_path, **logs)
    assert found.ranked[0] == "collective-topology-cliff"
    assert "128" in found.findings[0].headline


def _megatron(ranks: int, ms: float) -> str:
    head = f" using world size: {ranks}, data-parallel size: {ranks}, tensor-model-parallel size: 1\n"
    step = (
        " iteration      {i}/  1000 | consumed samples: {i}00 | elapsed time per iteration (ms): {t:.1f} | lm loss: 2.5E+00 |\n"
        "(min, max) time across ranks (ms):\n    grads-all-reduce ...............................: ({ms:.2f}, {more:.2f})\n"
    )
    return head + "".join(step.format(i=i, t=900 + ms, ms=ms, more=ms + 1) for i in range(10, 20))


def test_many_steps_of_one_size_are_told_by_their_median(tmp_path: Path) -> None:
    rows = "".join(
        f"{n},{s},{ms + s % 3:.2f}\n"
        for n, ms in ((32, 20.0), (64, 23.0), (128, 27.0), (256, 190.0))
        for s in range(30)
    )
    found = answered(tmp_path, sync__csv=f"world_size,step,allreduce_ms\n{rows}")
    assert found.ranked[0] == "collective-topology-cliff"


def test_a_request_that_is_a_ranks_score_matrix(tmp_path: Path) -> None:
    gib = 64 / 8 * 4096**2 * 2 * 4 / 2**30  # heads over TP x s^2 x micro-batch x four bytes
    log = (
        'Traceback (most recent call last):\n  File "model.py", line 9, in forward\n    scores = torch.matmul(xq, xk)\n'
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {gib:.2f} GiB. GPU 0 has a total capacity of 79.10 GiB "
        "of which "
        "0.42 GiB is free. Of the allocated memory 76.00 GiB is allocated by PyTorch, "
        "and 1.10 GiB is reserved by PyTorch but unallocated.\n"
    )
    config = '{"num_attention_heads": 64, "seq_len": 4096, "micro_batch_size": 2, "tensor_parallel_size": 8}'
    found = answered(tmp_path, err__log=log, config__json=config)
    assert found.ranked[0] == "oom-attention-scores"
    assert "64 heads / TP 8" in found.evidence.text(memory.TENSOR)
    assert "lash" in found.findings[0].fixes[0].action


def test_configurations_in_a_source_file_of_a_folder(tmp_path: Path) -> None:
    source = "import triton\nconfigs = [triton.Config({'BLOCK_M': 32, 'BLOCK_N': 32, 'BLOCK_K': 32}, num_stages=2, num_warps=2)]\n"
    note = "Fused kernel in Triton: we expected 1.8x over eager and measure 0.9x.\n"
    found = answered(tmp_path, kernel__py=source, note__md=note)
    assert found.ranked[0] == "autotune-space-too-small"
    assert found.evidence.value(stated.EXPECTED_SPEEDUP) == 1.8


def test_layer_and_module_name_a_layer_together(tmp_path: Path) -> None:
    rows = ""
    for layer, module, seq in product(range(8), ("o_proj", "down_proj"), (2048, 32768)):
        worst = (layer, module, seq) == (5, "o_proj", 32768)
        rows += f"{layer},{module},{seq},{36.0 if worst else 9.0},10.0,{0.02 if worst else 0.0}\n"
    found = answered(tmp_path, amax__csv=f"layer,module,seq_len,amax,calibrated_amax,saturated_frac\n{rows}")
    assert found.ranked[0] == "fp8-saturation"
    assert "5.o_proj" in found.findings[0].headline
