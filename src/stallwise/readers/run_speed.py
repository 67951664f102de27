"""How long whole runs took on how many GPUs, where a log states both: progress bars, train_runtime, launch lines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._cells import whole_of
from stallwise.readers._patterns import entries, patterns

FORMAT = "run speed"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter
_P = patterns("run_speed")
GPUS = [_P[name] for name, entry in entries("run_speed").items() if entry.get("gpus")]


def recognises(name: str, head: bytes) -> bool:
    """A number of GPUs and a speed."""
    text = head.decode("utf-8", errors="replace")
    sized = any(p.search(text) for p in GPUS) or _P["visible"].search(text) is not None
    return (
        b"\x00" not in head[:4096] and sized and (_P["per_step"].search(text) or _P["runtime"].search(text)) is not None
    )


def _tells(line: str) -> bool:
    return any(p.search(line) for p in _P.values())


def read(artifact: Artifact) -> Iterator[Item]:
    """Table run.speed with one row."""
    gpus, visible, runtime, p2p_off, data_parallel = 0, 0, float("nan"), False, False
    steps: list[float] = []
    text = artifact.skeletons
    for line in (text.lines[at][:LONGEST] for at in text.lines_of(text.where(_tells))):
        if not gpus:
            gpus = next((whole_of(m[1]) or 0 for p in GPUS if (m := p.search(line))), 0)
        if match := _P["visible"].search(line):
            visible = len([d for d in match[1].split(",") if d])
        p2p_off = p2p_off or _P["p2p_off"].search(line) is not None
        data_parallel = data_parallel or _P["data_parallel"].search(line) is not None
        if match := _P["runtime"].search(line):
            runtime = float(match[1])
        for number, unit in _P["per_step"].findall(line):
            if float(number) > 0:
                steps.append(float(number) if unit == "s/it" else 1 / float(number))
    gpus = gpus or visible
    if gpus and (steps or runtime == runtime):
        columns = {
            "gpus": np.array([gpus]),
            "step_s": np.array([float(np.median(steps)) if steps else np.nan]),
            "runtime_s": np.array([runtime]),
            "p2p_off": np.array([p2p_off]),
            "data_parallel": np.array([data_parallel]),
        }
        yield Table("run.speed", columns, Source(artifact.name))
