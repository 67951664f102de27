"""What recording costs a real training step on a GPU, and whether its stage times agree with the profiler's.

    python bench/gpu/overhead.py            # about five minutes; prints a table and writes JSON to stdout's last line

Each variant runs in processes of its own, in turn (off, spans, auto, off, spans, auto, ...), so that clocks and neighbours hit
all alike. The models are those of the project's H200 data: a GPT of 545 M parameters (59 ms a step, GPU-bound) and one of 72 M
at batch 1 with one optimizer kernel per tensor (29 ms a step, launch-bound).
"""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

SHAPES = {
    "healthy": {"layers": 8, "d": 2048, "h": 16, "ff": 5632, "batch": 8, "seq": 1024, "fused": True},
    "launch-bound": {"layers": 12, "d": 512, "h": 8, "ff": 1408, "batch": 1, "seq": 256, "fused": False},
}
VOCAB = 32768
STEPS = 60
ROUNDS = 4


def build(shape: dict[str, Any]) -> Any:
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self, d: int, h: int, ff: int) -> None:
            super().__init__()
            self.h = h
            self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
            self.up, self.down = nn.Linear(d, 2 * ff, bias=False), nn.Linear(ff, d, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            b, s, d = x.shape
            q, k, v = self.qkv(self.n1(x)).view(b, s, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, s, d))
            gate, up = self.up(self.n2(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(VOCAB, shape["d"])
            self.blocks = nn.ModuleList(Block(shape["d"], shape["h"], shape["ff"]) for _ in range(shape["layers"]))
            self.head = nn.Linear(shape["d"], VOCAB, bias=False)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    return Gpt().cuda()


def child(which: str, mode: str) -> None:
    import torch
    import torch.nn.functional as F
    from torch.profiler import record_function

    import stallwise

    shape = SHAPES[which]
    model = build(shape)
    fused = shape["fused"]
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused, foreach=None if fused else False)
    ids = torch.randint(0, VOCAB, (64, shape["batch"], shape["seq"] + 1))
    loader = torch.utils.data.DataLoader(ids.repeat(8, 1, 1), batch_size=None, num_workers=1, pin_memory=True)
    folder = tempfile.mkdtemp()
    if mode != "off":
        stallwise.start(folder, auto=mode == "auto")

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        with record_function(f"stage::{name}"), stallwise.span(name):
            yield

    timed = {"agree": stage, "spans": stallwise.span}.get(mode, lambda name: nullcontext())
    batches = iter(loader)

    def step() -> None:
        with timed("batch_wait"):
            batch = next(batches)
        batch = batch.to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with timed("forward"), torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(batch[:, :-1]).float().flatten(0, 1), batch[:, 1:].flatten())
        with timed("backward"):
            loss.backward()
        with timed("optimizer"):
            optimizer.step()
        if mode in ("spans", "agree"):
            stallwise.step()

    for _ in range(15):
        step()
    torch.cuda.synchronize()
    if mode == "agree":
        print(json.dumps(agreement(step, folder)))
        return
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    print(json.dumps({"step_s": (time.perf_counter() - begin) / STEPS}))


def agreement(step: Any, folder: str) -> dict[str, Any]:
    """Stage seconds by our events against the profiler's device-side ranges, over the same steps."""
    import torch

    import stallwise
    from stallwise.readers.records.rank_record import parse

    recorder = stallwise.recording()
    assert recorder is not None
    first = recorder.number
    with torch.profiler.profile() as prof:
        for _ in range(6):
            step()
    torch.cuda.synchronize()
    step()
    torch.cuda.synchronize()
    stallwise.stop()
    record = parse(next(Path(folder).glob("*.jsonl")).read_text().splitlines())
    path = Path(folder) / "trace.json.gz"
    prof.export_chrome_trace(str(path))
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    result: dict[str, Any] = {}
    seen = device_stages(events)
    for stage in ("forward", "backward", "optimizer"):
        spans = seen[stage]
        ours = [record.device_s[n][stage] for n in range(first + 1, first + 6) if stage in record.device_s.get(n, {})]
        host = [
            record.host_s[i][stage]
            for i, n in enumerate(record.step)
            if first < n < first + 6 and stage in record.host_s[i]
        ]
        result[stage] = {
            "profiler_s": statistics.median(spans[1:]) if len(spans) > 1 else None,
            "events_s": statistics.median(ours) if ours else None,
            "host_s": statistics.median(host) if host else None,
        }
    return result


def device_stages(events: list[dict[str, Any]]) -> dict[str, list[float]]:
    """What an ideal event pair would show: from the last kernel before a stage to the last kernel launched in it."""
    kernels = {
        e["args"]["correlation"]: e["ts"] + e["dur"]
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "correlation" in e.get("args", {})
    }
    launches = sorted(
        (e["ts"], kernels[e["args"]["correlation"]])
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and e.get("args", {}).get("correlation") in kernels
    )
    found: dict[str, list[float]] = {}
    ranges = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("stage::")]
    for e in sorted(ranges, key=lambda e: e["ts"]):
        before = max((end for ts, end in launches if ts < e["ts"]), default=e["ts"])
        inside = max((end for ts, end in launches if ts < e["ts"] + e["dur"]), default=before)
        # Where the device has caught up, the stage begins when the host does.
        found.setdefault(e["name"][7:], []).append((inside - max(before, e["ts"])) / 1e6)
    return found


def run(which: str, mode: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, which, mode], capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr[-800:]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def main() -> None:
    table: dict[str, Any] = {}
    for which in SHAPES:
        times: dict[str, list[float]] = {"off": [], "spans": [], "auto": []}
        for _ in range(ROUNDS):
            for mode in times:
                answer = run(which, mode)
                if "step_s" not in answer:
                    print(which, mode, answer)
                    continue
                times[mode].append(answer["step_s"])
        base = statistics.median(times["off"])
        spread = (max(times["off"]) - min(times["off"])) / base
        print(f"{which:14s} off {base * 1e3:7.2f} ms (spread {spread:.2%})", end="")
        for mode in ("spans", "auto"):
            cost = statistics.median(times[mode]) / base - 1
            print(f"   {mode} {cost:+.2%}", end="")
        print(flush=True)
        table[which] = times
        table[f"{which} agreement"] = run(which, "agree")
        print(json.dumps(table[f"{which} agreement"], indent=1), flush=True)
    print(json.dumps(table))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], sys.argv[2])
    else:
        main()
