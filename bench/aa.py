"""A/A: trials in which nothing is changed must not show a change. At least 400 blocks; at most 6% of the 90% intervals exclude 1.

    PYTHONPATH=src python3 bench/aa.py [--blocks 400] [--seconds 240] [--step-ms 12]

One training job, on the GPU where there is one; exit 1 where more intervals exclude 1 than that.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ALLOWED = 0.06


def job(seconds: float, step_ms: float) -> None:
    """A stack of layers whose step takes about so long."""
    import torch
    from torch import nn

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1)  # threads that wait for each other on a busy machine are noise of their own
    torch.manual_seed(0)
    width, rows = (2048, 4096) if device == "cuda" else (256, 128)
    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU()))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.randn(rows, width, device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    step()
    began = time.monotonic()
    for _ in range(10):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    times = max(1, round(step_ms / 1e3 / ((time.monotonic() - began) / 10)))
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        for _ in range(times - 1):
            model(x).pow(2).mean().backward()
        step()


def trials(seconds: float, step_ms: float, repeat: int) -> list[dict[str, Any]]:
    """What `try` found of nothing."""
    from stallwise.recorder import autostart
    from stallwise.recorder.launch import launch

    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, __file__, "--job", "--seconds", str(seconds * 1.2 + 20), "--step-ms", str(step_ms)]
        asked = {"only": ["nothing"], "repeat": repeat, "budget_s": seconds, "trace": False}
        launch(line, folder, more={autostart.TRY: json.dumps(asked)})
        found: list[dict[str, Any]] = json.loads((Path(folder) / "trials.json").read_text())["trials"]
        return found


def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--blocks", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--step-ms", type=float, default=12.0)
    parser.add_argument("--repeat", type=int, default=60)
    asked = parser.parse_args()
    if asked.job:
        job(asked.seconds, asked.step_ms)
        return 0
    made = [t for t in trials(asked.seconds, asked.step_ms, asked.repeat) if t.get("pairs") and t.get("ratio_high")]
    wrong = [t for t in made if t["ratio_low"] > 1.0 or t["ratio_high"] < 1.0]
    called = [t for t in made if t["state"] in ("faster", "slower")]
    blocks = sum(2 * t["pairs"] for t in made)
    answer = {"intervals": len(made), "blocks": blocks, "exclude_1": len(wrong), "called_a_difference": len(called),
              "states": [t["state"] for t in made], "ratios": [round(t["ratio"], 4) for t in made]}  # fmt: skip
    print(json.dumps(answer))
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "aa.json").write_text(json.dumps(answer))
    return 0 if blocks >= asked.blocks and len(wrong) <= ALLOWED * len(made) else 1


if __name__ == "__main__":
    sys.exit(main())
