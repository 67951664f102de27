"""Lightning's SimpleProfiler report (and look-alikes): actions with their total time and share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import count_of

FORMAT = "Lightning profiler report"
CAPTURE = "Trainer(profiler='simple')"
_ROW = re.compile(
    r"^\|\s+(.+?)\s*\|\s*([\d.e-]+|-)\s*\|\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*\|\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*\|\s*([\d.]+)\s*%?\s*\|"
)
_LOADER = re.compile(
    r"dataloader_next|fetch_next_batch|data_fetch|get_train_batch|load_batch|next_batch|dataloader", re.I
)
_SYNC = re.compile(r"synchroni[sz]e|\.item\b|to_host", re.I)
_DEVICE = re.compile(r"gpu_compute|device_compute|cuda_compute", re.I)
_NESTED = re.compile(r"run_training_epoch|run_training_batch|optimizer_step|backward|training_step|forward", re.I)
_WRAPPER = re.compile(r"run_training_epoch|fit_loop|\bfit\b|on_run", re.I)


def recognises(name: str, head: bytes) -> bool:
    """Its title and its columns."""
    return b"Profiler Report" in head[:65536] and b"Mean duration" in head[:65536]


def read(artifact: Artifact) -> Iterator[Item]:
    """The share of wall time in loading, in synchronisation, and in nothing that was timed."""
    total_s, timed, device = 0.0, 0.0, 0.0
    batch_timed = False
    for number, text in enumerate(artifact.lines(), 1):
        match = _ROW.match(text)
        if not match:
            continue
        name, calls, seconds = match[1], float(match[3]), float(match[4])
        source = Source(artifact.name, f"line {number}")
        if name == "Total":
            total_s = seconds
            continue
        if not total_s or _WRAPPER.search(name):
            continue
        share = seconds / total_s
        if _LOADER.search(name):
            yield Fact(run.DATA_SHARE, share, source, samples=count_of(calls))
            yield Fact(run.DATA_TIME, seconds / max(calls, 1.0), source, samples=count_of(calls))
            timed += share
        elif _SYNC.search(name):
            yield Fact(run.SYNC_SHARE, share, source, samples=count_of(calls))
            timed += share
        elif _DEVICE.search(name):
            device += share
            timed += share
        elif _NESTED.search(name):
            if "run_training_batch" in name:  # holds the inner actions, which repeat its time
                batch_timed = True
                timed += share
            elif not batch_timed:
                timed += share
        else:
            timed += share
    source = Source(artifact.name)
    if device:
        yield Fact(run.DEVICE_SHARE, device, source)
    if total_s:
        yield Fact(run.HOST_UNEXPLAINED_SHARE, max(0.0, 1.0 - timed), source)
