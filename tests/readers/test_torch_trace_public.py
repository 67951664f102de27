"""Real public traces and our own recordings are read whole: nothing lost, nothing double."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import GPU_KINDS, Kind, Timeline
from stallwise.readers.native import torch_trace
from tests.shared_data import SHARED, shared

TRACES = (
    sorted(p.relative_to(SHARED) for p in SHARED.glob("data/traces/**/*.json.gz"))
    + sorted(p.relative_to(SHARED) for p in SHARED.glob("data/h200/train/*/trace.json.gz"))[::6]
)
NOT_TRACES = {"benchmark_simple_add_et.json.gz"}  # an execution trace: a graph of nodes without times


def timeline_of(path: Path) -> Timeline:
    items = list(torch_trace.read(Artifact(str(path), path)))
    (timeline,) = items  # a note would be a loss
    assert isinstance(timeline, Timeline)
    return timeline


@pytest.mark.shared
@pytest.mark.parametrize("name", TRACES or [None], ids=str)
def test_every_complete_event_of_a_real_trace_is_there(name: Path | None) -> None:
    path = shared(str(name)) if name else shared("data", "traces")
    artifact = Artifact(str(path), path)
    if path.name in NOT_TRACES:
        assert not torch_trace.recognises(path.name, artifact.head)
        return
    assert torch_trace.recognises(path.name, artifact.head)
    document = json.loads(gzip.decompress(path.read_bytes()))
    events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    instants = sum(e.get("cat") == "cpu_instant_event" for e in document["traceEvents"])
    timeline = timeline_of(path)
    assert len(timeline) == len(events) + instants
    gpu = {"kernel", "gpu_memcpy", "gpu_memset"}
    expected_s = sum(e["dur"] for e in events if str(e.get("cat")).lower() in gpu) * 1e-6
    if not any("mtia" in str(e.get("cat")) for e in events):
        assert timeline.duration_s[timeline.rows(*GPU_KINDS)].sum() == pytest.approx(expected_s)
    names = Counter(timeline.names[c] for c in timeline.name.tolist())
    names.pop("[memory]", None)
    assert names == Counter(e["name"] for e in events)


@pytest.mark.shared
def test_ranks_devices_and_groups_are_told_by_the_trace() -> None:
    timeline = timeline_of(shared("data/traces/hta/a100_2rank_nccl_args_rank0.json.gz"))
    assert timeline.scope.rank == 0
    assert timeline.distributed["world_size"] == 2
    assert timeline.devices[0].name == "NVIDIA A100-PG509-200"
    kernels = timeline.rows(Kind.KERNEL)
    assert "allreduce" in timeline.distinct_values("Collective name", kernels)[0]


@pytest.mark.shared
def test_graph_replay_kernels_hang_on_one_launch() -> None:
    timeline = timeline_of(shared("data/traces/tracelens/inference/vllm_decode_full/graph_execution.json.gz"))
    launches = timeline.named(lambda n: "GraphLaunch" in n, timeline.rows(Kind.RUNTIME))
    kernels = timeline.rows(Kind.KERNEL)
    launched = Counter(timeline.correlation[kernels].tolist())
    assert launched[int(timeline.correlation[launches[0]])] > 100
