"""The report of a million-event trace: its size, how soon it opens, and the frames it pans and zooms at in a real Chromium.

    python bench/report_frames.py [TRACE.json.gz] [--events 1000000] [--one-step]

Targets: 3 MB, 30 frames a second by the page's own frame clock. `--one-step` writes a trace in which all events lie in one
step, so that nearly all of them have to be merged.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "src"))
from grow_trace import grow  # noqa: E402

SHARED = Path(os.environ.get("STALLWISE_SHARED", HERE.parents[1] / "shared"))
DEFAULT = SHARED / "data/traces/hta/a100_16rank_rank0.json.gz"
MOST_BYTES = 3_000_000
MOST_FRAME_MS = 1000 / 30 + 0.5  # two ticks of a screen, as clocks round them
FLAGS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--disable-dev-shm-usage"]


def one_step(target: Path, events: int) -> int:
    """One marked step of nested operators, launches and kernels on three streams, with some Python frames."""
    random.seed(1)
    rows: list[dict[str, Any]] = []
    now, free = 0.0, [0.0, 0.0, 0.0]
    for i in range(events // 5):
        took = random.choice((4.0, 6.0, 9.0, 30.0))
        host = {"pid": 1, "tid": 1, "ph": "X"}
        rows.append(
            {**host, "cat": "cpu_op", "name": f"aten::op{i % 60}", "ts": now, "dur": took, "args": {"External id": i}}
        )
        rows.append(
            {**host, "cat": "cpu_op", "name": f"aten::inner{i % 40}", "ts": now + 1, "dur": took - 2, "args": {}}
        )
        rows.append(
            {**host, "cat": "python_function", "name": f"train.py({i % 300}): step", "ts": now, "dur": took, "args": {}}
        )
        call = {
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "ts": now + 1.5,
            "dur": 1.0,
            "args": {"correlation": i + 1},
        }
        rows.append({**host, **call})
        stream = i % 3
        begins = max(now + 5, free[stream])
        lasts = random.choice((2.0, 5.0, 8.0, 40.0))
        free[stream] = begins + lasts
        args = {"stream": 7 + stream, "device": 0, "correlation": i + 1, "External id": i, "grid": [i % 500, 1, 1]}
        kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7 + stream, "name": f"kernel_{i % 200}", "args": args}
        rows.append({**kernel, "ts": begins, "dur": lasts})
        now += took
    end = max(now, *free)
    mark = {"ph": "X", "pid": 1, "tid": 1, "ts": -1.0, "dur": end + 2, "args": {}}
    rows.append({**mark, "cat": "user_annotation", "name": "ProfilerStep#1"})
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": rows}
    with gzip.open(target, "wt", compresslevel=3) as stream_out:
        json.dump(document, stream_out)
    return len(rows)


def report(trace: Path, target: Path) -> None:
    """As the command writes it."""
    from stallwise.doctor.examine import diagnose
    from stallwise.render.html import to_html

    began = time.perf_counter()
    diagnosis = diagnose(str(trace), cache=False)
    judged = time.perf_counter()
    target.write_text(to_html(diagnosis), encoding="utf-8")
    print(f"diagnosed in {judged - began:.1f} s, report in {time.perf_counter() - judged:.2f} s")


def watched(page_file: Path) -> tuple[float, dict[str, float]]:
    """Milliseconds until the timeline stands, and from frame to frame for each gesture."""
    from playwright.sync_api import sync_playwright

    found = os.environ.get("STALLWISE_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(page_file.as_uri())
        page.wait_for_selector("#tl[data-from]")
        stands = page.evaluate("performance.now()")
        page.locator("#tl").scroll_into_view_if_needed()
        frames = {name: page.evaluate(GESTURE, move) for name, move in MOVES.items()}
        browser.close()
    return stands, frames


MOVES = {"pan": ["ArrowRight", "ArrowLeft"], "zoom": ["w", "s"]}
# Presses a key in every frame for three seconds, and gives what the page's own frame clock says.
GESTURE = """async (keys) => {
  const app = document.getElementById("tl");
  app.focus();
  await new Promise((done) => setTimeout(done, 400));
  const began = performance.now();
  for (let k = 0; performance.now() - began < 3000; k++) {
    app.dispatchEvent(new KeyboardEvent("keydown", { key: keys[(k >> 4) % 2], bubbles: true }));
    await new Promise(requestAnimationFrame);
  }
  return app.frameMs();
}"""


def main() -> None:
    """Prints and judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--one-step", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace, page = Path(folder) / "trace.json.gz", Path(folder) / "report.html"
        count = one_step(trace, asked.events) if asked.one_step else grow(asked.source, trace, asked.events)
        report(trace, page)
        size = page.stat().st_size
        stands, frames = watched(page)
    print(f"{count:,} events: report of {size / 1e6:.2f} MB, stands after {stands:.0f} ms")
    for name, took in frames.items():
        print(f"{name}: {took:.1f} ms from frame to frame, {1000 / took:.0f} frames a second")
    if size > MOST_BYTES or max(frames.values()) > MOST_FRAME_MS:
        raise SystemExit("beyond the target")


if __name__ == "__main__":
    main()
