"""A thousand logs at once: memory is bounded by the workers, and progress is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOGS = 1000
LINES = 80
MOST_MB = 400  # of one process; a thousand logs kept whole would take several gigabytes as Python objects


def test_a_thousand_logs_in_bounded_memory(tmp_path: Path) -> None:
    body = "".join(
        f"step {s} loss {3 - s / 1000:.3f} step_time 0.{400 + s % 7}s tokens_per_sec 81000\n" for s in range(LINES)
    )
    for rank in range(LOGS):
        (tmp_path / f"rank{rank}.log").write_text(body)
    code = (
        "import re\n"
        "from stallwise.doctor.gather import gather\n"
        f"evidence = gather([{str(tmp_path)!r}], cache=False, workers=1)\n"
        "peak_kb = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "print(len(evidence.inputs), peak_kb // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    read, peak_mb = map(int, done.stdout.split())
    assert read == LOGS
    assert peak_mb < MOST_MB, f"{peak_mb} MB for {LOGS} logs"
