"""Grows a real trace to a wanted size, for speed only: later copies are shifted in time and in every id."""

from __future__ import annotations

import copy
import gzip
import json
import sys
from pathlib import Path
from typing import Any

IDS = ("correlation", "External id", "external id", "Ev Idx", "Sequence number", "Record function id")


def grow(source: Path, target: Path, events: int) -> int:
    """Writes at least this many events in the profiler's own layout; gives the number written."""
    raw = source.read_bytes()
    document = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    rows = [e for e in document.pop("traceEvents") if isinstance(e, dict)]
    names = [e for e in rows if e.get("ph") == "M"]
    body = [e for e in rows if e.get("ph") != "M"]
    span = max(e["ts"] + (e.get("dur") or 0) for e in body if "ts" in e) - min(e["ts"] for e in body if "ts" in e)
    largest = max((int(e["args"][k]) for e in body for k in IDS if k in (e.get("args") or {})), default=0)
    written = 0
    with gzip.open(target, "wb", compresslevel=5) if target.suffix == ".gz" else target.open("wb") as stream:
        stream.write(json.dumps(document, indent=1).encode()[:-2] + b',\n"traceEvents": [\n')
        copies = max(1, -(-(events - len(names)) // len(body)))
        for at in range(copies):
            for e in (*(names if at == 0 else ()), *body):
                stream.write((b",\n" if written else b"") + _laid_out(_moved(e, at, span + 1000, largest + 1)))
                written += 1
        stream.write(b"\n]}\n")
    return written


def _moved(event: dict[str, Any], at: int, span: float, ids: int) -> dict[str, Any]:
    if at == 0:
        return event
    moved = copy.copy(event)
    if "ts" in moved:
        moved["ts"] += at * span
    if isinstance(moved.get("id"), int):
        moved["id"] += at * ids
    args = moved.get("args")
    if isinstance(args, dict):
        moved["args"] = {k: v + at * ids if k in IDS and isinstance(v, int) and v >= 0 else v for k, v in args.items()}
    name = str(moved.get("name"))
    if name.startswith("ProfilerStep#"):
        moved["name"] = f"ProfilerStep#{int(name[13:]) + 1000 * at}"
    return moved


def _laid_out(event: dict[str, Any]) -> bytes:
    head = json.dumps({k: v for k, v in event.items() if k not in ("ts", "dur", "args")})
    times = json.dumps({k: event[k] for k in ("ts", "dur") if k in event})
    text = "  {\n    " + head[1:-1] + (",\n    " + times[1:-1] if len(times) > 2 else "")
    if isinstance(event.get("args"), dict):
        text += ',\n    "args": {\n      ' + json.dumps(event["args"])[1:-1] + "\n    }"
    return (text + "\n  }").encode()


if __name__ == "__main__":
    print(grow(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])), "events")
