"""Records what a profiler does to a step, and what each fix is worth, over workloads with and without planted faults.

    python bench/gpu/record_clean_and_traced.py OUT_DIR [WORKLOAD ...]

Leaves in OUT_DIR: `overhead.csv` (clean step before and after, step under each set of profiler options, recorded events a
step), `truth.json` (what is wrong, the clean step, the clean step of every fix alone and of all), and `traces_N.tar` with one
trace per workload. Every clean figure is the median over blocks of steps, timed without a sync inside a block.
"""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
STEPS = 5
WARM = 2
CLEAN_S = 0.5
FIX_S = 0.7
DEADLINE_S = 320.0
TAR_BYTES = 15_000_000
FLIPPED = int(os.environ.get("FLIPPED", "0"))  # 1: the other set of options is kept of each workload

Step = Callable[[int], None]


@dataclass
class Workload:
    """`make(*fixes)` gives the step with these faults mended; `want` names the causes that are true of it unmended."""

    make: Callable[..., Step]
    want: str
    fixes: tuple[str, ...] = ()
    note: str = ""
    every: int = 4  # a block is a multiple of this many steps, so that periodic work is in each
    stack: bool = False
    marks: bool = True
    kept: dict[str, Any] = field(default_factory=dict)


WORKLOADS: dict[str, Workload] = {}


def workload(want: str, *fixes: str, **more: Any) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    def add(make: Callable[..., Step]) -> Callable[..., Step]:
        WORKLOADS[make.__name__] = Workload(make, want, fixes, (make.__doc__ or "").strip(), **more)
        return make

    return add


def size(large: int, small: int = 2) -> int:
    return large if GPU else small


def sync() -> None:
    if GPU:
        torch.cuda.synchronize()


def tf32(on: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = on


def bf16(on: bool = True) -> torch.autocast:
    return torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=on)


# ---------------------------------------------------------------- models


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, w))


class Feed(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Vit(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, recompute: bool = False) -> None:
        super().__init__()
        self.recompute = recompute
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.ModuleList(nn.Sequential(Attention(width, heads), Feed(width)) for _ in range(layers))
        self.head = nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            if self.recompute:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(x.mean(1))


class Unet(nn.Module):
    def __init__(self, c: int = 64) -> None:
        super().__init__()

        def pair(i: int, o: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
            )  # fmt: skip

        self.down = nn.ModuleList([pair(3, c), pair(c, 2 * c), pair(2 * c, 4 * c)])
        self.low = pair(4 * c, 8 * c)
        self.rise = nn.ModuleList(nn.ConvTranspose2d(k * c, k * c // 2, 2, 2) for k in (8, 4, 2))
        self.up = nn.ModuleList([pair(8 * c, 4 * c), pair(4 * c, 2 * c), pair(2 * c, c)])
        self.out = nn.Conv2d(c, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for stage in self.down:
            x = stage(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.low(x)
        for rise, stage in zip(self.rise, self.up, strict=True):
            x = stage(torch.cat([rise(x), kept.pop()], 1))
        return self.out(x)


class Mlp(nn.Module):
    def __init__(self, width: int, layers: int, act: Callable[[torch.Tensor], torch.Tensor] = F.relu) -> None:
        super().__init__()
        self.act = act
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + self.act(layer(x))
        return x


def train(model: nn.Module, optimizer: torch.optim.Optimizer, amp: bool = True) -> Callable[..., torch.Tensor]:
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with bf16(amp):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def learn(
    optimizer: torch.optim.Optimizer,
    answer: Callable[[], torch.Tensor],
    loss: Callable[[torch.Tensor], torch.Tensor],
    amp: bool = True,
) -> torch.Tensor:
    """One step of any model: its answer under autocast, and the loss of that outside."""
    optimizer.zero_grad(set_to_none=True)
    with bf16(amp):
        out = answer()
    loss(out).backward()
    optimizer.step()
    return out


def mean_square(out: torch.Tensor) -> torch.Tensor:
    return out.float().square().mean()


def recomputing(model: nn.Module, again: bool) -> nn.Module:
    """A library's model that computes its activations twice."""
    if again:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})  # type: ignore[operator]
    return model


def fused(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, **(options or {"fused": True}))


def pictures(batch: int, side: int = 224, classes: int = 1000) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(batch, 3, side, side, device=DEVICE),
        torch.randint(0, classes, (batch,), device=DEVICE),
    )


def captured(step: Callable[[], None]) -> Callable[[], None]:
    """The same step as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


# ---------------------------------------------------------------- workloads


@workload("launch-bound", "graph")
def mlp_tiny(*fixes: str) -> Step:
    """32 narrow layers, batch 64: the device waits for the host."""
    model = Mlp(256, size(32)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    x = torch.randn(64, 256, device=DEVICE)
    y = torch.randint(0, 256, (64,), device=DEVICE)

    def one() -> None:
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    run = captured(one) if "graph" in fixes else one
    return lambda i: run()


@workload("none|elementwise-unfused|precision-headroom")
def vit_bf16(*fixes: str) -> Step:
    """A vision transformer in bf16 with fused AdamW."""
    model = Vit(size(768, 64), size(12), 12 if GPU else 2).to(DEVICE)
    step = train(model, fused(model))
    x, y = pictures(size(192, 2))
    return lambda i: (step(x, y), None)[1]


@workload("layout-copies|elementwise-unfused", "channels_last", marks=False)
def unet_nchw(*fixes: str) -> Step:
    """A U-Net in bf16 whose pictures lie channel by channel."""
    model = Unet(size(64, 8)).to(DEVICE)
    x = torch.randn(size(24, 2), 3, size(192, 16), size(192, 16), device=DEVICE)
    if "channels_last" in fixes:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    y = torch.randint(0, 4, (x.shape[0], *x.shape[2:]), device=DEVICE)
    step = train(model, fused(model))
    return lambda i: (step(x, y), None)[1]


@workload("tensor-cores-unused|precision-headroom", "bf16")
def t5_fp32(*fixes: str) -> Step:
    """An encoder and decoder of T5 from its configuration, in fp32 without TF32."""
    from transformers import T5Config, T5ForConditionalGeneration

    tf32(False)
    config = T5Config(d_model=768, d_ff=2048, d_kv=64, num_heads=12, num_layers=6, vocab_size=32128, dropout_rate=0.0,
                      decoder_start_token_id=0, pad_token_id=0)  # fmt: skip
    model = T5ForConditionalGeneration(config).to(DEVICE)
    optimizer = fused(model)
    ids = torch.randint(5, 32000, (16, 256), device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16("bf16" in fixes):
            loss = model(input_ids=ids, labels=ids[:, :128]).loss
        loss.backward()
        optimizer.step()

    return one


@workload("launch-bound", "graph")
def decode_kv(*fixes: str) -> Step:
    """One token at a time with a kept cache, batch 4."""
    layers, width, heads, room = size(24), size(1024, 64), 16, size(512, 32)
    dtype = torch.bfloat16
    blocks = [
        {
            "qkv": torch.randn(width, 3 * width, device=DEVICE, dtype=dtype) * 0.02,
            "out": torch.randn(width, width, device=DEVICE, dtype=dtype) * 0.02,
            "up": torch.randn(width, 4 * width, device=DEVICE, dtype=dtype) * 0.02,
            "down": torch.randn(4 * width, width, device=DEVICE, dtype=dtype) * 0.02,
            "cache": torch.zeros(2, 4, heads, room, width // heads, device=DEVICE, dtype=dtype),
        }
        for _ in range(layers)
    ]
    state = torch.randn(4, 1, width, device=DEVICE, dtype=dtype)
    place = torch.zeros(1, dtype=torch.long, device=DEVICE)

    @torch.no_grad()
    def token() -> None:
        x = state
        for b in blocks:
            h = F.layer_norm(x, (width,))
            q, k, v = (h @ b["qkv"]).view(4, 1, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            b["cache"][0].index_copy_(2, place, k)
            b["cache"][1].index_copy_(2, place, v)
            a = F.scaled_dot_product_attention(q, b["cache"][0], b["cache"][1])
            x = x + a.transpose(1, 2).reshape(4, 1, width) @ b["out"]
            x = x + F.silu(F.layer_norm(x, (width,)) @ b["up"]) @ b["down"]
        state.copy_(x)

    run = captured(token) if "graph" in fixes else token
    return lambda i: run()


@workload("host-sync", "padded")
def moe_index(*fixes: str) -> Step:
    """Experts in a Python loop with nonzero(), which waits for the device; mended: fixed room per expert, one bmm."""
    width, experts, layers, tokens = size(1024, 16), size(16), size(4), size(4096, 64)
    gates = nn.ParameterList(nn.Parameter(torch.randn(width, experts) * 0.02) for _ in range(layers)).to(DEVICE)
    up = nn.ParameterList(nn.Parameter(torch.randn(experts, width, 2 * width) * 0.02) for _ in range(layers)).to(DEVICE)
    down = nn.ParameterList(nn.Parameter(torch.randn(experts, 2 * width, width) * 0.02) for _ in range(layers)).to(
        DEVICE
    )
    optimizer = torch.optim.AdamW([*gates, *up, *down], lr=1e-4, fused=True)
    x0 = torch.randn(tokens, width, device=DEVICE)
    room = 2 * tokens // experts

    def looped(x: torch.Tensor, layer: int) -> torch.Tensor:
        weight, choice = (x @ gates[layer]).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for e in range(experts):
            mine = (choice == e).nonzero(as_tuple=True)[0]
            y = y.index_add(0, mine, (F.gelu(x[mine] @ up[layer][e]) @ down[layer][e]).to(y.dtype))
        return x + y * weight[:, None]

    def padded(x: torch.Tensor, layer: int) -> torch.Tensor:
        weight, choice = (x @ gates[layer]).softmax(-1).max(-1)
        order = choice.argsort()
        packed = x[order[: room * experts] if room * experts <= tokens else order.repeat(2)[: room * experts]]
        packed = packed.view(experts, -1, width)
        y = (F.gelu(torch.bmm(packed, up[layer])) @ down[layer]).view(-1, width)[: x.shape[0]]
        return x + y[order.argsort()] * weight[:, None]

    layer_of = padded if "padded" in fixes else looped

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        x = x0
        with bf16():
            for layer in range(layers):
                x = layer_of(x, layer)
        x.float().square().mean().backward()
        optimizer.step()

    return one


@workload("launch-bound|optimizer-unfused", "foreach")
def gan_two_optimizers(*fixes: str) -> Step:
    """Small convolutional GAN, two optimizers that walk their parameters one by one."""
    c = size(32, 4)

    def up(i: int, o: int) -> nn.Sequential:
        return nn.Sequential(
            nn.ConvTranspose2d(i, o, 4, 2, 1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1)
        )

    def down(i: int, o: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(o, o, 3, padding=1), nn.LeakyReLU(0.2)
        )

    maker = nn.Sequential(up(64, 8 * c), up(8 * c, 4 * c), up(4 * c, 2 * c), up(2 * c, c), nn.Conv2d(c, 3, 1)).to(
        DEVICE
    )
    judge = nn.Sequential(
        down(3, c), down(c, 2 * c), down(2 * c, 4 * c), down(4 * c, 8 * c), nn.Conv2d(8 * c, 1, 4)
    ).to(DEVICE)
    loop = {"fused": True} if "foreach" in fixes else {"foreach": False}
    makes, judges = fused(maker, **loop), fused(judge, **loop)
    real = torch.randn(32, 3, 64, 64, device=DEVICE)

    def one(i: int) -> None:
        noise = torch.randn(32, 64, 4, 4, device=DEVICE)
        fake = maker(noise)
        judges.zero_grad(set_to_none=True)
        loss = F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean()
        loss.backward()
        judges.step()
        makes.zero_grad(set_to_none=True)
        F.softplus(-judge(fake)).mean().backward()
        makes.step()

    return one


@workload("host-sync", "no_item")
def vit_item(*fixes: str) -> Step:
    """A narrow vision transformer that reads every gradient's norm each step."""
    model = Vit(size(384, 64), size(12), 6 if GPU else 2).to(DEVICE)
    optimizer = fused(model)
    x, y = pictures(size(48, 2))

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        if "no_item" not in fixes:
            sum(p.grad.norm().item() for p in model.parameters() if p.grad is not None)
        optimizer.step()

    return one


@workload("input-starved|host-work-unattributed", "ready", stack=True)
def numpy_on_main(*fixes: str) -> Step:
    """Pictures are cropped, flipped and normalised by numpy on the main thread, no loader."""
    model = Vit(size(512, 64), size(8), 8 if GPU else 2).to(DEVICE)
    step = train(model, fused(model))
    store = np.random.default_rng(0).integers(0, 255, (size(32, 2), 256, 256, 3), dtype=np.uint8)
    labels = torch.randint(0, 1000, (len(store),), device=DEVICE)
    mean, deviation = np.array([0.48, 0.46, 0.41], np.float32), np.array([0.23, 0.22, 0.22], np.float32)
    draw = np.random.default_rng(1)

    def prepare() -> torch.Tensor:
        corner = draw.integers(0, 32, (len(store), 2))
        crops = [store[k, r : r + 224, c : c + 224] for k, (r, c) in enumerate(corner)]
        crops = [crop[:, ::-1] if draw.random() < 0.5 else crop for crop in crops]
        batch = (np.stack(crops).astype(np.float32) / 255 - mean) / deviation
        return torch.from_numpy(np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))

    ready = prepare().to(DEVICE) if "ready" in fixes else None
    return lambda i: (step(prepare().to(DEVICE) if ready is None else ready, labels), None)[1]


@workload("h2d-copy-exposed|input-starved", "pinned")
def pageable_wide(*fixes: str) -> Step:
    """A big table row batch crosses from pageable memory each step, and the host waits for it."""
    model = Mlp(size(4096, 32), size(6)).to(DEVICE)
    optimizer = fused(model)
    host = torch.randn(size(16384, 64), size(4096, 32))
    host = host.pin_memory() if "pinned" in fixes else host
    y = torch.randint(0, 16, (host.shape[0],), device=DEVICE)
    side = torch.cuda.Stream() if GPU else None
    ahead: list[torch.Tensor] = []

    def fetch() -> torch.Tensor:
        if "pinned" not in fixes:
            return host.to(DEVICE)
        with torch.cuda.stream(side):
            ahead.append(host.to(DEVICE, non_blocking=True))
        if len(ahead) < 2:
            return fetch()
        torch.cuda.current_stream().wait_stream(side)
        batch = ahead.pop(0)
        batch.record_stream(torch.cuda.current_stream())
        return batch

    step = train(model, optimizer)
    return lambda i: (step(fetch(), y), None)[1]


@workload("checkpoint-stall", "no_save")
def mixer_saves(*fixes: str) -> Step:
    """A model of 60M parameters written to disk every fourth step."""
    model = Mlp(size(2048, 32), size(14)).to(DEVICE)
    optimizer = fused(model)
    step = train(model, optimizer)
    x = torch.randn(size(8192, 64), size(2048, 32), device=DEVICE)
    y = torch.randint(0, 32, (len(x),), device=DEVICE)
    target = Path(tempfile.gettempdir()) / "mixer_saves.pt"

    def one(i: int) -> None:
        step(x, y)
        if i % 4 == 3 and "no_save" not in fixes:
            torch.save({"model": model.state_dict(), "step": i}, target)

    return one


def snake(x: torch.Tensor) -> torch.Tensor:
    y = x + torch.sin(2.0 * x) ** 2 / 2.0
    y = torch.where(y > 0, y, 0.1 * y)
    return torch.tanh(y) * torch.sigmoid(1.5 * y) + 0.05 * x


@workload("elementwise-unfused", "fuse")
def chain_of_pointwise(*fixes: str) -> Step:
    """A home-made activation of a dozen pointwise kernels between matrix products."""
    act = torch.compile(snake) if "fuse" in fixes else snake
    model = Mlp(size(2048, 32), size(8), act).to(DEVICE)
    step = train(model, fused(model))
    x = torch.randn(size(32768, 64), size(2048, 32), device=DEVICE)
    y = torch.randint(0, 32, (len(x),), device=DEVICE)
    return lambda i: (step(x, y), None)[1]


class SlowRows(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self, busy_ms: float) -> None:
        self.busy_s = busy_ms / 1e3

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        rows, until = torch.zeros(256), time.perf_counter() + self.busy_s
        while time.perf_counter() < until:
            rows = torch.sin(rows + i)
        return rows, i % 16


@workload("input-starved,host-sync|launch-bound", "loader", "items", every=2)
def loader_and_items(*fixes: str) -> Step:
    """Two faults: rows are made in the main process, and each layer's output is read back."""
    model = nn.ModuleList(nn.Linear(256, 256) for _ in range(size(48))).to(DEVICE)
    optimizer = fused(model)
    ready = (torch.randn(32, 256, device=DEVICE), torch.randint(0, 16, (32,), device=DEVICE))
    batches = iter(torch.utils.data.DataLoader(SlowRows(0.4), batch_size=32))

    def one(i: int) -> None:
        x, y = ready if "loader" in fixes else (t.to(DEVICE) for t in next(batches))
        optimizer.zero_grad(set_to_none=True)
        for layer in model:
            x = x + F.gelu(layer(x))
            if "items" not in fixes and not torch.isfinite(x).all():
                raise ValueError(i)
        F.cross_entropy(x, y).backward()
        optimizer.step()

    return one


@workload("tensor-cores-unused,h2d-copy-exposed", "bf16", "copy")
def fp32_and_copy(*fixes: str) -> Step:
    """Two faults: fp32 without TF32, and a blocking copy of the batch from pageable memory."""
    tf32(False)
    model = Mlp(size(2048, 32), size(6)).to(DEVICE)
    step = train(model, fused(model), amp="bf16" in fixes)
    host = torch.randn(size(16384, 64), size(2048, 32))
    ready = host.to(DEVICE)
    y = torch.randint(0, 16, (len(host),), device=DEVICE)
    return lambda i: (step(ready if "copy" in fixes else host.to(DEVICE), y), None)[1]


@workload("recompute-unneeded", "keep")
def vit_recompute(*fixes: str) -> Step:
    """Every block is computed twice though memory is ample."""
    model = Vit(size(768, 64), size(8), 12 if GPU else 2, recompute="keep" not in fixes).to(DEVICE)
    step = train(model, fused(model))
    x, y = pictures(size(128, 2))
    return lambda i: (step(x, y), None)[1]


@workload("input-starved", "workers", every=8)
def loader_queue(*fixes: str) -> Step:
    """Two workers make a batch in 40 ms each; the step could take one every few milliseconds."""
    model = Vit(size(512, 64), size(8), 8 if GPU else 2).to(DEVICE)
    step = train(model, fused(model))
    workers = 12 if "workers" in fixes else 2
    loader = torch.utils.data.DataLoader(
        SlowRows(2.5), batch_size=16, num_workers=workers, pin_memory=GPU, prefetch_factor=4
    )
    batches = iter(loader)
    x, y = pictures(size(48, 2))

    def one(i: int) -> None:
        rows, _ = next(batches)
        rows.to(DEVICE, non_blocking=True)
        step(x, y)

    return one


@workload("none|launch-bound")
def lstm_cudnn(*fixes: str) -> Step:
    """Three layers of the library's own LSTM."""
    model = nn.LSTM(512, size(1024, 32), 3, batch_first=True).to(DEVICE)
    head = nn.Linear(size(1024, 32), 64).to(DEVICE)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4, fused=True)
    x, y = torch.randn(64, 128, 512, device=DEVICE), torch.randint(0, 64, (64,), device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            loss = F.cross_entropy(head(model(x)[0][:, -1]).float(), y)
        loss.backward()
        optimizer.step()

    return one


@workload("host-work-unattributed|launch-bound", "no_text", stack=True)
def python_text(*fixes: str) -> Step:
    """Strings are split and looked up in plain Python before each step of a small tagger."""
    book = {f"w{k}": k for k in range(5000)}
    text = [" ".join(f"w{(k * 7919 + j * 31) % 6000}" for j in range(128)) for k in range(64)]
    model = nn.Sequential(nn.Embedding(5001, 512), Mlp(512, size(8)), nn.Linear(512, 32)).to(DEVICE)
    optimizer = fused(model)
    y = torch.randint(0, 32, (64 * 128,), device=DEVICE)

    def tokenize() -> torch.Tensor:
        rows = []
        for line in text:
            words = [word.strip().lower() for word in line.split(" ")]
            rows.append([book.get(word, 5000) for word in words])
        return torch.tensor(rows)

    ready = tokenize().to(DEVICE) if "no_text" in fixes else None

    def one(i: int) -> None:
        ids = tokenize().to(DEVICE) if ready is None else ready
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            loss = F.cross_entropy(model(ids).flatten(0, 1).float(), y)
        loss.backward()
        optimizer.step()

    return one


@workload("none|elementwise-unfused")
def graph_replayed(*fixes: str) -> Step:
    """A healthy step that runs as one CUDA graph."""
    model = Mlp(size(1024, 32), size(16)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True, capturable=GPU)
    x = torch.randn(size(4096, 64), size(1024, 32), device=DEVICE)
    y = torch.randint(0, 16, (len(x),), device=DEVICE)

    def body() -> None:
        optimizer.zero_grad(set_to_none=False)
        with bf16():
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()

    run = captured(body) if GPU else body
    return lambda i: run()


@workload("allocator-churn,optimizer-unfused|launch-bound", "cache", "foreach")
def cache_and_optimizer(*fixes: str) -> Step:
    """Two faults: the allocator's cache is emptied each step, and the optimizer walks its parameters one by one."""
    model = Vit(size(384, 64), size(12), 6 if GPU else 2).to(DEVICE)
    step = train(model, fused(model, **({"fused": True} if "foreach" in fixes else {"foreach": False})))
    x, y = pictures(size(64, 2))

    def one(i: int) -> None:
        step(x, y)
        if "cache" not in fixes and GPU:
            torch.cuda.empty_cache()

    return one


@workload("none|elementwise-unfused")
def vit_compiled(*fixes: str) -> Step:
    """The vision transformer, compiled."""
    model = Vit(size(512, 64), size(4), 8 if GPU else 2).to(DEVICE)
    step = train(torch.compile(model), fused(model))  # type: ignore[arg-type]
    x, y = pictures(size(96, 2))
    return lambda i: (step(x, y), None)[1]


# ---------------------------------------------------------------- recording

OPTIONS: dict[str, dict[str, Any]] = {
    "cpu+cuda": {},
    "shapes": {"record_shapes": True},
    "shapes+stack": {"record_shapes": True, "with_stack": True},
    "cuda only": {"device_only": True},
}
CATEGORIES = {"cpu_ops": (b"cpu_op",), "runtime": (b"cuda_runtime", b"cuda_driver"), "python": (b"python_function",),
              "kernels": (b"kernel", b"gpu_memcpy", b"gpu_memset")}  # fmt: skip


class Clock:
    """Runs a step with one running count, so that periodic work keeps its rhythm over every measurement."""

    def __init__(self, step: Step, every: int) -> None:
        self.step, self.every, self.count = step, every, 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step(self.count)
            self.count += 1

    def clean_ms(self, seconds: float) -> tuple[float, list[float]]:
        """Median over blocks of the mean step; a block ends with a sync."""
        while self.count % self.every:
            self.run(1)
        blocks: list[float] = []
        until = time.perf_counter() + seconds
        sync()
        while len(blocks) < 3 or (time.perf_counter() < until and len(blocks) < 24):
            start = time.perf_counter()
            self.run(self.every)
            sync()
            blocks.append((time.perf_counter() - start) / self.every * 1e3)
            if time.perf_counter() > until + 6:
                break
        return statistics.median(blocks), [round(b, 4) for b in blocks]

    def traced(self, marks: bool, device_only: bool = False, **options: Any) -> tuple[float, Any]:
        kinds = (
            [torch.profiler.ProfilerActivity.CUDA]
            if device_only and GPU
            else list(torch.profiler.supported_activities())
        )
        while self.count % self.every != (-WARM) % self.every:
            self.run(1)
        if not marks:
            self.run(WARM)
            sync()
            with torch.profiler.profile(activities=kinds, **options) as prof:
                start = time.perf_counter()
                self.run(STEPS)
                sync()
                taken = time.perf_counter() - start
            return taken / STEPS * 1e3, prof
        plan = torch.profiler.schedule(wait=0, warmup=WARM, active=STEPS, repeat=1)
        with torch.profiler.profile(activities=kinds, schedule=plan, **options) as prof:
            for _ in range(WARM - 1):
                self.run(1)
                prof.step()
            self.run(1)
            sync()
            prof.step()
            start = time.perf_counter()
            for k in range(STEPS):
                self.run(1)
                if k + 1 < STEPS:
                    prof.step()
            sync()
            taken = time.perf_counter() - start
            prof.step()
        return taken / STEPS * 1e3, prof


def exported(prof: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        return path.read_bytes()


def counted(trace: bytes) -> dict[str, float]:
    return {
        name: sum(trace.count(b'"cat": "' + kind + b'"') for kind in kinds) / STEPS
        for name, kinds in CATEGORIES.items()
    }


def release() -> None:
    gc.collect()
    if GPU:
        torch.cuda.empty_cache()


def record(name: str, kept: str, traces: dict[str, bytes]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    work = WORKLOADS[name]
    tf32(True)
    torch.manual_seed(0)
    clock = Clock(work.make(), work.every)
    clock.run(8)
    sync()
    rows, cleans = [], []
    clean, blocks = clock.clean_ms(CLEAN_S)
    cleans.append(clean)
    for options, settings in OPTIONS.items():
        traced, prof = clock.traced(work.marks, **settings)
        text = exported(prof)
        del prof
        if options == kept or (options == "shapes+stack" and work.stack):
            traces[f"{name}.{options.replace('+', '_')}.json.gz"] = gzip.compress(text, 7)
        after, more = clock.clean_ms(CLEAN_S)
        blocks += more
        row = {
            "workload": name,
            "options": options,
            "clean_before_ms": cleans[-1],
            "traced_ms": traced,
            "clean_after_ms": after,
        }
        rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in (row | counted(text)).items()})
        cleans.append(after)
    peak = torch.cuda.max_memory_allocated() if GPU else 0
    truth: dict[str, Any] = {
        "want": work.want, "note": work.note, "kept": kept, "clean_step_ms": statistics.median(cleans),
        "clean_all_ms": cleans, "clean_blocks_ms": blocks, "peak_bytes": peak, "fixed_step_ms": {},
    }  # fmt: skip
    del clock
    release()
    sets = [(fix,) for fix in work.fixes] + ([work.fixes] if len(work.fixes) > 1 else [])
    for fixes in sets:
        tf32(True)
        try:
            fixed = Clock(work.make(*fixes), work.every)
            fixed.run(8)
            truth["fixed_step_ms"]["all" if len(fixes) > 1 else fixes[0]] = fixed.clean_ms(FIX_S)[0]
            del fixed
        except Exception as error:
            truth.setdefault("failed", {})[",".join(fixes)] = f"{type(error).__name__}: {str(error)[:200]}"
        release()
    return rows, truth


def write_tars(out: Path, traces: dict[str, bytes]) -> None:
    part, room, tar = 0, 0, None
    for name, data in traces.items():
        if tar is None or room + len(data) > TAR_BYTES:
            if tar:
                tar.close()
            part, room = part + 1, 0
            tar = tarfile.open(out / f"traces_{part}.tar", "w")  # noqa: SIM115
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
        room += len(data) + 1024
    if tar:
        tar.close()


def main() -> None:
    began = time.perf_counter()
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    rows: list[dict[str, Any]] = []
    truths: dict[str, Any] = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name() if GPU else "none"}
    traces: dict[str, bytes] = {}
    for k, name in enumerate(sys.argv[2:] or WORKLOADS):
        if time.perf_counter() - began > DEADLINE_S:
            print(f"{name:24s} left out: the time is spent", flush=True)
            continue
        start = time.perf_counter()
        try:
            made, truth = record(name, ("cpu+cuda", "shapes")[(k + FLIPPED) % 2], traces)
            rows += made
            truths[name] = truth
            fixed = {fix: round(ms, 2) for fix, ms in truth["fixed_step_ms"].items()}
            traced = {row["options"]: round(row["traced_ms"], 2) for row in made}
            print(
                f"{name:24s} clean {truth['clean_step_ms']:8.2f} ms  traced {traced}  fixed {fixed} {truth.get('failed', '')}"
                f"  {time.perf_counter() - start:.0f} s",
                flush=True,
            )
        except Exception as error:
            print(f"{name:24s} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
        release()
        (out / "truth.json").write_text(json.dumps(truths, indent=1))
        if rows:
            with (out / "overhead.csv").open("w", newline="") as file:
                table = csv.DictWriter(file, list(rows[0]))
                table.writeheader()
                table.writerows(rows)
        write_tars(out, traces)
    print(f"{time.perf_counter() - began:.0f} s, {sum(map(len, traces.values())) / 1e6:.1f} MB of traces", flush=True)


if __name__ == "__main__":
    main()
