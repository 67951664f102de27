"""Records short profiler traces of small training and inference runs with known faults, for use as test cases.

    python bench/gpu/record_cases.py OUT_DIR [CASE ...]

Each case leaves OUT_DIR/<case>/{trace.json.gz, nvidia_smi.csv, truth.json}. `truth.json` holds the planted cause, the
step time without a profiler and the peak memory. Every model differs from the GPT behind the first set of cases:
convolutions, an encoder, a mixture of experts, decode loops.
"""

from __future__ import annotations

import gc
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"
STEPS = 4


@dataclass
class Case:
    """One run: `step` does one iteration; `accept` lists the causes that may rank first."""

    step: Callable[[int], None]
    accept: list[str]
    note: str = ""
    cleanup: Callable[[], None] = lambda: None
    extra: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


# ---------------------------------------------------------------- models


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(a.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self, dim: int = 1024, layers: int = 12, heads: int = 16, vocab: int = 30522) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.head = nn.Linear(dim, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Moe(nn.Module):
    """Naive mixture of experts: a Python loop over experts with index_select, as many first versions are."""

    def __init__(self, dim: int = 1024, experts: int = 32, layers: int = 4, top: int = 2) -> None:
        super().__init__()
        self.top = top
        self.gates = nn.ModuleList(nn.Linear(dim, experts) for _ in range(layers))
        self.experts = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(experts)
            )
            for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for gate, experts in zip(self.gates, self.experts, strict=True):
            weight, index = gate(x).softmax(-1).topk(self.top, -1)
            y = torch.zeros_like(x)
            for e, expert in enumerate(experts):
                token, slot = (index == e).nonzero(as_tuple=True)
                y = y.index_add(0, token, (expert(x[token]) * weight[token, slot, None]).to(y.dtype))
            x = x + y
        return x


def discard(_: object) -> None:
    """Drops a result; truth-testing a tensor instead would be a sync of its own."""


def resnet(batch: int = 256, channels_last: bool = True) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE)
    images = torch.randn(batch, 3, 224, 224, device=DEVICE)
    if channels_last:
        model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    return model, images, torch.randint(0, 1000, (batch,), device=DEVICE)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, amp: bool = True) -> Callable[..., torch.Tensor]:
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def encoder_parts(batch: int = 64, seq: int = 512, **kw: Any) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = Encoder(**kw).to(DEVICE)
    return model, torch.randint(0, 30000, (batch, seq), device=DEVICE), torch.randint(0, 2, (batch,), device=DEVICE)


# ---------------------------------------------------------------- convolutions


@case
def resnet_healthy() -> Case:
    model, x, y = resnet()
    step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True))
    return Case(
        lambda i: discard(step(x, y)), ["none", "elementwise-unfused", "dram-bandwidth-bound"], "channels-last bf16"
    )


@case
def resnet_tf32() -> Case:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model, x, y = resnet(128)
    step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True), amp=False)
    return Case(
        lambda i: discard(step(x, y)), ["precision-headroom", "none", "dram-bandwidth-bound", "elementwise-unfused"]
    )


@case
def resnet_loader() -> Case:
    """Images decoded on the host in the loop: a real loader with too few workers."""
    model, _, _ = resnet(128)
    step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True))

    class Images(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1 << 20

        def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
            x = torch.rand(3, 256, 256)
            x = F.interpolate(x[None], size=(224, 224), mode="bilinear")[0]
            return (x - x.mean()) / x.std(), i % 1000

    loader = torch.utils.data.DataLoader(Images(), batch_size=128, num_workers=2, pin_memory=True)
    batches = iter(loader)

    def one(i: int) -> None:
        x, y = next(batches)
        step(x.to(DEVICE, non_blocking=True, memory_format=torch.channels_last), y.to(DEVICE, non_blocking=True))

    return Case(one, ["input-starved"], "2 workers for 128 images a step", cleanup=lambda: None)


@case
def resnet_nchw_copies() -> Case:
    """channels-last weights fed channels-first activations with explicit layout changes between the stages."""
    model, x, y = resnet(128)

    class Flip(nn.Module):
        def forward(self, t: torch.Tensor) -> torch.Tensor:
            for _ in range(3):
                t = t.contiguous(memory_format=torch.contiguous_format).contiguous(memory_format=torch.channels_last)
            return t

    for name in ("layer1", "layer2", "layer3"):
        setattr(model, name, nn.Sequential(*[nn.Sequential(b, Flip()) for b in getattr(model, name)]))
    step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True))
    return Case(lambda i: discard(step(x, y)), ["layout-copies"])


# ---------------------------------------------------------------- encoder


@case
def encoder_healthy() -> Case:
    model, x, y = encoder_parts()
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    return Case(lambda i: discard(step(x, y)), ["none", "elementwise-unfused"])


@case
def encoder_harmless_item() -> Case:
    """loss.item() at the end of a GPU-bound step: looks like a sync, costs next to nothing."""
    model, x, y = encoder_parts(128)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))

    def one(i: int) -> None:
        step(x, y).item()

    return Case(one, ["none", "elementwise-unfused"], "a sync that only waits")


@case
def encoder_optimizer_loop() -> Case:
    """Adam one tensor at a time on a model with many small parameters."""
    model, x, y = encoder_parts(4, 128, dim=512, layers=24, heads=8)
    step = train_step(model, torch.optim.AdamW(model.parameters(), foreach=False, fused=False))
    return Case(lambda i: discard(step(x, y)), ["optimizer-unfused", "launch-bound", "small-microbatch"])


@case
def encoder_offload() -> Case:
    """Optimizer states live in host memory and travel every step."""
    model, x, y = encoder_parts(16, 256)
    states = [torch.zeros(p.numel() * 2, dtype=torch.float32).pin_memory() for p in model.parameters()]
    params = list(model.parameters())

    def one(i: int) -> None:
        for p in params:
            p.grad = None
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        for p, s in zip(params, states, strict=True):
            on = s.to(DEVICE, non_blocking=True)
            m, v = on[: p.numel()].view_as(p), on[p.numel() :].view_as(p)
            m.lerp_(p.grad, 0.1)
            v.mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
            p.data.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-5)
            s.copy_(on, non_blocking=True)

    return Case(one, ["cpu-offload-transfers"])


@case
def encoder_empty_cache() -> Case:
    """torch.cuda.empty_cache() in the loop: every step allocates from the driver again."""
    model, x, y = encoder_parts(32, 256)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))

    def one(i: int) -> None:
        step(x, y)
        torch.cuda.empty_cache()

    return Case(one, ["allocator-churn"])


@case
def encoder_eval_in_step() -> Case:
    """A full validation forward after every training step."""
    model, x, y = encoder_parts(32, 512)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    held = torch.randint(0, 30000, (96, 512), device=DEVICE)

    def one(i: int) -> None:
        step(x, y)
        model.eval()
        with torch.no_grad(), torch.autocast(DEVICE, dtype=torch.bfloat16):
            for part in held.split(32):
                model(part)
        model.train()

    return Case(one, ["eval-in-loop"])


@case
def encoder_print_every_layer() -> Case:
    """A debugging check in every block: isnan().any() read on the host."""
    model, x, y = encoder_parts(16, 256)

    def check(module: nn.Module, inputs: object, output: torch.Tensor) -> None:
        if torch.isnan(output).any():
            print("nan")

    for block in model.blocks:  # type: ignore[union-attr]
        block.register_forward_hook(check)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    return Case(lambda i: discard(step(x, y)), ["host-sync", "launch-bound"])


@case
def encoder_tiny_batch() -> Case:
    model, x, y = encoder_parts(1, 64, dim=1024, layers=12)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    return Case(lambda i: discard(step(x, y)), ["launch-bound", "small-microbatch"])


@case
def encoder_json_logging() -> Case:
    """Host work between steps that no operator covers: JSON and hashing of a big log record."""
    import hashlib

    model, x, y = encoder_parts(32, 256)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    record = {str(i): [i * 0.5] * 40 for i in range(9000)}

    def one(i: int) -> None:
        step(x, y)
        torch.cuda.synchronize()
        hashlib.sha256(json.dumps(record).encode()).hexdigest()

    return Case(one, ["host-work-unattributed", "host-sync"])


@case
def encoder_save_every_other() -> Case:
    """torch.save of model and optimizer on the main path at every second step."""
    model, x, y = encoder_parts(32, 256)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    step = train_step(model, optimizer)

    def one(i: int) -> None:
        step(x, y)
        if i % 2 == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "/tmp/checkpoint.pt")

    return Case(one, ["checkpoint-stall"])


@case
def encoder_odd_shapes() -> Case:
    """Hidden size 1021 and vocabulary-like head of odd width: no aligned kernel fits."""
    model, x, y = encoder_parts(64, 512, dim=1023, heads=11)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    return Case(lambda i: discard(step(x, y)), ["misaligned-shapes"])


@case
def encoder_checkpointed_fits() -> Case:
    from torch.utils.checkpoint import checkpoint

    model, x, y = encoder_parts(48, 512)

    def forward(ids: torch.Tensor) -> torch.Tensor:
        h = model.embed(ids)  # type: ignore[operator]
        for block in model.blocks:  # type: ignore[union-attr]
            h = checkpoint(block, h, use_reentrant=False)
        return model.head(h.mean(1))  # type: ignore[operator, no-any-return]

    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(forward(x).float(), y)
        loss.backward()
        optimizer.step()

    return Case(one, ["recompute-unneeded"])


@case
def encoder_graph_breaks() -> Case:
    """torch.compile with a print-like break in every block."""
    model, x, y = encoder_parts(8, 128)

    @torch.compiler.disable
    def outside(h: torch.Tensor) -> torch.Tensor:
        return h * 1.0

    for block in model.blocks:  # type: ignore[union-attr]
        block.register_forward_hook(lambda m, i, o: outside(o))
    compiled = torch.compile(model)
    step = train_step(compiled, torch.optim.AdamW(model.parameters(), fused=True))  # type: ignore[arg-type]
    return Case(lambda i: discard(step(x, y)), ["graph-breaks", "launch-bound", "small-microbatch"])


# ---------------------------------------------------------------- mixture of experts, decode


@case
def moe_naive() -> Case:
    model = Moe().to(DEVICE)
    x = torch.randn(4096, 1024, device=DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()

    return Case(one, ["launch-bound", "host-sync"], "nonzero() and a Python loop over 32 experts")


class Decoder(nn.Module):
    def __init__(self, dim: int, layers: int, heads: int, batch: int, length: int) -> None:
        super().__init__()
        self.heads, self.dim = heads, dim
        self.w = nn.ModuleList(
            nn.ModuleDict(
                {
                    "n1": nn.RMSNorm(dim),
                    "qkv": nn.Linear(dim, 3 * dim, bias=False),
                    "out": nn.Linear(dim, dim, bias=False),
                    "n2": nn.RMSNorm(dim),
                    "up": nn.Linear(dim, 4 * dim, bias=False),
                    "down": nn.Linear(4 * dim, dim, bias=False),
                }
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(dim, 32000, bias=False)
        shape = (layers, batch, heads, length, dim // heads)
        self.register_buffer("k", torch.randn(shape), persistent=False)
        self.register_buffer("v", torch.randn(shape), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = x.shape[0]
        for i, w in enumerate(self.w):
            q, k, v = w["qkv"](w["n1"](x)).view(b, 3, self.heads, -1).unbind(1)  # type: ignore[index]
            self.k[i, :, :, -1], self.v[i, :, :, -1] = k, v  # type: ignore[index]
            a = F.scaled_dot_product_attention(q[:, :, None], self.k[i], self.v[i])  # type: ignore[index]
            x = x + w["out"](a.reshape(b, -1))  # type: ignore[index]
            x = x + w["down"](F.silu(w["up"](w["n2"](x))))  # type: ignore[index]
        return self.head(x).argmax(-1)


@case
def decode_eager() -> Case:
    """One token at a time, eager: the host cannot launch fast enough."""
    model = Decoder(2048, 24, 16, 1, 512).to(DEVICE, torch.bfloat16)
    x = torch.randn(1, 2048, device=DEVICE, dtype=torch.bfloat16)

    def one(i: int) -> None:
        with torch.no_grad():
            for _ in range(4):
                model(x)

    return Case(one, ["launch-bound"])


@case
def decode_graph() -> Case:
    """The same in a CUDA graph at a size where weights dominate: at the memory roof."""
    model = Decoder(4096, 24, 32, 4, 1024).to(DEVICE, torch.bfloat16)
    x = torch.randn(4, 4096, device=DEVICE, dtype=torch.bfloat16)
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)

    def one(i: int) -> None:
        for _ in range(4):
            graph.replay()

    return Case(one, ["decode-bandwidth-bound", "dram-bandwidth-bound", "none"])


@case
def decode_item_each_token() -> Case:
    """Reads every token on the host before asking for the next, in a graph: a sync per token."""
    model = Decoder(2048, 8, 16, 8, 1024).to(DEVICE, torch.bfloat16)
    x = torch.randn(8, 2048, device=DEVICE, dtype=torch.bfloat16)

    def one(i: int) -> None:
        with torch.no_grad():
            for _ in range(6):
                [int(t) for t in model(x)]

    return Case(one, ["host-sync", "launch-bound"])


@case
def gemm_loop_healthy() -> Case:
    a = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)

    def one(i: int) -> None:
        for _ in range(12):
            a @ b

    return Case(one, ["none"])


@case
def fp64_by_accident() -> Case:
    """A float64 mask from numpy promotes half of the network."""
    w = [torch.randn(2048, 2048, device=DEVICE, dtype=torch.float64) for _ in range(4)]
    x = torch.randn(4096, 2048, device=DEVICE, dtype=torch.float64)

    def one(i: int) -> None:
        h = x
        for m in w:
            h = torch.relu(h @ m)

    return Case(one, ["fp64-in-hot-path", "tensor-cores-unused", "precision-headroom"])


# ---------------------------------------------------------------- a second set


@case
def vit_healthy() -> Case:
    import torchvision

    model = torchvision.models.vit_b_16().to(DEVICE)
    x, y = torch.randn(128, 3, 224, 224, device=DEVICE), torch.randint(0, 1000, (128,), device=DEVICE)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    return Case(lambda i: discard(step(x, y)), ["none", "elementwise-unfused"])


@case
def encoder_compiled_healthy() -> Case:
    model, x, y = encoder_parts(64, 512)
    step = train_step(torch.compile(model), torch.optim.AdamW(model.parameters(), fused=True))  # type: ignore[arg-type]
    return Case(lambda i: discard(step(x, y)), ["none"])


@case
def encoder_saved_on_cpu() -> Case:
    """Activations go to pinned host memory in forward and come back in backward."""
    model, x, y = encoder_parts(16, 512)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autograd.graph.save_on_cpu(pin_memory=True), torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()

    return Case(one, ["cpu-offload-transfers", "allocator-churn"])


@case
def encoder_optimizer_by_hand() -> Case:
    """A large model updated tensor by tensor with several elementwise kernels each."""
    model, x, y = encoder_parts(8, 128, dim=1536, layers=24, heads=24)
    step = train_step(model, torch.optim.AdamW(model.parameters(), foreach=False, fused=False))
    return Case(
        lambda i: discard(step(x, y)), ["optimizer-unfused", "launch-bound", "elementwise-unfused", "small-microbatch"]
    )


@case
def encoder_naive_attention() -> Case:
    model, x, y = encoder_parts(16, 1024)

    def forward(self: Block, x: torch.Tensor) -> torch.Tensor:
        b, s, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) * (d // self.heads) ** -0.5
        a = F.dropout(scores.float().softmax(-1), 0.1).to(v.dtype) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))

    for block in model.blocks:  # type: ignore[union-attr]
        block.forward = forward.__get__(block)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True))
    return Case(lambda i: discard(step(x, y)), ["attention-materialized"])


@case
def resnet_pageable_big() -> Case:
    """Large pageable float images copied in the loop."""
    model, _, _ = resnet(128)
    step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True))
    x, y = torch.randn(128, 3, 512, 512), torch.randint(0, 1000, (128,))

    def one(i: int) -> None:
        step(x.to(DEVICE)[:, :, :224, :224].contiguous(memory_format=torch.channels_last), y.to(DEVICE))

    return Case(one, ["h2d-copy-exposed"])


@case
def lstm_small() -> Case:
    """A recurrent network cell by cell: thousands of tiny kernels."""
    cell = nn.LSTMCell(256, 512).to(DEVICE)
    head = nn.Linear(512, 10).to(DEVICE)
    params = [*cell.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(params, fused=True)
    x, y = torch.randn(64, 128, 256, device=DEVICE), torch.randint(0, 10, (128,), device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        h = c = torch.zeros(128, 512, device=DEVICE)
        for t in x:
            h, c = cell(t, (h, c))
        F.cross_entropy(head(h), y).backward()
        optimizer.step()

    return Case(one, ["launch-bound"])


@case
def encoder_two_faults() -> Case:
    """A slow loader in the main process and a read of the loss after forward."""
    model, _, _ = encoder_parts(32, 256)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    class Text(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 1 << 20

        def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
            ids = torch.tensor(sorted(range(i, i + 3000), key=lambda k: (k * 7919) % 30011)[:256]) % 30000
            return ids, i % 2

    batches = iter(torch.utils.data.DataLoader(Text(), batch_size=32))

    def one(i: int) -> None:
        x, y = (t.to(DEVICE) for t in next(batches))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x).float(), y)
        loss.item()
        loss.backward()
        optimizer.step()

    return Case(one, ["input-starved"])


@case
def encoder_fp32() -> Case:
    """No autocast, TF32 off."""
    model, x, y = encoder_parts(16, 256)
    step = train_step(model, torch.optim.AdamW(model.parameters(), fused=True), amp=False)
    return Case(lambda i: discard(step(x, y)), ["tensor-cores-unused"])


# ---------------------------------------------------------------- recording


def clean_step_s(step: Callable[[int], None], first: int) -> float:
    times = []
    for i in range(8):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step(first + i)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def free_running_s(step: Callable[[int], None], first: int, steps: int = 8) -> float:
    """Per step over several steps without a sync between them, as a real loop runs."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for i in range(steps):
        step(first + i)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def record(name: str, out: Path) -> str:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    made = CASES[name]()
    for i in range(6):
        made.step(i)
    torch.cuda.synchronize()
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    torch.cuda.reset_peak_memory_stats()
    clean = free_running_s(made.step, 6)
    synced = clean_step_s(made.step, 14)
    peak = torch.cuda.max_memory_allocated()
    smi = subprocess.Popen(
        ["nvidia-smi", "--query-gpu=timestamp,index,name,utilization.gpu,utilization.memory,memory.used,memory.total,"
         "power.draw,power.limit,clocks.sm,clocks.mem,temperature.gpu,clocks_event_reasons.active,pcie.link.gen.current,"
         "pcie.link.width.current", "--format=csv", "-lms", "200"],
        stdout=(folder / "nvidia_smi.csv").open("w"),
    )  # fmt: skip
    deadline = time.perf_counter() + 1.0
    i = 22
    while time.perf_counter() < deadline:
        made.step(i)
        i += 1
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    schedule = torch.profiler.schedule(wait=1, warmup=2, active=STEPS)
    with torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True) as prof:
        for _ in range(3 + STEPS):
            made.step(i)
            i += 1
            prof.step()
    smi.terminate()
    plain = folder / "trace.json"
    prof.export_chrome_trace(str(plain))
    with plain.open("rb") as source, gzip.open(folder / "trace.json.gz", "wb", compresslevel=9) as target:
        shutil.copyfileobj(source, target)
    plain.unlink()
    truth = {
        "case": name, "accept": made.accept, "note": made.note, "clean_step_s": clean, "synced_step_s": synced,
        "peak_bytes": peak, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(),
    }  # fmt: skip
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    made.cleanup()
    size = (folder / "trace.json.gz").stat().st_size
    return f"{name:28s} clean {clean * 1e3:8.2f} ms  synced {synced * 1e3:8.2f} ms  trace {size / 1e3:7.0f} kB"


def names(asked: list[str]) -> Iterator[str]:
    yield from asked or CASES


def main() -> None:
    out = Path(sys.argv[1])
    for name in names(sys.argv[2:]):
        try:
            print(record(name, out), flush=True)
        except Exception as error:
            print(f"{name:28s} FAILED {type(error).__name__}: {str(error)[:200]}", flush=True)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
