"""Every wording of an out-of-memory error leads to its own cause, by arithmetic and by place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose, examine
from stallwise.doctor.findings.diagnosis import State
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source

FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory"
HINT = " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."


def message(request: str, capacity: str, free: str, process: str, allocated: str, unused: str) -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {request}. GPU 0 has a total capacity of "
        f"{capacity} of which {free} is free. Including non-PyTorch memory, this process has {process} memory in use. "
        f"Of the allocated memory {allocated} is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated.{HINT}"
    )


def traceback(*lines: tuple[str, str, str]) -> str:
    body = "".join(f'  File "{file}", line 10, in {name}\n    {code}\n' for file, name, code in lines)
    return f"Traceback (most recent call last):\n{body}"


FULL = message("512.00 MiB", "79.15 GiB", "200.00 MiB", "78.90 GiB", "77.80 GiB", "300.00 MiB")
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.90 GiB total capacity; 6.10 GiB already "
    "allocated; 1.20 GiB free; 14.10 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation."
)
HIP = FULL.replace("CUDA out", "HIP out").replace("512.00 MiB", "4.00 GiB")
OPTIMIZER = traceback(
    ("train.py", "main", "optimizer.step()"),
    ("/x/torch/optim/adamw.py", "_init_group", 'state["exp_avg_sq"] = torch.zeros_like('),
)
LOSS = traceback(
    ("train.py", "main", "out = model(x)"), ("/x/torch/nn/functional.py", "cross_entropy", "return _C._nn(")
)
EVAL = traceback(("t.py", "fit", "self.validation_step(x)"), ("t.py", "validation_step", "y = self.model(x)"))
SCORES = traceback(("m.py", "forward", "attn_weights = torch.matmul(query, key.transpose(2, 3))"))
CAPTURE = traceback(("vllm/worker/model_runner.py", "capture_model", "graph_runner.capture("))
GATHER = traceback(
    ("/x/torch/distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param", "_alloc_storage(")
)
FORWARD = traceback(("m.py", "forward", "h = self.up(x)"))

CASES = {
    "split, 2.x": (message("3.00 GiB", "80 GiB", "0.50 GiB", "79.4 GiB", "50 GiB", "28 GiB"), "oom-fragmentation"),
    "split, 1.x": (OLD, "oom-fragmentation"),
    "the hint is in every message": (FORWARD + FULL, "oom-activations"),
    "HIP": (FORWARD + HIP, "oom-activations"),
    "optimizer": (OPTIMIZER + FULL, "oom-optimizer-state"),
    "loss": (LOSS + FULL.replace("512.00 MiB", "16.00 GiB"), "oom-logits"),
    "validation": (EVAL + FULL, "oom-eval-grad"),
    "scores": (SCORES + FULL, "oom-attention-scores"),
    "capture": (CAPTURE + FULL, "oom-cuda-graphs"),
    "gather": (GATHER + FULL, "oom-sharding-peak"),
    "other process": (
        FORWARD + message("1.00 GiB", "80 GiB", "0.20 GiB", "6 GiB", "5 GiB", "0.1 GiB"),
        "oom-other-process",
    ),
    "size bug": (FORWARD + FULL.replace("512.00 MiB", "99999.00 GiB"), "oom-size-bug"),
    "more than 1EB": ("RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.", "oom-size-bug"),
    "vLLM blocks": ("ValueError: No available memory for the cache blocks. Try increasing it.", "oom-kv-cache"),
    "vLLM length": (
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (9.52 GiB).", "oom-kv-cache",
    ),
    "SGLang": ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "oom-kv-cache"),
    "JAX": (
        FORWARD + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "17179869184 bytes.", "oom-activations",
    ),
    "vLLM refuses to start": (
        "ValueError: Free memory on device (12.31/79.15 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.", "oom-other-process",
    ),
    "vLLM sampler": (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering it.",
        "oom-logits",
    ),
    "larger than the card": (
        "RuntimeError: CUDA out of memory. Tried to allocate 61.04 GiB (GPU 0; 23.69 GiB total capacity; 1.31 GiB already "
        "allocated; 21.20 GiB free; 1.40 GiB reserved in total by PyTorch)", "oom-size-bug",
    ),
    "HIP, split": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 191.98 GiB of which "
        "512.00 MiB is free. Of the allocated memory 120.1 GiB is allocated by PyTorch, and 69.2 GiB is reserved by PyTorch but "
        "unallocated.", "oom-fragmentation",
    ),
    "TensorFlow, scores by shape": (
        "OP_REQUIRES failed at matmul_op: RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[64,16,4096,4096] and type float "
        "on /job:localhost/device:GPU:0 by allocator GPU_0_bfc", "oom-attention-scores",
    ),
    "llama.cpp": (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 24576.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "llama_kv_cache_init: failed to allocate buffer for kv cache", "oom-kv-cache",
    ),
    "scores by their size": (
        "num_attention_heads=32 seq_len=16384 micro_batch_size=1\n" + FORWARD + FULL.replace("512.00 MiB", "16.00 GiB"),
        "oom-attention-scores",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_message_is_understood(name: str, tmp_path: Path) -> None:
    text, cause = CASES[name]
    log = tmp_path / "run.log"
    log.write_text(text)
    # A request larger than the card was a bug of sizes in 10 of 28 recorded cases.
    assert cause in diagnose(str(log)).ranked[: 3 if cause == "oom-size-bug" else 1]


def test_more_free_than_asked_is_a_contradiction_and_no_cause_is_claimed(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(FORWARD + message("960.00 MiB", "23.99 GiB", "15.52 GiB", "8.4 GiB", "6.78 GiB", "76.36 MiB"))
    diagnosis = diagnose(str(log))
    assert diagnosis.contradictions
    assert diagnosis.state is State.UNCLEAR and not any(f.is_verdict for f in diagnosis.findings)
    assert not diagnosis.healthy


def test_the_sizes_of_a_message_are_read_in_bytes(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(FULL)
    evidence = diagnose(str(log)).evidence
    assert evidence.value(m.REQUEST) == 512 * 2**20
    assert evidence.value(m.CAPACITY) == pytest.approx(79.15 * 2**30)
    assert evidence.value(m.UNUSED_RESERVED) == 300 * 2**20


@pytest.mark.parametrize("stem", ["oom_logits", "oom_fragmentation"])
def test_a_snapshots_peak_is_explained_by_category(stem: str) -> None:
    evidence = diagnose(str(FIXTURES / f"{stem}.pickle.gz")).evidence
    parts = (m.WEIGHTS, m.GRADIENTS, m.OPTIMIZER, m.ACTIVATIONS, m.LOGITS, m.TEMPORARY, m.OTHER)
    explained = sum(evidence.value(q) for q in parts)
    assert explained >= 0.95 * evidence.value(m.PEAK)
    assert evidence.value(m.UNEXPLAINED) <= 0.05 * evidence.value(m.PEAK)


def test_the_snapshot_names_the_failed_tensor_and_its_place() -> None:
    diagnosis = diagnose(str(FIXTURES / "oom_logits.pickle.gz"))
    assert diagnosis.ranked[0] == "oom-logits"
    assert "fp32 copy" in diagnosis.evidence.text(m.TENSOR)
    assert diagnosis.evidence.text(m.PLACE).startswith("model.py:75")
    actions = [f.action for f in diagnosis.findings[0].fixes]
    assert any("micro-batch" in a for a in actions)


def test_holes_smaller_than_the_request_make_it_fragmentation() -> None:
    diagnosis = diagnose(str(FIXTURES / "oom_fragmentation.pickle.gz"))
    evidence = diagnosis.evidence
    assert diagnosis.ranked[0] == "oom-fragmentation"
    assert evidence.value(m.LARGEST_HOLE) < evidence.value(m.REQUEST) < evidence.value(m.UNUSED_RESERVED)


@given(
    request_mib=st.floats(1, 40_000), free_mib=st.floats(0, 40_000), unused_mib=st.floats(0, 40_000),
    capacity_mib=st.floats(8_000, 150_000),
)  # fmt: skip
def test_fragmentation_is_claimed_only_when_the_pieces_would_do(
    request_mib: float, free_mib: float, unused_mib: float, capacity_mib: float
) -> None:
    evidence = Evidence()
    sizes = {m.REQUEST: request_mib, m.FREE: free_mib, m.UNUSED_RESERVED: unused_mib, m.CAPACITY: capacity_mib}
    mib = 2.0**20
    evidence.add([Fact(q, v * mib, Source("log")) for q, v in sizes.items()])
    evidence.add(
        [Fact(m.FAILED, 1.0, Source("log")), Fact(m.PROCESS_USE, (capacity_mib - free_mib) * mib, Source("log"))]
    )
    ranked = examine(evidence).ranked
    if ranked[0] == "oom-fragmentation":
        assert free_mib < request_mib <= free_mib + unused_mib


SMI = """| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |
|   0  NVIDIA L4                      On  |   00000000:00:04.0 Off |                    0 |
| N/A   51C    P0             30W /   72W |   21900MiB /  23034MiB |      0%      Default |
| Processes:                                                                              |
{processes}
"""
FAILED = "RuntimeError: CUDA error: out of memory\n"


@pytest.mark.parametrize(
    "processes",
    [
        "|    0   N/A  N/A   4411      C   /opt/venv/bin/python     9120MiB |\n"
        "|    0   N/A  N/A   4987      C   tritonserver             12700MiB |",
        "|  No running processes found                                |",
    ],
)
def test_who_holds_the_card_by_its_own_list(processes: str, tmp_path: Path) -> None:
    page = tmp_path / "session.txt"
    page.write_text(FAILED + SMI.format(processes=processes))
    assert diagnose(str(page)).ranked[0] == "oom-other-process"
