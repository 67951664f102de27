"""A rank's flight recorder and an engine's /metrics, as torch.distributed and vLLM write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

EDGES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24)


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
