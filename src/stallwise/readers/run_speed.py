"""How long whole runs took on how many GPUs, where a log states both: progress bars, train_runtime, launch lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._cells import whole_of

FORMAT = "run speed"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter

GPUS = (
    re.compile(r"world[_ ]size\s*[=:]\s*(\d+)"),
    re.compile(r"nproc[_-]per[_-]node[= ]+(\d+)"),
    re.compile(r"Num (?:GPUs|processes|devices)[^\d]{0,20}(\d+)", re.IGNORECASE),
    re.compile(r"nranks (\d+)"),
)
VISIBLE = re.compile(r"CUDA_VISIBLE_DEVICES=([\d,]+)")
PER_STEP = re.compile(r"(?<![\d.])(\d{1,12}(?:\.\d+)?)(s/it|it/s)\b")
RUNTIME = re.compile(r"train_runtime'?\"?\s*[:=]\s*(\d+(?:\.\d+)?)")
P2P_OFF = re.compile(r"NCCL_P2P_DISABLE(?:=| set (?:by environment )?to )1")
DATA_PARALLEL = re.compile(r"nn\.DataParallel\b")


def recognises(name: str, head: bytes) -> bool:
    """A number of GPUs and a speed."""
    text = head.decode("utf-8", errors="replace")
    sized = any(p.search(text) for p in GPUS) or VISIBLE.search(text) is not None
    return b"\x00" not in head[:4096] and sized and (PER_STEP.search(text) or RUNTIME.search(text)) is not None


def _tells(line: str) -> bool:
    return any(p.search(line) for p in (*GPUS, VISIBLE, PER_STEP, RUNTIME, DATA_PARALLEL)) or "NCCL_P2P_DISABLE" in line


def read(artifact: Artifact) -> Iterator[Item]:
    """Table run.speed with one row."""
    gpus, visible, runtime, p2p_off, data_parallel = 0, 0, float("nan"), False, False
    steps: list[float] = []
    text = artifact.skeletons
    for line in (text.lines[at][:LONGEST] for at in text.lines_of(text.where(_tells))):
        if not gpus:
            gpus = next((whole_of(m[1]) or 0 for p in GPUS if (m := p.search(line))), 0)
        if match := VISIBLE.search(line):
            visible = len([d for d in match[1].split(",") if d])
        p2p_off = p2p_off or P2P_OFF.search(line) is not None
        data_parallel = data_parallel or DATA_PARALLEL.search(line) is not None
        if match := RUNTIME.search(line):
            runtime = float(match[1])
        for number, unit in PER_STEP.findall(line):
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
