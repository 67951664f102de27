# ruff: noqa: E501  (lines as the programs print them)
"""What training runs and engines write: Megatron's lines, a loss curve, a flight recorder's dump, vLLM's log and its /metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from stallwise.drill.artifacts.rng import Rng

EDGES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24)
START = "INFO 07-01 09:59:00 [core.py:76] Initializing a V1 LLM engine (v0.15.1) with config: model='{model}', {more}max_num_seqs={cap}\n"


def megatron(step: int, time_ms: float, loss: float = 2.0, grad_norm: float = 1.0, scale: float = 1.0) -> str:
    """One line of Megatron-LM."""
    return (
        f" iteration {step:8d}/  500000 | consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): {time_ms:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {200000 / time_ms:.1f} | learning rate: 1.5E-04 | lm loss: {loss:.6E} | "
        f"loss scale: {scale} | grad norm: {grad_norm:.3f} | number of skipped iterations:   0 |\n"
    )


def smooth_loss(rng: Rng, steps: int = 60) -> str:
    """A loss curve without trouble, as CSV."""
    return "step,loss,grad_norm\n" + "".join(
        f"{i},{2 + 3 * math.exp(-i / 20) + 0.01 * rng.near(1, 1) - 0.01:.4f},{rng.near(0.4, 0.05):.4f}\n"
        for i in range(steps)
    )


def flight_recorder(
    rank: int, ranks: Sequence[int], elements: int, times_ms: Sequence[float], first_ns: int = 10**18
) -> str:
    """Completed all-reduces of one rank, oldest first."""
    entries, at_ns = [], first_ns
    for number, took in enumerate(times_ms):
        entries.append({
            "record_id": number, "pg_id": 0, "process_group": ["0", "data_parallel"], "collective_seq_id": number + 1, "p2p_seq_id": 0,
            "op_id": number + 1, "profiling_name": "nccl:all_reduce", "time_created_ns": at_ns, "duration_ms": round(took, 2),
            "input_sizes": [[elements]], "input_dtypes": ["BFloat16"], "output_sizes": [[elements]], "output_dtypes": ["BFloat16"],
            "state": "completed", "is_p2p": False, "retired": True, "timeout_ms": 600000, "frames": [],
        })  # fmt: skip
        at_ns += 13_400_000_000
    config = {"0": {"name": "0", "desc": "data_parallel", "ranks": str(list(ranks))}}
    last = len(entries)
    status = {
        "0": {"last_enqueued_collective": last, "last_started_collective": last, "last_completed_collective": last}
    }
    return json.dumps({"version": "2.10", "rank": rank, "pg_config": config, "pg_status": status, "entries": entries})


def scrape(model: str, values: Mapping[str, float], times: Mapping[str, tuple[float, int]]) -> str:
    """Levels and counters by name, histograms by name from their mean and count."""
    label = f'{{engine="0",model_name="{model}"}}'
    lines = []
    for name, value in values.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE vllm:{name} {kind}", f"vllm:{name}{label} {value:g}"]
    for name, (mean_s, count) in times.items():
        lines.append(f"# TYPE vllm:{name} histogram")
        for edge in EDGES_S:
            below = round(count * min(1.0, max(0.0, (edge / mean_s - 0.4) / 1.2)))
            lines.append(f'vllm:{name}_bucket{{engine="0",le="{edge}",model_name="{model}"}} {below}')
        lines.append(f'vllm:{name}_bucket{{engine="0",le="+Inf",model_name="{model}"}} {count}')
        lines += [f"vllm:{name}_count{label} {count}", f"vllm:{name}_sum{label} {mean_s * count:g}"]
    return "\n".join(lines) + "\n"


def lines(samples: Iterable[tuple[float, float, float, float, float]], hit: float = 0.0) -> str:
    """(running, waiting, KV %, prompt rate, generation rate)."""
    return "".join(
        f"(APIServer pid=1) INFO 07-01 {10 + i // 360:02d}:{i // 6 % 60:02d}:{i % 6 * 10:02d} [loggers.py:271] Engine 000: Avg prompt throughput: {p:.1f} tokens/s, "
        f"Avg generation throughput: {g:.1f} tokens/s, Running: {r:.0f} reqs, Waiting: {w:.0f} reqs, GPU KV cache usage: {k:.1f}%, Prefix cache hit rate: {hit:.1f}%\n"
        for i, (r, w, k, p, g) in enumerate(samples)
    )
