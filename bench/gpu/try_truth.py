"""Is `stallwise try` right? One fp32 GPT-2-like training job; each change tried inside it, and made by hand in its own process.

    PYTHONPATH=src python3 bench/gpu/try_truth.py             # all of it, under six minutes on one H200; exit 1 where it is wrong
    PYTHONPATH=src python3 bench/gpu/try_truth.py --tiny      # the same on any machine with small sizes: does it run at all?

The job writes its attention out (product, mask, softmax, product), has an autocast block with dtype float32, reads the loss and waits
for the device every step. A trial's factor must lie within five percent of the same change made by hand; two hundred blocks in
which nothing is changed must show nothing. Only PyTorch is needed: the trials run on the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HAND = {  # by trial: the switch of the job below
    "bf16-autocast": "bf16",
    "tf32": "tf32",
    "fused-attention": "flash",
    "stale-reads": "nosync",
    "fused-optimizer": "fused",
    "compile": "compile",
}
WITHIN = 0.05
SIZES = {  # layers, width, heads, words, vocabulary, sequences
    "full": (8, 768, 12, 1024, 50304, 8),
    "small": (4, 512, 8, 512, 8192, 8),  # short steps, for many blocks
    "tiny": (2, 64, 4, 64, 256, 4),
}
BLOCKS = 200
WARM_UP_S = 25.0  # of a job, before its trials
LONGER = 1.2  # the last trial may begin shortly before its time is up


def job(change: str, steps: int, size: str, seconds: float) -> None:
    """The training script: `change` is what its author would have changed; 0 steps are as many as the seconds allow."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    layers, width, heads, words, vocabulary, batch = SIZES[size]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    if change == "tf32":
        torch.set_float32_matmul_precision("high")

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("mask", torch.tril(torch.ones(words, words)).view(1, 1, words, words))

        def forward(self, x: Any) -> Any:
            b, t, c = x.size()
            q, k, v = (p.view(b, t, heads, c // heads).transpose(1, 2) for p in self.qkv(x).split(c, dim=2))
            if change == "flash":
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
                att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
                y = F.softmax(att, dim=-1) @ v
            return self.out(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention()
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.one(x))
            return x + self.mlp(self.two(x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(words, width)
            self.blocks, self.last = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.words.weight

        def forward(self, x: Any, y: Any) -> Any:
            h = self.words(x) + self.places(torch.arange(x.size(1), device=x.device))
            for block in self.blocks:
                h = block(h)
            logits = self.head(self.last(h))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), y.reshape(-1))

    model: Any = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if change == "fused" else {}))
    if change == "compile":
        model = torch.compile(model)
    narrow = torch.bfloat16 if change == "bf16" else torch.float32
    context = contextlib.nullcontext() if device == "cpu" and change != "bf16" else torch.autocast(device, dtype=narrow)
    drain = torch.cuda.synchronize if device == "cuda" else lambda: None
    data = torch.randint(0, vocabulary, (16, batch, words + 1), generator=torch.Generator().manual_seed(1)).to(device)

    def step(number: int) -> None:
        tokens = data[number % len(data)]
        with context:
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if change != "nosync":
            loss.item()
            drain()

    number, until_s = 0, time.monotonic() + seconds
    while steps == 0 and time.monotonic() < until_s:
        step(number)
        number += 1
    if steps == 0:
        return
    for number in range(max(5, steps // 4)):
        step(number)
    took: list[float] = []
    each = max(1, steps // 8)
    for _ in range(8):
        drain()
        began = time.perf_counter()
        for number in range(each):
            step(number)
        drain()
        took.append((time.perf_counter() - began) / each)
    print(json.dumps({"change": change, "step_s": statistics.median(took), "chunks_s": took}))


def by_hand(change: str, size: str, steps: int) -> dict[str, Any]:
    """The job with one change, in its own process."""
    line = [sys.executable, __file__, "--job", change, "--steps", str(steps), "--size", size]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise SystemExit(f"the job with {change} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def by_trial(folder: Path, size: str, **asked: Any) -> dict[str, Any]:
    """The job under `stallwise try`: what its trials found."""
    from stallwise.experiment.rehearsal import VARIABLES
    from stallwise.recorder import autostart
    from stallwise.recorder.launch import launch

    line = [sys.executable, __file__, "--job", "none", "--steps", "0", "--size", size]
    line += [
        "--seconds",
        str(LONGER * asked["budget_s"] + WARM_UP_S),
    ]  # a job whose training is left as it is goes on to its own end
    launch(line, str(folder), more={autostart.TRY: json.dumps({"trace": False, **asked}), **VARIABLES})
    file = folder / "trials.json"
    if not file.is_file():
        raise SystemExit("nothing was tried: see " + str(folder / "log.txt"))
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def compared(trials: list[dict[str, Any]], hand: dict[str, float], before_s: float) -> list[dict[str, Any]]:
    """Trial against hand, one row a change."""
    rows = []
    for name, switch in HAND.items():
        trial = next((t for t in trials if t["name"] == name), {"state": "missing"})
        truth = before_s / hand[switch] if switch in hand else None
        ratio = trial.get("ratio")
        off = ratio / truth - 1 if ratio and truth else None
        rows.append({"change": name, "state": trial["state"], "why": trial.get("why", ""), "trial": ratio, "truth": truth,
                     "low": trial.get("ratio_low"), "high": trial.get("ratio_high"), "off": off,
                     "right": off is not None and abs(off) <= WITHIN})  # fmt: skip
    return rows


def nothing_seen(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """How often blocks in which nothing is changed showed something."""
    made = [t for t in trials if t.get("ratio_high") and t.get("ratio_low")]
    wrong = [t for t in made if t["ratio_low"] > 1.0 or t["ratio_high"] < 1.0]
    called = [t for t in made if t["state"] in ("faster", "slower")]
    return {"intervals": len(made), "blocks": sum(2 * t["pairs"] for t in trials if t.get("pairs")),
            "exclude_1": len(wrong), "called_a_difference": len(called)}  # fmt: skip


def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=24, help="of each job by hand, after its warm-up")
    parser.add_argument("--seconds", type=float, default=100.0, help="for the trials")
    parser.add_argument("--tiny", action="store_true", help="small sizes")
    parser.add_argument("--size", choices=list(SIZES), help=argparse.SUPPRESS)
    parser.add_argument("--only", default=",".join(HAND), help="these trials")
    asked = parser.parse_args()
    size = "tiny" if asked.tiny else "full"
    if asked.job:
        job(asked.job, asked.steps, asked.size, asked.seconds)
        return 0
    try:
        import torch
    except ImportError:
        raise SystemExit("needs PyTorch in this interpreter") from None
    if size == "full" and not torch.cuda.is_available():
        raise SystemExit("needs a GPU; --tiny runs without one")
    began = time.monotonic()
    only = [name for name in asked.only.split(",") if name]
    hand: dict[str, float] = {}
    ends = [by_hand("none", size, asked.steps)["step_s"]]
    for name in only:
        hand[HAND[name]] = by_hand(HAND[name], size, asked.steps)["step_s"]
        print(f"{time.monotonic() - began:5.0f} s  by hand {HAND[name]:8} {1e3 * hand[HAND[name]]:8.2f} ms", flush=True)
    ends.append(by_hand("none", size, asked.steps)["step_s"])
    before_s = statistics.fmean(ends)
    print(
        f"{time.monotonic() - began:5.0f} s  as is {1e3 * ends[0]:.2f} ms before, {1e3 * ends[1]:.2f} ms after",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        tried = by_trial(Path(folder) / "try", size, only=only, budget_s=asked.seconds)
        print(f"{time.monotonic() - began:5.0f} s  tried", flush=True)
        repeat = 26 if size == "full" else 3
        small = "small" if size == "full" else size
        same = by_trial(Path(folder) / "same", small, only=["nothing"], repeat=repeat, budget_s=0.45 * asked.seconds)
    rows, aa = compared(tried["trials"], hand, before_s), nothing_seen(same["trials"])
    rows = [row for row in rows if row["change"] in only]
    for row in rows:
        figures = (
            f"{row['trial']:.3f}x ({row['low'] or 0:.3f} to {row['high'] or 0:.3f})" if row["trial"] else row["why"]
        )
        truth = f"{row['truth']:.3f}x by hand" if row["truth"] else ""
        off = f"{100 * row['off']:+.1f}%" if row["off"] is not None else ""
        print(
            f"{row['change']:16} {row['state']:14} {figures:28} {truth:16} {off:7} {'right' if row['right'] else 'WRONG'}"
        )
    print(f"nothing changed: {aa}")
    both = tried.get("together") or {}
    if both.get("ratio"):
        print(
            f"{both['name']}: {both['state']} {both['ratio']:.3f}x, {both['if_independent_ratio']:.3f}x if they added; {both['adds']}"
        )
    print(f"{time.monotonic() - began:.0f} s in all, torch {torch.__version__}")
    out = os.environ.get("OUT")
    if out:
        answer = {
            "size": size,
            "as_is_s": ends,
            "by_hand_s": hand,
            "rows": rows,
            "nothing": aa,
            "tried": tried,
            "same": same,
        }
        Path(out, "try_truth.json").write_text(json.dumps(answer, indent=1))
    seen = aa["blocks"] >= BLOCKS and aa["exclude_1"] <= 0.1 * max(aa["intervals"], 1)
    return 0 if all(row["right"] for row in rows) and (seen or size == "tiny") else 1


if __name__ == "__main__":
    sys.exit(main())
