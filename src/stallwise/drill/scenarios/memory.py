# ruff: noqa: E501
"""Out of memory in its many kinds, told by the message, its place and its arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from stallwise.drill.artifacts.oom import GIB, full_card, message, traceback
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit

CARDS = (79.15, 79.15, 139.8, 39.4)  # GiB that PyTorch reports for 80, 141 and 40 GB cards


def _oom(rng: Rng, setup: str, place: str, request: Callable[[float], float], extra: str = "") -> Plot:
    capacity = rng.pick(*CARDS) * GIB
    asked = request(capacity)
    return Plot(
        setup,
        (exhibit("oom-message", "oom.log", extra + place + full_card(asked, capacity)),),
        Decisive("How much was asked for at once when it failed?", asked, Unit.BYTE),
    )


def _model(rng: Rng) -> str:
    return f"a {rng.pick(3, 7, 8, 13)}B model"


@planted("oom-fragmentation")
def split_free_memory(rng: Rng) -> Plot:
    capacity = rng.pick(*CARDS) * GIB
    request, free = rng.between(0.03, 0.06) * capacity, rng.between(0.004, 0.012) * capacity
    unused = rng.between(0.25, 0.4) * capacity
    text = message(request, capacity, free, capacity - free, capacity - free - unused - GIB, unused)
    return Plot(
        f"Fine-tuning {_model(rng)} with varying lengths runs for {rng.whole(1, 9)} hours, then is out of memory, although the same batch ran before. Why?",
        (exhibit("oom-message", "oom.log", traceback(("m.py", "forward", "h = self.up(x)")) + text),),
        number=Decisive("How much is reserved but unused?", unused, Unit.BYTE),
    )


@planted("oom-activations")
def long_sequences(rng: Rng) -> Plot:
    place = traceback(("train.py", "main", "out = model(x)"), ("m.py", "forward", "h = self.up(x)"))
    return _oom(
        rng,
        f"{_model(rng)} trains at {rng.pick(2048, 4096)} tokens and is out of memory in the forward pass at {rng.pick(8192, 16384)}. What grew?",
        place,
        lambda c: 0.006 * c,
    )


@planted("oom-optimizer-state")
def first_step(rng: Rng) -> Plot:
    place = traceback(
        ("train.py", "main", "optimizer.step()"),
        ("/x/torch/optim/adamw.py", "_init_group", 'state["exp_avg_sq"] = torch.zeros_like('),
    )
    return _oom(
        rng,
        f"Full fine-tuning of {_model(rng)} on one GPU survives forward and backward of the first step, then is out of memory. Why there?",
        place,
        lambda c: 0.004 * c,
    )


@planted("oom-logits")
def wide_vocabulary(rng: Rng) -> Plot:
    place = traceback(
        ("train.py", "main", "out = model(x)"), ("/x/torch/nn/functional.py", "cross_entropy", "return _C._nn(")
    )
    return _oom(
        rng,
        f"After changing the tokenizer to {rng.pick('128k', '152k', '256k')} entries, {_model(rng)} is out of memory at the same batch. The layers are the same. Why?",
        place,
        lambda c: rng.between(0.15, 0.25) * c,
    )


@planted("oom-eval-grad")
def validation(rng: Rng) -> Plot:
    place = traceback(("t.py", "fit", "self.validation_step(x)"), ("t.py", "validation_step", "y = self.model(x)"))
    return _oom(
        rng,
        f"Training {_model(rng)} is stable for {rng.whole(500, 5000)} steps and always runs out of memory in the first validation, with a smaller batch than training's. Why?",
        place,
        lambda c: 0.006 * c,
    )


@planted("oom-attention-scores")
def scores(rng: Rng) -> Plot:
    heads, length = rng.pick(32, 40), rng.pick(8192, 16384)
    place = traceback(("m.py", "forward", "attn_weights = torch.matmul(query, key.transpose(2, 3))"))
    size = heads * length**2 * 2.0
    return _oom(
        rng,
        f"A research model with {heads} heads runs at 2,048 tokens and fails at {length:,} with a single huge request, at batch 1. Why?",
        place,
        lambda c: min(size, 0.6 * c),
        f"num_attention_heads={heads} seq_len={length} micro_batch_size=1\n",
    )


@planted("oom-cuda-graphs")
def capture(rng: Rng) -> Plot:
    place = traceback(("vllm/worker/model_runner.py", "capture_model", "graph_runner.capture("))
    return _oom(
        rng,
        f"An inference server loads its weights and its cache, then is out of memory before it serves anything, at utilisation {rng.pick(0.95, 0.97)}. Where did it go?",
        place,
        lambda c: 0.004 * c,
    )


@planted("oom-sharding-peak")
def gathered_layer(rng: Rng) -> Plot:
    place = traceback(
        ("train.py", "main", "out = model(x)"),
        ("/x/torch/distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param", "_alloc_storage("),
    )
    return _oom(
        rng,
        f"Fully sharded training of a {rng.pick(34, 70, 180)}B model should need little per GPU on {rng.pick(64, 128, 256)} GPUs, and is out of memory in the first layer. Why?",
        place,
        lambda c: rng.between(0.03, 0.06) * c,
    )


@planted("oom-other-process")
def neighbour(rng: Rng) -> Plot:
    capacity = rng.pick(*CARDS) * GIB
    mine = rng.between(0.06, 0.15) * capacity
    text = message(0.015 * capacity, capacity, 0.003 * capacity, mine, mine * 0.85, mine * 0.02)
    return Plot(
        f"A {rng.pick(1, 3)}B model that always fitted is out of memory on one server of the pool at its first layer. Why?",
        (exhibit("oom-message", "oom.log", traceback(("m.py", "forward", "h = self.up(x)")) + text),),
        number=Decisive("How much memory of the card do others hold?", 0.997 * capacity - mine, Unit.BYTE),
    )


@planted("oom-size-bug")
def absurd_request(rng: Rng) -> Plot:
    place = traceback(("m.py", "forward", "mask = torch.zeros(n, n, n, device=x.device)"))
    return _oom(
        rng,
        "A new mask in the model makes it fail at once with an out-of-memory error on every card, at batch 1 and length 128. What do you look at?",
        place,
        lambda c: rng.between(50, 2000) * c,
    )


@planted("oom-kv-cache")
def length_too_large(rng: Rng) -> Plot:
    length, need = rng.pick(32768, 65536, 131072), rng.between(12, 40)
    have = need * rng.between(0.3, 0.7)
    text = f"ValueError: To serve at least one request with the models's max seq len ({length}), ({need:.2f} GiB KV cache is needed, which is larger than the available KV cache memory ({have:.2f} GiB). Based on the available memory, the estimated maximum model length is {int(length * have / need)}.\n"
    return Plot(
        "A serving engine refuses to start a model whose weights fit with room to spare. Why, and what are the choices?",
        (exhibit("engine-log", "engine.log", text),),
        number=Decisive("How much cache does one request of full length need?", need * GIB, Unit.BYTE),
    )


@planted("memory-leak")
def growing(rng: Rng) -> Plot:
    base, slope = rng.between(8000, 30000), rng.between(60, 240)
    rows = "".join(f"0,{i * 50},{2 - 0.01 * i:.3f},{base + i * slope:.0f}\n" for i in range(60))
    return Plot(
        f"A run starts at {base / 1000:.0f} GB and dies of memory after about {rng.whole(4, 20)} hours; restarted, it does so again after the same time. Why?",
        (exhibit("train-log", "metrics.csv", "epoch,step,train_loss,gpu_mem_mb\n" + rows),),
        number=Decisive("By how much does memory grow from one line to the next?", slope * 2.0**20, Unit.BYTE),
    )
