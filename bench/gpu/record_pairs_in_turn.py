"""Records runs with two faults each, in models of other families, and every fix in turn.

    python bench/gpu/record_pairs_in_turn.py OUT_DIR [WORKLOAD ...]

Recording, clocks and what is left in OUT_DIR are those of `record_fixes_in_turn.py`; the workloads are others, with three of
that script's which no recording holds yet.
"""

from __future__ import annotations

import gc
import io
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
import record_fixes_in_turn
from record_clean_and_traced import (
    DEVICE,
    GPU,
    WORKLOADS,
    Mlp,
    Step,
    Unet,
    Vit,
    bf16,
    captured,
    fused,
    learn,
    mean_square,
    pictures,
    recomputing,
    size,
    tf32,
    workload,
)  # fmt: skip

NOT_YET = ("gru_cells", "copy_and_chain", "convnext")
_others = {name: WORKLOADS[name] for name in NOT_YET}
WORKLOADS.clear()


def _bert(layers: int, width: int, again: bool = False) -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    heads = max(width // 64, 1)
    shape = BertConfig(
        vocab_size=30522, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, num_labels=8,
    )  # fmt: skip
    return recomputing(BertForSequenceClassification(shape).to(DEVICE), again)


class Sentences(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Sentences that are cut into pieces in Python."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> torch.Tensor:
        text = " ".join(f"w{(i * 31 + k * k) % 9973}" for k in range(size(700, 20)))
        ids = [sum(ord(c) * 31**place for place, c in enumerate(word)) % 30000 for word in text.split()]
        return torch.tensor((ids * 8)[: size(128, 16)])


@workload("tensor-cores-unused,input-starved", "bf16", "ready", every=2)
def bert_fp32_and_sentences(*fixes: str) -> Step:
    """Two faults: an encoder of the library in fp32 without TF32, and sentences cut in the main process."""
    model = _bert(size(8, 1), size(768, 64))
    optimizer = fused(model)
    batches = iter(torch.utils.data.DataLoader(Sentences(), batch_size=size(32, 2)))
    kept, labels = next(batches), torch.zeros(size(32, 2), dtype=torch.long, device=DEVICE)

    def one(i: int) -> None:
        tf32(False)
        ids = (kept if "ready" in fixes else next(batches)).to(DEVICE)
        learn(optimizer, lambda: model(input_ids=ids, labels=labels).loss, lambda loss: loss, amp="bf16" in fixes)

    return one


@workload("recompute-unneeded,host-sync", "keep", "kept")
def bert_again_and_norms(*fixes: str) -> Step:
    """Two faults: gradient checkpointing that nobody needs, and each gradient's norm read after the step."""
    model = _bert(size(10, 1), size(768, 64), again="keep" not in fixes)
    optimizer = fused(model)
    ids = torch.randint(0, 30000, (size(24, 2), size(256, 16)), device=DEVICE)
    labels = torch.zeros(len(ids), dtype=torch.long, device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        if "kept" not in fixes:
            [float(p.grad.norm()) for p in model.parameters() if p.grad is not None]
        optimizer.step()

    return one


@workload("layout-copies,host-sync", "channels_last", "kept")
def unet_and_hits(*fixes: str) -> Step:
    """Two faults: convolutions in NCHW, and per-class counts read one by one."""
    model = Unet(size(48, 4)).to(DEVICE)
    x = torch.randn(size(12, 1), 3, size(256, 32), size(256, 32), device=DEVICE)
    if "channels_last" in fixes:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    y = torch.randint(0, 4, (len(x), x.shape[2], x.shape[3]), device=DEVICE)
    optimizer = fused(model)

    def one(i: int) -> None:
        out = learn(optimizer, lambda: model(x), lambda out: F.cross_entropy(out.float(), y))
        if "kept" not in fixes:
            best = out.argmax(1)
            for k in range(4):
                for other in range(4):
                    ((best == k) & (y == other)).sum().item()

    return one


@workload("optimizer-unfused,host-work-unattributed|python-gc-pauses", "fused", "no_gc")
def vit_adam_and_gc(*fixes: str) -> Step:
    """Two faults: Adam walks its parameters, and memory is collected after every step."""
    model = Vit(size(384, 16), size(10, 1), 6 if GPU else 2).to(DEVICE)
    options = {"fused": True} if "fused" in fixes else {"foreach": False}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, **options)
    x, y = pictures(size(48, 2))
    past = [{"step": k, "losses": [float(k)] * 4} for k in range(size(60000, 10))]

    def one(i: int) -> None:
        learn(optimizer, lambda: F.cross_entropy(model(x).float(), y), lambda loss: loss)
        if "no_gc" not in fixes:
            gc.collect()
        past[i % len(past)]["step"] = i

    return one


@workload("checkpoint-stall,h2d-copy-exposed", "no_save", "pinned", every=4)
def saves_and_rows(*fixes: str) -> Step:
    """Two faults: the weights are written to memory every fourth step, and rows cross from pageable memory."""
    model = Mlp(size(2048, 32), size(8)).to(DEVICE)
    optimizer = fused(model)
    host = torch.randn(size(12288, 64), size(2048, 32))
    host = host.pin_memory() if "pinned" in fixes and GPU else host
    ahead = host.to(DEVICE)

    def one(i: int) -> None:
        nonlocal ahead
        if "pinned" in fixes:
            x, ahead = ahead, host.to(DEVICE, non_blocking=True)
        else:
            x = host.to(DEVICE)
        learn(optimizer, lambda: model(x), mean_square)
        if "no_save" not in fixes and i % 4 == 0:
            torch.save(model.state_dict(), io.BytesIO())

    return one


@workload("launch-bound,host-sync", "graph", "kept")
def actor_and_reward(*fixes: str) -> Step:
    """Two faults: a small policy trained in many small steps, and its reward read after each of them."""
    width = size(192, 8)
    model = nn.Sequential(nn.Linear(48, width), *(m for _ in range(6) for m in (nn.Linear(width, width), nn.Tanh())),
                          nn.Linear(width, 9)).to(DEVICE)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    x = torch.randn(256, 48, device=DEVICE)
    y = torch.randint(0, 9, (256,), device=DEVICE)
    reward = torch.zeros((), device=DEVICE)

    def inner() -> None:
        optimizer.zero_grad(set_to_none=False)
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        reward.copy_((logits.argmax(-1) == y).float().mean())

    run = captured(inner) if "graph" in fixes else inner

    def one(i: int) -> None:
        for _ in range(4):
            run()
            if "kept" not in fixes:
                reward.item()

    return one


@workload("attention-materialized,elementwise-unfused", "sdpa", "compile")
def pair_attention(*fixes: str) -> Step:
    """Two faults: written scores with a bias, and gates of many pointwise kernels around them."""
    width, heads = size(512, 16), 8 if GPU else 2

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.gate, self.down = nn.Linear(width, 2048), nn.Linear(width, 2048), nn.Linear(2048, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            b, s, w = x.shape
            q, k, v = self.qkv(F.layer_norm(x, (w,))).view(b, s, 3, heads, w // heads).permute(2, 0, 3, 1, 4)
            if "sdpa" in fixes:
                a = F.scaled_dot_product_attention(q, k, v)
            else:
                a = (q @ k.transpose(-1, -2) * (w // heads) ** -0.5).softmax(-1).to(v.dtype) @ v
            x = x + self.out(a.transpose(1, 2).reshape(b, s, w))
            h = F.layer_norm(x, (w,))
            g = self.gate(h)
            return x + self.down(self.up(h) * (g * torch.sigmoid(1.702 * g) + 0.05 * torch.tanh(g) - 0.01 * g.abs()))

    model = nn.Sequential(*(Layer() for _ in range(size(6, 1)))).to(DEVICE)
    optimizer = fused(model)
    run = torch.compile(model) if "compile" in fixes else model
    x = torch.randn(size(8, 2), size(1024, 16), width, device=DEVICE)

    def one(i: int) -> None:
        learn(optimizer, lambda: run(x), mean_square)

    return one


@workload("allocator-churn,input-starved|host-work-unattributed", "cached", "ready", every=2)
def clouds_on_main(*fixes: str) -> Step:
    """Two faults: points are sorted and thinned by numpy before each step, and the allocator's cache is emptied after it."""
    model = Mlp(size(1024, 16), size(8)).to(DEVICE)
    optimizer = fused(model)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(size(200000, 400), 3)).astype(np.float32)
    wide = size(1024, 16)

    def thinned(i: int) -> torch.Tensor:
        cell = np.floor(points * (8 + i % 3)).astype(np.int64)
        key = cell[:, 0] * 73856093 ^ cell[:, 1] * 19349663 ^ cell[:, 2] * 83492791
        first = np.unique(key % 100003, return_index=True)[1]
        return torch.from_numpy(np.resize(points[first].ravel(), (size(4096, 16), wide)))

    kept = thinned(0)

    def one(i: int) -> None:
        x = (kept if "ready" in fixes else thinned(i)).to(DEVICE)
        learn(optimizer, lambda: model(x), mean_square)
        if "cached" not in fixes and GPU:
            torch.cuda.empty_cache()

    return one


@workload("precision-headroom|tensor-cores-unused", "bf16")
def spectral_tf32(*fixes: str) -> Step:
    """Wide fp32 layers with TF32 around a transform to frequencies and back, which no narrower type takes."""
    width = size(2048, 16)
    model = nn.ModuleList(nn.Linear(width, width) for _ in range(size(8, 2))).to(DEVICE)
    optimizer = fused(model)
    x = torch.randn(size(16, 2), size(1024, 16), width, device=DEVICE)

    def one(i: int) -> None:
        tf32(True)
        optimizer.zero_grad(set_to_none=True)
        h = x
        for layer in model:
            with bf16("bf16" in fixes):
                h = h + F.gelu(layer(h))
            h = torch.fft.rfft(h.float(), dim=1)
            h = torch.fft.irfft(h * 0.9, n=x.shape[1], dim=1)
        h.square().mean().backward()
        optimizer.step()

    return one


WORKLOADS.update(_others)

if __name__ == "__main__":
    record_fixes_in_turn.main()
