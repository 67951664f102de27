"""Memory snapshots: nothing in them is executed, bombs stay small, layouts of other versions are read."""

from __future__ import annotations

import gzip
import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import pytest

from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import memory as m
from stallwise.readers.native import memory_snapshot
from tests.shared_data import shared

SEGMENT = {
    "device": 0,
    "address": 4096,
    "total_size": 2 << 20,
    "allocated_size": 1 << 20,
    "segment_type": "large",
    "blocks": [],
}


class Attack:
    """Would run a command when unpickled the ordinary way."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch {self.flag}",))


def read(data: bytes) -> list[Any]:
    artifact = Artifact("snap.pickle", content=data)
    return list(memory_snapshot.read(artifact))


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path, protocol: int) -> None:
    flag = tmp_path / "ran"
    data = pickle.dumps({"segments": [Attack(flag)], "device_traces": []}, protocol)
    with pytest.raises(StallwiseError):
        read(data)
    assert not flag.exists()


def test_a_global_without_a_call_is_refused() -> None:
    with pytest.raises(StallwiseError):
        read(pickle.dumps({"segments": [os.path.join], "device_traces": []}))


def test_a_memo_that_unfolds_a_billion_times_is_refused() -> None:
    value: list[Any] = [{"segments": "lol"}]
    for _ in range(40):
        value = [value, value]
    with pytest.raises(StallwiseError):
        read(pickle.dumps({"segments": value, "device_traces": []}, 2))


@pytest.mark.parametrize("cut", [1, 10, 100, 1000])
def test_a_cut_file_gets_a_sentence(cut: int) -> None:
    data = pickle.dumps({"segments": [SEGMENT] * 50, "device_traces": [[]]}, 4)
    with pytest.raises(StallwiseError):
        read(data[: len(data) - min(cut, len(data) - 2)])


def test_wrong_layouts_get_a_sentence() -> None:
    for value in ({"segments": 7}, {"segments": [{"device": "x"}]}, {"segments": [1, 2]}, {"other": 1}, [1, 2]):
        with pytest.raises(StallwiseError):
            read(pickle.dumps(value))


def trace() -> list[dict[str, Any]]:
    step = [{"name": "step", "filename": "/x/torch/optim/adamw.py", "line": 5}]
    forward = [{"name": "forward", "filename": "model.py", "line": 9}]
    grads = [{"name": "torch::autograd::AccumulateGrad::apply", "filename": "??", "line": 0},
             {"name": "torch::autograd::Engine::thread_main", "filename": "??", "line": 0}]  # fmt: skip
    return [
        {"action": "segment_alloc", "addr": 4096, "size": 8 << 20, "frames": []},
        {"action": "alloc", "addr": 4096, "size": 3 << 20, "frames": forward},
        {"action": "alloc", "addr": 4096 + (3 << 20), "size": 1 << 20, "frames": grads},
        {"action": "free_completed", "addr": 4096, "size": 3 << 20, "frames": []},
        {"action": "alloc", "addr": 4096, "size": 2 << 20, "frames": step},
        {"action": "oom", "size": 4 << 20, "device_free": 0, "frames": step},
    ]  # fmt: skip


def test_the_record_is_undone_to_the_moment_of_failure() -> None:
    blocks = [
        {"address": 4096, "size": 2 << 20, "state": "active_allocated", "frames": []},
        {"address": 4096 + (2 << 20), "size": 1 << 20, "state": "inactive", "frames": []},
        {"address": 4096 + (3 << 20), "size": 1 << 20, "state": "active_allocated", "frames": []},
        {"address": 4096 + (4 << 20), "size": 4 << 20, "state": "inactive", "frames": []},
    ]
    segment = SEGMENT | {"total_size": 8 << 20, "blocks": blocks}
    items = read(pickle.dumps({"segments": [segment], "device_traces": [trace()]}))
    facts = {i.quantity.name: i.value for i in items if hasattr(i, "quantity") and hasattr(i, "value")}
    assert facts[m.OPTIMIZER.name] == 2 << 20
    assert facts[m.GRADIENTS.name] == 1 << 20
    assert facts[m.LARGEST_HOLE.name] == 4 << 20
    assert facts[m.PHASE.name] == "optimizer"


def test_each_recorded_peak_is_explained_to_95_percent() -> None:
    for stem in ("oom_activations_seq", "oom_logits", "oom_fragmentation"):
        path = shared("data", "h200", "memory", f"{stem}.pickle.gz")
        items = read(gzip.decompress(path.read_bytes()))
        facts = {i.quantity.name: i.value for i in items if hasattr(i, "quantity") and hasattr(i, "value")}
        assert facts[m.UNEXPLAINED.name] <= 0.05 * facts[m.PEAK.name]
        parts = [q.name for q in (m.WEIGHTS, m.GRADIENTS, m.OPTIMIZER, m.ACTIVATIONS, m.LOGITS, m.TEMPORARY, m.OTHER)]
        assert sum(facts[p] for p in parts) >= 0.95 * facts[m.PEAK.name]


def test_the_fixture_is_really_a_pickle_without_imports() -> None:
    path = Path(__file__).parents[1] / "fixtures" / "memory" / "oom_logits.pickle.gz"
    names = {op.name for op, _, _ in pickletools.genops(gzip.decompress(path.read_bytes()))}
    assert not names & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "INST", "OBJ", "NEWOBJ"}
