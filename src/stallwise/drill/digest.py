"""What a colleague would read out of a file that nobody reads as text: a trace's longest items, counters one a line."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter

from stallwise.drill.incident import Exhibit

MOST_LINES = 30
CHARACTERS_A_LINE = 130
LONGEST = 8  # kernels, and as many host ranges
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def digest(exhibit: Exhibit, most_lines: int = MOST_LINES) -> str:
    """For the screen; the whole file lies in the folder of the round."""
    if exhibit.kind == "trace":
        return _trace(exhibit.content)
    if exhibit.kind == "ncu" and exhibit.file.endswith(".csv"):
        return _counters(exhibit.text)
    return _ends(exhibit.text, most_lines)


def _trace(content: bytes) -> str:
    events = json.loads(content)["traceEvents"]
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    lines = [
        "steps as the host saw them, which runs ahead of the device (ms): "
        + ", ".join(f"{e['dur'] / 1e3:.1f}" for e in steps)
    ]
    span = sum(e["dur"] for e in steps)
    busy = sum(e["dur"] for e in events if e["cat"] in _DEVICE)
    lines.append(f"device at work {busy / 1e3:.1f} ms of {span / 1e3:.1f} ms")
    for title, wanted in (
        ("on the device", _DEVICE),
        ("on the host", ("cuda_runtime", "user_annotation", "python_function")),
    ):
        time, count = Counter[str](), Counter[str]()
        for event in events:
            if event["cat"] in wanted and not event["name"].startswith("ProfilerStep#"):
                time[event["name"]] += event["dur"]
                count[event["name"]] += 1
        lines.append(f"{title}, longest first (in all, a step, times in all):")
        lines += [
            f"  {us / 1e3:9.2f} ms {us / 1e3 / max(1, len(steps)):9.2f} ms {count[name]:6d}x  {name}"
            for name, us in time.most_common(LONGEST)
        ]
    return "\n".join(lines)


def _counters(text: str) -> str:
    header, units, *rows = csv.reader(io.StringIO(text))
    lines = []
    for row in rows:
        lines += [
            f"{name:75} {value} {unit}"
            for name, unit, value in zip(header, units, row, strict=True)
            if "__" in name or name in ("Kernel Name", "CC")
        ]
        lines.append("")
    return "\n".join(lines)


def _ends(text: str, most_lines: int) -> str:
    """Both ends of a long file: trouble is often at the last lines."""
    lines = text.splitlines()
    if len(lines) > most_lines:
        half = most_lines // 2
        lines = [*lines[:half], f"... {len(lines) - 2 * half:,} lines more ...", *lines[-half:]]
    short, most = "\n".join(lines), most_lines * CHARACTERS_A_LINE
    return short if len(short) <= 2 * most else f"{short[:most]}\n... cut ...\n{short[-most:]}"
