"""What is noted of memory beside the steps."""

from __future__ import annotations

import multiprocessing
from types import SimpleNamespace

import pytest

from stallwise.recorder import memory_account
from stallwise.recorder.memory_account import EVERY_STEPS, MemoryAccount

MIB = 1 << 20


class Recorder:
    def __init__(self, device: object = None) -> None:
        self.device = device
        self.seen: dict[str, float] = {}

    def gauge(self, name: str, value: float) -> None:
        self.seen[name] = float(value)


def hold(ready: object, leave: object) -> None:
    kept = b"x" * (64 * MIB)
    ready.set()  # type: ignore[attr-defined]
    leave.wait(60)  # type: ignore[attr-defined]
    del kept


def test_children_count_with_the_process_and_only_every_so_many_steps() -> None:
    context = multiprocessing.get_context("fork")
    ready, leave = context.Event(), context.Event()
    child = context.Process(target=hold, args=(ready, leave))
    child.start()
    try:
        assert ready.wait(60)
        recorder = Recorder()
        account = MemoryAccount(recorder)  # type: ignore[arg-type]
        account.on_step(EVERY_STEPS + 1)
        assert not recorder.seen
        account.on_step(EVERY_STEPS)
        assert recorder.seen["host_memory_bytes"] > 5 * MIB
        assert recorder.seen["children_memory_bytes"] >= 64 * MIB
        assert recorder.seen["shared_memory_bytes"] >= 0
        recorder.seen.clear()
        account.on_step(2 * EVERY_STEPS)  # at once again: only what a slope over steps needs
        assert set(recorder.seen) == {"host_memory_bytes"}
    finally:
        leave.set()
        child.join()


def test_the_allocator_is_asked_once_and_nothing_is_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = {
        "allocated_bytes": {"all": {"current": 5, "peak": 9}},
        "reserved_bytes": {"all": {"current": 12, "peak": 12}},
    }
    cuda = SimpleNamespace(
        memory_stats_as_nested_dict=lambda: counters,
        memory=SimpleNamespace(host_memory_stats_as_nested_dict=lambda: {"allocated_bytes": {"current": 3}}),
    )
    monkeypatch.setitem(memory_account.sys.modules, "torch", SimpleNamespace(cuda=cuda))
    recorder = Recorder(device=object())
    MemoryAccount(recorder).on_step(0)  # type: ignore[arg-type]
    of_device = {k: v for k, v in recorder.seen.items() if k.startswith(("gpu", "pinned"))}
    assert of_device == {
        "gpu_memory_bytes": 5, "gpu_peak_bytes": 9, "gpu_reserved_bytes": 12, "pinned_memory_bytes": 3,
    }  # fmt: skip
    del cuda.memory.host_memory_stats_as_nested_dict  # older releases
    MemoryAccount(recorder).on_step(0)  # type: ignore[arg-type]


def test_without_a_proc_nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(process: str) -> tuple[int, int]:
        raise OSError

    monkeypatch.setattr(memory_account, "pages", none)
    recorder = Recorder()
    MemoryAccount(recorder).on_step(0)  # type: ignore[arg-type]
    assert not recorder.seen
