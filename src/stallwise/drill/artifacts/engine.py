# ruff: noqa: E501  (lines as the engine prints them)
"""vLLM's own log: a start line and one line every ten seconds."""

from __future__ import annotations

from collections.abc import Iterable

START = "INFO 07-01 09:59:00 [core.py:76] Initializing a V1 LLM engine (v0.15.1) with config: model='{model}', max_num_seqs={cap}\n"


def lines(samples: Iterable[tuple[float, float, float, float, float]], hit: float = 0.0) -> str:
    """(running, waiting, KV %, prompt rate, generation rate)."""
    return "".join(
        f"(APIServer pid=1) INFO 07-01 {10 + i // 360:02d}:{i // 6 % 60:02d}:{i % 6 * 10:02d} [loggers.py:271] Engine 000: Avg prompt throughput: {p:.1f} tokens/s, "
        f"Avg generation throughput: {g:.1f} tokens/s, Running: {r:.0f} reqs, Waiting: {w:.0f} reqs, GPU KV cache usage: {k:.1f}%, Prefix cache hit rate: {hit:.1f}%\n"
        for i, (r, w, k, p, g) in enumerate(samples)
    )
