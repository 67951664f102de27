# ruff: noqa: E501
"""Out of memory in its many kinds, told by the message, its place and its arithmetic."""

from __future__ import annotations

from functools import partial

from stallwise.drill.artifacts.oom import GIB, full_card, message, traceback
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted

CARDS = (79.15, 79.15, 139.8, 39.4)  # GiB that PyTorch reports for 80, 141 and 40 GB cards
FORWARD = ("m.py", "forward", "h = self.up(x)")
IN_MAIN = ("train.py", "main", "out = model(x)")
# Where it fails, from the outside in, and which share of the card is asked for there.
FULL = {
    "oom-activations": ((IN_MAIN, FORWARD), (0.006, 0.006)),
    "oom-optimizer-state": ((("train.py", "main", "optimizer.step()"), ("/x/torch/optim/adamw.py", "_init_group", 'state["exp_avg_sq"] = torch.zeros_like(')), (0.004, 0.004)),
    "oom-logits": ((IN_MAIN, ("/x/torch/nn/functional.py", "cross_entropy", "return _C._nn(")), (0.15, 0.25)),
    "oom-eval-grad": ((("t.py", "fit", "self.validation_step(x)"), ("t.py", "validation_step", "y = self.model(x)")), (0.006, 0.006)),
    "oom-cuda-graphs": ((("vllm/worker/model_runner.py", "capture_model", "graph_runner.capture("),), (0.004, 0.004)),
    "oom-sharding-peak": ((IN_MAIN, ("/x/torch/distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param", "_alloc_storage(")), (0.03, 0.06)),
    "oom-size-bug": ((("m.py", "forward", "mask = torch.zeros(n, n, n, device=x.device)"),), (50.0, 2000.0)),
}  # fmt: skip


def _failed(rng: Rng, cause: str) -> Drawn:
    place, (low, high) = FULL[cause]
    capacity = rng.pick(*CARDS) * GIB
    asked = rng.between(low, high) * capacity
    return drawn(asked, exhibit("oom-message", "oom.log", traceback(*place) + full_card(asked, capacity)))


for _cause in FULL:
    planted(_cause, _cause)(partial(_failed, cause=_cause))


@planted("oom-attention-scores", "oom-attention-scores")
def scores(rng: Rng) -> Drawn:
    heads, length, capacity = rng.pick(32, 40), rng.pick(8192, 16384), rng.pick(*CARDS) * GIB
    asked = min(heads * length**2 * 2.0, 0.6 * capacity)
    place = traceback(("m.py", "forward", "attn_weights = torch.matmul(query, key.transpose(2, 3))"))
    text = f"num_attention_heads={heads} seq_len={length} micro_batch_size=1\n{place}{full_card(asked, capacity)}"
    return drawn(asked, exhibit("oom-message", "oom.log", text), heads=heads, length=length)


@planted("oom-fragmentation")
def split_free_memory(rng: Rng) -> Drawn:
    capacity = rng.pick(*CARDS) * GIB
    asked, free, unused = (rng.between(*share) * capacity for share in ((0.03, 0.06), (0.004, 0.012), (0.25, 0.4)))
    text = message(asked, capacity, free, capacity - free, capacity - free - unused - GIB, unused)
    return drawn(unused, exhibit("oom-message", "oom.log", traceback(FORWARD) + text))


@planted("oom-other-process")
def neighbour(rng: Rng) -> Drawn:
    capacity = rng.pick(*CARDS) * GIB
    mine = rng.between(0.06, 0.15) * capacity
    text = message(0.015 * capacity, capacity, 0.003 * capacity, mine, mine * 0.85, mine * 0.02)
    return drawn(0.997 * capacity - mine, exhibit("oom-message", "oom.log", traceback(FORWARD) + text))


@planted("oom-kv-cache")
def length_too_large(rng: Rng) -> Drawn:
    length, need = rng.pick(32768, 65536, 131072), rng.between(12, 40)
    have = need * rng.between(0.3, 0.7)
    text = f"ValueError: To serve at least one request with the models's max seq len ({length}), ({need:.2f} GiB KV cache is needed, which is larger than the available KV cache memory ({have:.2f} GiB). Based on the available memory, the estimated maximum model length is {int(length * have / need)}.\n"
    return drawn(need * GIB, exhibit("engine-log", "engine.log", text))


@planted("memory-leak")
def growing(rng: Rng) -> Drawn:
    base, slope = rng.between(8000, 30000), rng.between(60, 240)
    rows = "".join(f"0,{i * 50},{2 - 0.01 * i:.3f},{base + i * slope:.0f}\n" for i in range(60))
    log = exhibit("train-log", "metrics.csv", "epoch,step,train_loss,gpu_mem_mb\n" + rows)
    return drawn(slope * 2.0**20, log, start=base / 1000)
