"""Whether a user's spans agree with the profiler's kernels, and what recording them costs: GPT-2 small on one GPU.

    PYTHONPATH=src python3 bench/gpu/span_truth.py                      # one GPU, under two minutes
    PYTHONPATH=src python3 bench/gpu/span_truth.py --device cpu --small # the same code on a CPU, some seconds

Three runs of the same steps with spans around forward, backward and optimizer: under the recorder alone, under PyTorch's
profiler alone, and under both. The profiler's figure of a stage is taken from the kernels that were launched inside its range
(by correlation id): `busy` is the union of their intervals, `kernels` goes from the end of the last kernel that was launched
before the range to the end of the last one launched in it, which is what a pair of events around the range can see. A stage
agrees when the recorder is within 3% of `kernels`. Stages and the rest add up to the step, on the device and on the host.
The cost is that of recorder_overhead.py: blocks of steps with and without in turn. With $OUT set, the table is written there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recorder_overhead import BLOCK_S, FEWEST, WARM_STEPS, middle, without_hiccups

STAGES = ("forward", "backward", "optimizer")
WITHIN = 0.03  # of the profiler's kernels: what the project promises
AT_LEAST_S = 1e-3  # or so much: a stage of one millisecond is no subject of percents
PREFIX = "stage::"
GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver")
# Batch and tokens: the first is about 60 ms of an H200's own work in bf16, the second leaves the device waiting for launches.
SHAPES = {"compute-bound": (32, 1024), "launch-bound": (1, 128)}
SMALL_SHAPES = {"compute-bound": (4, 64), "launch-bound": (1, 16)}

Step = Callable[[], None]


def gpt2(small: bool) -> Any:
    """GPT-2 small with random weights, called with ids and labels, answering with an object that has a loss."""
    import torch

    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return _stand_in(small)
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_embd": 128, "n_head": 4, "vocab_size": 1000, "n_positions": 256} if small else {}
    return GPT2LMHeadModel(GPT2Config(**sizes, use_cache=False))


def _stand_in(small: bool) -> Any:
    """The same shape in PyTorch's own modules, where transformers is not installed."""
    from types import SimpleNamespace

    import torch
    from torch import nn

    width, heads, layers, vocabulary = (128, 4, 2, 1000) if small else (768, 12, 12, 50257)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            block = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, norm_first=True)
            self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> SimpleNamespace:
            logits = self.head(self.blocks(self.embed(input_ids)))
            return SimpleNamespace(loss=nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()))

    torch.manual_seed(0)
    return Model()


class Job:
    """A training step with spans, and the same ranges for the profiler where they are wanted."""

    def __init__(self, device: str, shape: tuple[int, int], small: bool) -> None:
        import torch

        self.device = device
        self.model = gpt2(small).to(device)
        fused = device == "cuda" and shape[0] > 1  # the launch-bound one has a kernel per tensor
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-5, fused=fused, foreach=None if fused else False
        )
        self.ids = torch.randint(0, 1000, shape, device=device)
        self.ranges = False

    def step(self) -> None:
        """One step; nothing in it waits for the device."""
        import contextlib

        import torch

        import stallwise

        def stage(name: str) -> Any:
            return torch.profiler.record_function(PREFIX + name) if self.ranges else contextlib.nullcontext()

        precision = torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.device == "cuda")
        with stage("forward"), stallwise.span("forward"), precision:
            loss = self.model(input_ids=self.ids, labels=self.ids).loss
        with stage("backward"), stallwise.span("backward"):
            loss.backward()
        with stage("optimizer"), stallwise.span("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        stallwise.step()

    def drain(self) -> None:
        """Until the device has done all."""
        import torch

        if self.device == "cuda":
            torch.cuda.synchronize()


def recorded(job: Job, count: int, warm: int = 8) -> dict[str, Any]:
    """Milliseconds a step by the recorder, medians over `count` steps; the device's where there is one."""
    import stallwise
    from stallwise.readers.records.rank_record import parse

    folder = tempfile.mkdtemp()
    stallwise.start(folder)
    for _ in range(warm + count):
        job.step()
    job.drain()
    job.step()  # its end reads the events of those before
    job.drain()
    stallwise.stop()
    record = parse(next(Path(folder).glob("rank-*.jsonl")).read_bytes().splitlines())
    kept = range(warm, warm + count)
    host = [(record.duration_s[n], record.host_s[n]) for n in kept]
    device = [record.device_s[n] for n in kept if n in record.device_s]
    step_of = record.device_duration_s
    return {
        "stamped_steps": len(device),
        "first_stamped": sorted(record.device_s)[:8],
        "host_step_ms": _ms([d for d, _ in host]),
        "host_ms": {name: _ms([s.get(name, 0.0) for _, s in host]) for name in STAGES},
        "host_rest_ms": _ms([d - sum(s.values()) for d, s in host]),
        "device_step_ms": _ms([step_of[n] for n in kept if n in step_of]),
        "device_ms": {name: _ms([s.get(name, 0.0) for s in device]) for name in STAGES} if device else {},
        "most_of_a_step_covered": max((sum(s.values()) / d for d, s in host), default=0.0),
        "most_of_a_device_step_covered": max(
            (sum(record.device_s[n].values()) / step_of[n] for n in kept if step_of.get(n)), default=0.0
        ),
    }


def profiled(job: Job, count: int, warm: int = 3) -> dict[str, Any]:
    """Milliseconds a step by PyTorch's profiler."""
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU]
    if job.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    job.ranges = True
    try:
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(warm + count):
                job.step()
            job.drain()
    finally:
        job.ranges = False
    path = Path(tempfile.mkdtemp()) / "trace.json.gz"
    profiler.export_chrome_trace(str(path))
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    ranges = [e for e in events if e.get("cat") == "user_annotation" and str(e["name"]).startswith(PREFIX)]
    if job.device != "cuda":
        took = {name: [e["dur"] / 1e6 for e in ranges if e["name"] == PREFIX + name][warm:] for name in STAGES}
        return {"kernels_ms": {name: _ms(values) for name, values in took.items()}, "busy_ms": {}}
    return _kernels(events, ranges, warm)


def _kernels(events: list[dict[str, Any]], ranges: list[dict[str, Any]], warm: int) -> dict[str, Any]:
    """By stage: the union of the kernels launched inside its ranges, and the device's time from one stage's end to its own."""
    done = {e["args"]["correlation"]: e for e in events if e.get("cat") in GPU_WORK and "args" in e}
    launches = [e for e in events if e.get("cat") in LAUNCHES and e.get("args", {}).get("correlation") in done]
    launches.sort(key=lambda e: e["ts"])
    times = [e["ts"] for e in launches]
    kernels = [done[e["args"]["correlation"]] for e in launches]
    busy: dict[str, list[float]] = {name: [] for name in STAGES}
    whole: dict[str, list[float]] = {name: [] for name in STAGES}
    ends = [kernel["ts"] + kernel["dur"] for kernel in kernels]
    for at in range(1, len(ends)):
        ends[at] = max(ends[at], ends[at - 1])
    for found in sorted(ranges, key=lambda e: e["ts"]):
        first, last = bisect_left(times, found["ts"]), bisect_left(times, found["ts"] + found["dur"])
        if first == last:
            continue
        before = max(ends[first - 1], found["ts"]) if first else found["ts"]
        name = found["name"][len(PREFIX) :]
        whole[name].append((ends[last - 1] - before) / 1e6)
        busy[name].append(_union(kernels[first:last]) / 1e6)
    return {
        "kernels_ms": {name: _ms(values[warm:]) for name, values in whole.items()},
        "busy_ms": {name: _ms(values[warm:]) for name, values in busy.items()},
    }


def _union(kernels: list[dict[str, Any]]) -> float:
    total, until = 0.0, float("-inf")
    for kernel in sorted(kernels, key=lambda e: e["ts"]):
        end = kernel["ts"] + kernel["dur"]
        total += max(end - max(kernel["ts"], until), 0.0)
        until = max(until, end)
    return total


def _ms(seconds: list[float]) -> float | None:
    return round(statistics.median(seconds) * 1e3, 4) if seconds else None


def agreement(job: Job, count: int, traced: int) -> dict[str, Any]:
    """Stage by stage, apart and over the same steps."""
    import stallwise

    alone = recorded(job, count)
    kernels = profiled(job, traced)
    folder = tempfile.mkdtemp()
    stallwise.start(folder, stacks=False)
    both_kernels = profiled(job, traced)
    job.step()
    job.drain()
    stallwise.stop()
    from stallwise.readers.records.rank_record import parse

    record = parse(next(Path(folder).glob("rank-*.jsonl")).read_bytes().splitlines())
    ours = [record.device_s[n] for n in sorted(record.device_s)][3:] or record.host_s[3:-1]
    both = {name: _ms([s.get(name, 0.0) for s in ours]) for name in STAGES}
    rows = []
    for name in STAGES:
        mine = (alone["device_ms"] or alone["host_ms"])[name]
        theirs = kernels["kernels_ms"][name]
        rows.append(
            {
                "stage": name, "recorder_ms": mine, "profiler_ms": theirs, "busy_ms": kernels["busy_ms"].get(name),
                "difference": _difference(mine, theirs), "recorder_traced_ms": both[name],
                "profiler_traced_ms": both_kernels["kernels_ms"][name],
                "difference_traced": _difference(both[name], both_kernels["kernels_ms"][name]),
                "agrees": _agrees(mine, theirs),
            }
        )  # fmt: skip
    return {"rows": rows, "alone": alone, "agrees": all(row["agrees"] for row in rows)}


def _difference(mine: float | None, theirs: float | None) -> float | None:
    return round(mine / theirs - 1.0, 4) if mine and theirs else None


def _agrees(mine: float | None, theirs: float | None) -> bool:
    return bool(mine and theirs and abs(mine - theirs) <= max(WITHIN * theirs, AT_LEAST_S * 1e3 * WITHIN))


def cost(job: Job, seconds: float) -> dict[str, Any]:
    """What recording with spans, hooks and stacks adds to a step: blocks with and without it in turn."""
    import stallwise

    def block(count: int) -> list[float]:
        for _ in range(WARM_STEPS):
            job.step()
        job.drain()
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            job.step()
            job.drain()
            times.append(time.perf_counter() - begin)
        return times

    count = max(int(BLOCK_S / statistics.median(block(5))), FEWEST)
    chance, ratios, off = random.Random(1), [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until or not ratios:
        times: dict[bool, list[float]] = {True: [], False: []}
        first = chance.random() < 0.5
        for on in (first, not first, not first, first):
            if on:
                stallwise.start(tempfile.mkdtemp())
            times[on] += block(count)
            if on:
                stallwise.stop()
        ratios.append(without_hiccups(times[True], times[False]) - 1.0)
        off.append(statistics.median(times[False]))
    share, low, high = middle(ratios)
    return {
        "step_ms": round(statistics.median(off) * 1e3, 3), "cost_share": round(share, 5), "low": round(low, 5),
        "high": round(high, 5), "quads": len(ratios), "steps_a_block": count,
    }  # fmt: skip


def show(which: str, found: dict[str, Any]) -> None:
    """The table of one step."""
    took = found["cost"]
    share, low, high = (f"{took[name]:+.2%}" for name in ("cost_share", "low", "high"))
    print(f"{which}: a step of {took['step_ms']} ms, recording costs {share} ({low} to {high})")
    columns = (
        "recorder_ms",
        "profiler_ms",
        "busy_ms",
        "difference",
        "recorder_traced_ms",
        "profiler_traced_ms",
        "difference_traced",
    )
    print(f"  {'stage':10}" + "".join(f"{name:>20}" for name in columns))
    for row in found["rows"]:
        cells = ["-" if row[n] is None else f"{row[n]:.2%}" if "difference" in n else f"{row[n]:.3f}" for n in columns]
        print(
            f"  {row['stage']:10}" + "".join(f"{cell:>20}" for cell in cells) + ("" if row["agrees"] else "   DIFFERS")
        )
    print(f"  {json.dumps(found['alone'])}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options.add_argument("--small", action="store_true", help="a model of some thousand weights and few steps")
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--seconds", type=float, nargs=2, default=(25.0, 25.0), help="of the two cost measurements")
    chosen = options.parse_args()
    import torch

    if chosen.device == "cpu":
        torch.set_num_threads(1)  # a busy machine of few cores makes threads wait for one another
    shapes = SMALL_SHAPES if chosen.small else SHAPES
    seconds = (2.0, 2.0) if chosen.small else chosen.seconds
    count = min(chosen.steps, 12) if chosen.small else chosen.steps
    table: dict[str, Any] = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if chosen.device == "cuda" else "cpu",
    }
    for (which, shape), for_s in zip(shapes.items(), seconds, strict=True):
        job = Job(chosen.device, shape, chosen.small)
        for _ in range(8):
            job.step()
        job.drain()
        found = agreement(job, count, 8)
        found["cost"] = cost(job, for_s)
        table[which] = found
        show(which, found)
        del job
    print(json.dumps(table))
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "span_truth.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
