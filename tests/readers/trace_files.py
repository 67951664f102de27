"""Small hand-made traces for tests: one training step on one GPU, written as any year would write it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.fact import Note
from stallwise.evidence.timeline import Timeline
from stallwise.readers.native import torch_trace

BASE_US = 1_700_000_000_000_000


def event(name: str, category: str, start_us: float, duration_us: float, **more: Any) -> dict[str, Any]:
    """A complete event; keyword args other than pid and tid go into args."""
    lane = {"pid": more.pop("pid", 100), "tid": more.pop("tid", 100)}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        **lane,
        "ts": BASE_US + start_us,
        "dur": duration_us,
        "args": more,
    }


def launch(correlation: int, start_us: float, kernel: str = "gemm", **more: Any) -> list[dict[str, Any]]:
    """An operator, the runtime call under it and the kernel it launches."""
    return [
        event("aten::mm", "cpu_op", start_us, 20, **{"External id": correlation, "Input Dims": [[8, 4], [4, 2]]}),
        event("cudaLaunchKernel", "cuda_runtime", start_us + 5, 8, correlation=correlation),
        event(kernel, "kernel", start_us + 30, 50, pid=0, tid=7, correlation=correlation, grid=[1, 2, 3], **more),
    ]


def step(number: int = 3, start_us: float = 0.0) -> list[dict[str, Any]]:
    """One step with two kernels."""
    return [
        event(f"ProfilerStep#{number}", "user_annotation", start_us, 200),
        *launch(number * 10, start_us + 10),
        *launch(number * 10 + 1, start_us + 100, kernel="relu"),
    ]


def document(events: list[dict[str, Any]], **head: Any) -> dict[str, Any]:
    """A whole trace, properties first."""
    return {"schemaVersion": 1, **head, "traceEvents": events}


def read_bytes(content: bytes, name: str = "trace.json") -> tuple[Timeline, list[str]]:
    """The timeline of these bytes and the notes beside it."""
    artifact = Artifact(name, content=content)
    assert torch_trace.recognises(artifact.name, artifact.head)
    items = list(torch_trace.read(artifact))
    (timeline,) = [i for i in items if isinstance(i, Timeline)]
    return timeline, [i.text for i in items if isinstance(i, Note)]


def read_document(doc: Any, name: str = "trace.json") -> Timeline:
    """The timeline of this document; nothing may be lost."""
    timeline, notes = read_bytes(json.dumps(doc).encode(), name)
    assert notes == []
    return timeline


def write_trace(path: Path, doc: Any) -> Path:
    """As a file, packed if its name says so."""
    content = json.dumps(doc).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path
