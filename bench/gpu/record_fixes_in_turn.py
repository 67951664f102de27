"""Records faults and their fixes in turn: blocks of steps with the fault, then with each fix, and again from the start.

    python bench/gpu/record_fixes_in_turn.py OUT_DIR [WORKLOAD ...]

A host whose speed drifts within minutes moves both sides of such a pair alike, so the gain is the median of the differences
round by round. Leaves in OUT_DIR: `truth.json` (what is wrong, clean step, step after each fix alone and after all, and the
gain of each with its quartiles), `overhead.csv` (the step before, under and after each set of profiler options) and
`traces_N.tar`. Steps, models and tars are those of `record_clean_and_traced.py`; the workloads are others.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from record_clean_and_traced import (
    DEVICE,
    GPU,
    WORKLOADS,
    Clock,
    Mlp,
    Step,
    Workload,
    bf16,
    captured,
    counted,
    exported,
    fused,
    release,
    size,
    sync,
    tf32,
    workload,
    write_tars,
)  # fmt: skip

DEADLINE_S = float(os.environ.get("DEADLINE_S", "185"))
TURN_S = 1.8  # for the rounds of a workload
LEAST_ROUNDS = 5
BLOCK = 2  # steps of a block, where nothing is periodic
WORKLOADS.clear()


class Block(nn.Module):
    """A decoder's block as people write it by hand: RMS norm, rotation, gate."""

    def __init__(self, width: int, heads: int, inner: int, written_scores: bool = False) -> None:
        super().__init__()
        self.heads, self.written_scores = heads, written_scores
        self.one, self.two = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        )  # fmt: skip

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * weight).to(x.dtype)

    def rotated(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[2], device=x.device)[:, None] / torch.arange(1, half + 1, device=x.device)
        cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, w = x.shape
        h = self.qkv(self.norm(x, self.one)).view(b, s, 3, self.heads, w // self.heads)
        q, k, v = h.permute(2, 0, 3, 1, 4)
        q, k = self.rotated(q).to(v.dtype), self.rotated(k).to(v.dtype)
        if self.written_scores:
            scores = q @ k.transpose(-1, -2) / (w // self.heads) ** 0.5
            hidden = torch.ones(s, s, dtype=torch.bool, device=x.device).triu(1)
            a = scores.masked_fill(hidden, float("-inf")).softmax(-1).to(v.dtype) @ v
        else:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, s, w))
        h = self.norm(x, self.two)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(
        self, words: int, width: int, layers: int, heads: int, inner: int, scores: bool = False, again: bool = False
    ) -> None:
        super().__init__()
        self.again = again
        self.table = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads, inner, scores) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head(x)


def decoder_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, ids: Callable[[int], torch.Tensor], narrow: bool = True,
    fast_fp32: bool = True, after: Callable[[torch.Tensor], None] | None = None,
) -> Step:  # fmt: skip
    def one(i: int) -> None:
        tf32(fast_fp32)
        batch = ids(i)
        optimizer.zero_grad(set_to_none=True)
        with bf16(narrow):
            logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        if after is not None:
            after(loss)

    return one


def words(batch: int, length: int, count: int) -> Callable[[int], torch.Tensor]:
    ids = torch.randint(0, count, (batch, length + 1), device=DEVICE)
    return lambda i: ids


# ---------------------------------------------------------------- one fault


@workload("launch-bound", "graph")
def gru_cells(*fixes: str) -> Step:
    """A recurrent cell called step by step from Python, batch 32."""
    cell, head = nn.GRUCell(256, size(512, 16)).to(DEVICE), nn.Linear(size(512, 16), 32).to(DEVICE)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-4, foreach=True, capturable=GPU)
    x, y = torch.randn(48, 32, 256, device=DEVICE), torch.randint(0, 32, (32,), device=DEVICE)

    def one() -> None:
        optimizer.zero_grad(set_to_none=False)
        state = torch.zeros(32, size(512, 16), device=DEVICE)
        for moment in x:
            state = cell(moment, state)
        F.cross_entropy(head(state), y).backward()
        optimizer.step()

    run = captured(one) if "graph" in fixes else one
    kept = (x, y, cell, head, optimizer)  # what a captured graph reads must stay allocated
    return lambda i: (run(), kept)[0]


@workload("elementwise-unfused", "compile")
def decoder_by_hand(*fixes: str) -> Step:
    """A decoder in bf16 whose norms, rotations and gates are written out."""
    model = Decoder(16384, size(1024, 32), size(4), 8, size(2816, 64)).to(DEVICE)
    ids = words(size(16, 2), size(1024, 16), 16384)
    return decoder_step(torch.compile(model) if "compile" in fixes else model, fused(model), ids)


@workload("elementwise-unfused|layout-copies|precision-headroom", "compile")
def convnext(*fixes: str) -> Step:
    """Depthwise convolutions with norms over channels, which move between layouts."""
    c = size(192, 8)

    class Stage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.deep = nn.Conv2d(c, c, 7, padding=3, groups=c)
            self.norm, self.up, self.down = nn.LayerNorm(c), nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
            self.scale = nn.Parameter(torch.full((c,), 0.1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.norm(self.deep(x).permute(0, 2, 3, 1))
            return x + (self.scale * self.down(F.gelu(self.up(h)))).permute(0, 3, 1, 2)

    model = nn.Sequential(nn.Conv2d(3, c, 4, 4), *(Stage() for _ in range(size(6)))).to(DEVICE)
    optimizer = fused(model)
    run = torch.compile(model) if "compile" in fixes else model
    x = torch.randn(size(64, 2), 3, size(224, 32), size(224, 32), device=DEVICE)

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            y = run(x)
        y.float().square().mean().backward()
        optimizer.step()

    return one


@workload("precision-headroom|tensor-cores-unused|layout-copies|elementwise-unfused", "bf16")
def residual_tf32(*fixes: str) -> Step:
    """A residual network of 3x3 convolutions in fp32 with TF32."""
    c = size(128, 8)
    parts = [nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU()) for _ in range(size(12))]
    model, first = nn.ModuleList(parts).to(DEVICE), nn.Conv2d(3, c, 4, 4).to(DEVICE)
    optimizer = torch.optim.SGD([*model.parameters(), *first.parameters()], lr=1e-3, fused=GPU)
    x = torch.randn(size(64, 2), 3, size(224, 32), size(224, 32), device=DEVICE)

    def one(i: int) -> None:
        tf32(True)
        optimizer.zero_grad(set_to_none=True)
        with bf16("bf16" in fixes):
            y = first(x)
            for part in model:
                y = y + part(y)
        y.float().mean().backward()
        optimizer.step()

    return one


@workload("tensor-cores-unused", "bf16")
def decoder_fp32(*fixes: str) -> Step:
    """A decoder in fp32 without TF32."""
    model = Decoder(16384, size(1024, 32), size(6), 8, size(2816, 64)).to(DEVICE)
    ids = words(size(4, 2), size(512, 16), 16384)
    return decoder_step(model, fused(model), ids, narrow="bf16" in fixes, fast_fp32=False)


@workload("misaligned-shapes", "padded")
def decoder_odd(*fixes: str) -> Step:
    """A vocabulary and an inner width that no vector divides."""
    count, inner = (30016, 3008) if "padded" in fixes else (30011, 3001)
    model = Decoder(count, size(1024, 32), size(6), 8, inner if GPU else 64).to(DEVICE)
    return decoder_step(model, fused(model), words(size(8, 2), size(1024, 16), 30000))


@workload("attention-materialized", "sdpa")
def decoder_scores(*fixes: str) -> Step:
    """Scores are written out, masked and read back, over 2,048 words."""
    model = Decoder(8192, size(1024, 32), size(6), 8, size(2816, 64), scores="sdpa" not in fixes).to(DEVICE)
    return decoder_step(model, fused(model), words(size(4, 2), size(2048, 16), 8192))


class Sounds(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Waves turned into spectra by numpy."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        wave = np.sin(np.arange(size(32000, 2000)) * (1 + i % 7) / 50.0)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 512)[::128] * np.hanning(512)
        power = np.log1p(np.abs(np.fft.rfft(frames)))[:64, :256]
        return torch.from_numpy(np.resize(power, (64, 256)).astype(np.float32)), i % 16


@workload("input-starved", "ready", every=2)
def sounds_on_main(*fixes: str) -> Step:
    """Spectra are computed in the main process, by a loader without workers."""
    model = nn.Sequential(nn.Linear(256, 1024), Mlp(1024, size(8)), nn.Linear(1024, 16)).to(DEVICE)
    optimizer = fused(model)
    batches = iter(torch.utils.data.DataLoader(Sounds(), batch_size=16))
    kept = [t.to(DEVICE) for t in next(batches)]

    def one(i: int) -> None:
        x, y = kept if "ready" in fixes else [t.to(DEVICE) for t in next(batches)]
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            out = model(x).mean(1)
        F.cross_entropy(out.float(), y).backward()
        optimizer.step()

    return one


@workload("h2d-copy-exposed", "pinned")
def tables_pageable(*fixes: str) -> Step:
    """Twelve columns of a table cross from pageable memory one after the other."""
    columns = [torch.randn(size(65536, 64), size(48, 4)) for _ in range(12)]
    if "pinned" in fixes and GPU:
        columns = [c.pin_memory() for c in columns]
    wide = columns[0].shape[1] * 12
    model = nn.Sequential(
        nn.Linear(wide, size(1024, 16)), Mlp(size(1024, 16), size(6)), nn.Linear(size(1024, 16), 16)
    ).to(DEVICE)
    optimizer = fused(model)
    y = torch.randint(0, 16, (len(columns[0]),), device=DEVICE)
    side = torch.cuda.Stream() if GPU else None
    ahead: list[list[torch.Tensor]] = []

    def fetch() -> list[torch.Tensor]:
        if "pinned" not in fixes:
            return [c.to(DEVICE) for c in columns]
        with torch.cuda.stream(side):
            ahead.append([c.to(DEVICE, non_blocking=True) for c in columns])
        if len(ahead) < 2:
            return fetch()
        torch.cuda.current_stream().wait_stream(side)
        batch = ahead.pop(0)
        for c in batch:
            c.record_stream(torch.cuda.current_stream())
        return batch

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            out = model(torch.cat(fetch(), 1))
        F.cross_entropy(out.float(), y).backward()
        optimizer.step()

    return one


@workload("host-sync|launch-bound", "kept")
def losses_read(*fixes: str) -> Step:
    """Eight micro-batches, and of each the loss and the hits are read back."""
    model = nn.Sequential(Mlp(size(1024, 32), size(12)), nn.Linear(size(1024, 32), 64)).to(DEVICE)
    optimizer = fused(model)
    x, y = torch.randn(8, 512, size(1024, 32), device=DEVICE), torch.randint(0, 64, (8, 512), device=DEVICE)
    told: list[Any] = []

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        told.clear()
        for part, target in zip(x, y, strict=True):
            with bf16():
                out = model(part)
            loss = F.cross_entropy(out.float(), target)
            loss.backward()
            hits = (out.argmax(-1) == target).sum()
            told.extend((loss, hits) if "kept" in fixes else (loss.item(), hits.item()))
        optimizer.step()

    return one


@workload("optimizer-unfused|launch-bound", "fused")
def adam_one_by_one(*fixes: str) -> Step:
    """A decoder of many layers whose Adam walks its parameters."""
    model = Decoder(8192, size(512, 32), size(12), 8, size(1408, 64)).to(DEVICE)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, **({"fused": True} if "fused" in fixes else {"foreach": False})
    )
    return decoder_step(model, optimizer, words(size(8, 2), size(512, 16), 8192))


@workload("recompute-unneeded|launch-bound", "keep")
def decoder_again_small(*fixes: str) -> Step:
    """Blocks are computed twice in a model so small that the host sets the pace."""
    model = Decoder(8192, size(512, 32), size(12), 8, size(1408, 64), again="keep" not in fixes).to(DEVICE)
    return decoder_step(model, fused(model), words(size(2, 2), size(256, 16), 8192))


@workload("recompute-unneeded", "keep")
def decoder_again_large(*fixes: str) -> Step:
    """Blocks are computed twice, and the device sets the pace."""
    model = Decoder(8192, size(2048, 32), size(4), 16, size(5632, 64), again="keep" not in fixes).to(DEVICE)
    return decoder_step(model, fused(model), words(size(8, 2), size(1024, 16), 8192))


@workload("allocator-churn|host-sync", "cached")
def cache_emptied(*fixes: str) -> Step:
    """The allocator's cache is emptied after each of two passes."""
    model = nn.Sequential(Mlp(size(2048, 32), size(10)), nn.Linear(size(2048, 32), 64)).to(DEVICE)
    optimizer = fused(model)
    x, y = (
        torch.randn(size(4096, 64), size(2048, 32), device=DEVICE),
        torch.randint(0, 64, (size(4096, 64),), device=DEVICE),
    )

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(2):
            with bf16():
                out = model(x)
            F.cross_entropy(out.float(), y).backward()
            if "cached" not in fixes and GPU:
                torch.cuda.empty_cache()
        optimizer.step()

    return one


@workload("host-work-unattributed", "none", stack=True)
def quantiles_in_python(*fixes: str) -> Step:
    """A table of quantiles is kept in Python after each step."""
    model = nn.Sequential(Mlp(size(1024, 32), size(8)), nn.Linear(size(1024, 32), 64)).to(DEVICE)
    optimizer = fused(model)
    x, y = (
        torch.randn(size(8192, 64), size(1024, 32), device=DEVICE),
        torch.randint(0, 64, (size(8192, 64),), device=DEVICE),
    )
    past = [float((k * 7919) % 10007) for k in range(size(20000, 100))]

    def quantiles(values: list[float]) -> list[float]:
        ordered = sorted(values)
        return [ordered[int(q * (len(ordered) - 1) / 100)] for q in range(101)]

    def one(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            out = model(x)
        F.cross_entropy(out.float(), y).backward()
        optimizer.step()
        if "none" not in fixes:
            past[i % len(past)] = float(i)
            quantiles(past)
            quantiles([v * 0.5 for v in past])

    return one


# ---------------------------------------------------------------- two faults


@workload("tensor-cores-unused,input-starved", "bf16", "ready", every=2)
def sounds_and_fp32(*fixes: str) -> Step:
    """Two faults: spectra on the main thread, and fp32 without TF32."""
    model = (
        nn.Sequential(nn.Linear(256, 2048), Mlp(size(2048, 16), size(6)), nn.Linear(2048, 16)).to(DEVICE)
        if GPU
        else nn.Linear(256, 16)
    )
    optimizer = fused(model)
    batches = iter(torch.utils.data.DataLoader(Sounds(), batch_size=16))
    kept = [t.to(DEVICE) for t in next(batches)]

    def one(i: int) -> None:
        tf32(False)
        x, y = kept if "ready" in fixes else [t.to(DEVICE) for t in next(batches)]
        optimizer.zero_grad(set_to_none=True)
        with bf16("bf16" in fixes):
            out = model(x.repeat(size(4, 1), 1, 1)).mean(1)
        F.cross_entropy(out.float(), y.repeat(size(4, 1))).backward()
        optimizer.step()

    return one


@workload("host-sync,optimizer-unfused|launch-bound", "kept", "fused")
def norms_and_adam(*fixes: str) -> Step:
    """Two faults: the norm of every gradient is read, and Adam walks its parameters."""
    model = Decoder(8192, size(512, 32), size(8), 8, size(1408, 64)).to(DEVICE)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-4, **({"fused": True} if "fused" in fixes else {"foreach": False})
    )

    def after(loss: torch.Tensor) -> None:
        if "kept" not in fixes:
            [float(p.grad.norm()) for p in model.parameters() if p.grad is not None]

    return decoder_step(model, optimizer, words(size(8, 2), size(512, 16), 8192), after=after)


@workload("attention-materialized,recompute-unneeded", "sdpa", "keep")
def scores_and_again(*fixes: str) -> Step:
    """Two faults: written scores, and blocks computed twice."""
    model = Decoder(
        8192, size(1024, 32), size(4), 8, size(2816, 64), scores="sdpa" not in fixes, again="keep" not in fixes
    ).to(DEVICE)
    return decoder_step(model, fused(model), words(size(4, 2), size(1024, 16), 8192))


@workload("h2d-copy-exposed,elementwise-unfused", "ready", "compile")
def copy_and_chain(*fixes: str) -> Step:
    """Two faults: a batch from pageable memory, and an activation of many pointwise kernels."""

    def act(x: torch.Tensor) -> torch.Tensor:
        y = x * torch.sigmoid(x) + torch.tanh(x) * 0.3
        return torch.where(y > 3, 3 + 0.1 * (y - 3), y) * 1.1 - 0.02 * x

    model = Mlp(size(2048, 32), size(6), torch.compile(act) if "compile" in fixes else act).to(DEVICE)
    optimizer = fused(model)
    host = torch.randn(size(8192, 64), size(2048, 32))
    ready = host.to(DEVICE)

    def one(i: int) -> None:
        x = ready if "ready" in fixes else host.to(DEVICE)
        optimizer.zero_grad(set_to_none=True)
        with bf16():
            out = model(x)
        out.float().square().mean().backward()
        optimizer.step()

    return one


# ---------------------------------------------------------------- recording

USUAL = ({}, {"record_shapes": True})
CLEAN_BLOCKS = 5  # on either side of a recording
MOST_TRACE_BYTES = 3_500_000  # packed, of traces beside the usual one
SETTLE_STEPS = 0  # between a recording and the clean steps after it: a loader has filled its queue meanwhile


def options_of(work: Workload, turn: int) -> dict[str, dict[str, bool]]:
    """The sets of profiler options that a workload is recorded under; the first is the usual one."""
    sets: dict[str, dict[str, bool]] = {
        "shapes" if turn % 2 else "cpu+cuda": USUAL[turn % 2],
        "cuda only": {"device_only": True},
    }
    if work.stack:
        sets["shapes+stack"] = {"record_shapes": True, "with_stack": True}
    return sets


def block_ms(clock: Clock, steps: int) -> float:
    start = time.perf_counter()
    clock.run(steps)
    sync()
    return (time.perf_counter() - start) / steps * 1e3


def record(name: str, turn: int, traces: dict[str, bytes]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    work = WORKLOADS[name]
    work.every = work.every if work.every != 4 else BLOCK
    sets = [(), *((fix,) for fix in work.fixes), *([work.fixes] if len(work.fixes) > 1 else [])]
    clocks: dict[str, Clock] = {}
    failed: dict[str, str] = {}
    for fixes in sets:
        label = "all" if len(fixes) > 1 else fixes[0] if fixes else ""
        torch.manual_seed(0)
        try:
            clock = Clock(work.make(*fixes), work.every)
            clock.run(8)
            sync()
            clocks[label] = clock
        except Exception as error:
            if not fixes:
                raise
            failed[label] = f"{type(error).__name__}: {str(error)[:200]}"
    faulty = clocks[""]
    for clock in clocks.values():
        while clock.count % work.every:
            clock.run(1)
    sync()
    rows: list[dict[str, Any]] = []
    usual = options_of(work, turn)
    for options, settings in usual.items():
        before = statistics.median(block_ms(faulty, work.every) for _ in range(CLEAN_BLOCKS))
        traced, prof = faulty.traced(work.marks, **settings)
        text = exported(prof)
        del prof
        packed = gzip.compress(text, 4)
        if not rows or len(packed) < MOST_TRACE_BYTES:
            traces[f"{name}.{options.replace('+', '_').replace(' ', '_')}.json.gz"] = packed
        faulty.run(SETTLE_STEPS)
        while faulty.count % work.every:
            faulty.run(1)
        sync()
        after = statistics.median(block_ms(faulty, work.every) for _ in range(CLEAN_BLOCKS))
        row = {
            "workload": name,
            "options": options,
            "clean_before_ms": before,
            "traced_ms": traced,
            "clean_after_ms": after,
        }
        rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in (row | counted(text)).items()})
    taken: dict[str, list[float]] = {label: [] for label in clocks}
    until = time.perf_counter() + TURN_S
    while len(taken[""]) < LEAST_ROUNDS or time.perf_counter() < until:
        order = list(clocks) if len(taken[""]) % 2 == 0 else list(clocks)[::-1]
        for label in order:
            taken[label].append(block_ms(clocks[label], work.every))
    clean = statistics.median([*(r["clean_before_ms"] for r in rows), *(r["clean_after_ms"] for r in rows)])
    gains = {label: [a - b for a, b in zip(taken[""], blocks, strict=True)] for label, blocks in taken.items() if label}
    truth = {
        "want": work.want, "note": work.note, "kept": next(iter(usual)), "clean_step_ms": clean,
        "in_turn_ms": {label or "fault": statistics.median(blocks) for label, blocks in taken.items()},
        "gain_ms": {label: statistics.quantiles(values, n=4) for label, values in gains.items()},
        "rounds": len(taken[""]), "failed": failed,
        "peak_bytes": torch.cuda.max_memory_allocated() if GPU else 0,
    }  # fmt: skip
    return rows, truth


def pack(out: Path, parts: Path) -> None:
    """Everything that was recorded so far, as few files."""
    told = [json.loads(p.read_text()) for p in sorted(parts.glob("*.part.json"), key=lambda p: p.stat().st_mtime)]
    rows = [row for part in told for row in part["rows"]]
    truths = {part["name"]: part["truth"] for part in told}
    (out / "truth.json").write_text(json.dumps(truths, indent=1))
    if rows:
        with (out / "overhead.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    write_tars(out, {p.name: p.read_bytes() for p in sorted(parts.glob("*.json.gz"))})


def main() -> None:
    began = float(os.environ.setdefault("RECORDING_BEGAN", str(time.time())))
    out, names = Path(sys.argv[1]), sys.argv[2:] or list(WORKLOADS)
    parts = Path(tempfile.gettempdir()) / "fixes_in_turn"
    for folder in (out, parts):
        folder.mkdir(parents=True, exist_ok=True)
    for turn, name in enumerate(names):
        if time.time() - began > DEADLINE_S:
            print(f"{name:24s} left out: the time is spent", flush=True)
            continue
        start = time.perf_counter()
        traces: dict[str, bytes] = {}
        try:
            made, truth = record(name, list(WORKLOADS).index(name), traces)
            release()
        except Exception as error:
            print(f"{name:24s} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
            # A device that asserted answers nobody in this process any more.
            os.execv(sys.executable, [sys.executable, sys.argv[0], str(out), *names[turn + 1 :]]) if names[
                turn + 1 :
            ] else None
            break
        for file, data in traces.items():
            (parts / file).write_bytes(data)
        (parts / f"{name}.part.json").write_text(json.dumps({"name": name, "rows": made, "truth": truth}))
        gains = {label: [round(v, 2) for v in values] for label, values in truth["gain_ms"].items()}
        traced = {row["options"]: round(row["traced_ms"], 2) for row in made}
        print(
            f"{name:24s} clean {truth['clean_step_ms']:8.2f} ms  traced {traced}  gain {gains} {truth['failed'] or ''}"
            f"  {time.perf_counter() - start:.0f} s",
            flush=True,
        )
        pack(out, parts)  # whoever is stopped keeps what he has
    pack(out, parts)
    print(f"{time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
