"""Every second of every step is in exactly one account, whatever the trace looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.measures import measure_timeline
from stallwise.doctor.measures._step_index import step_index
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category
from stallwise.evidence.timeline import NO_ID, Kind, Lane, Timeline
from tests.measures.scripted_run import ScriptedRun

NAMES = [
    "ProfilerStep#1", "ProfilerStep#2", "aten::mm", "aten::copy_", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaFree",
    "enumerate(DataLoader)#x.__next__", "gemm_kernel", "ncclDevKernel_AllReduce", "Memcpy HtoD (Pageable -> Device)",
    "Memcpy DtoH (Device -> Pinned)", "autograd::engine::evaluate_function: MmBackward0", "Optimizer.step#Adam.step", "Buffer Flush",
]  # fmt: skip
KIND_OF = [6, 6, 4, 4, 5, 5, 5, 6, 1, 1, 2, 2, 4, 6, 9]
LANES = [Lane(False, "1", "1"), Lane(False, "1", "2"), Lane(True, "0", "7"), Lane(True, "0", "20")]

events = st.lists(
    st.tuples(
        st.integers(0, len(NAMES) - 1),
        st.integers(0, 2000),  # start
        st.integers(0, 400),  # length
        st.integers(0, 1),  # which of the two lanes of its side
        st.integers(-1, 12),  # correlation
    ),
    min_size=1,
    max_size=60,
)


def timeline_of(rows: list[tuple[int, int, int, int, int]]) -> Timeline:
    rows = sorted(rows, key=lambda r: (r[1], -r[2]))
    kind = np.array([KIND_OF[r[0]] for r in rows], np.uint8)
    on_device = np.isin(kind, [int(Kind.KERNEL), int(Kind.MEMCPY)])
    column = [np.array([r[i] for r in rows]) for i in range(5)]
    none = np.full(len(rows), NO_ID)
    return Timeline(
        start_s=column[1] * 1e-5,
        duration_s=column[2] * 1e-5,
        kind=kind,
        name=column[0].astype(np.int32),
        lane=(column[3] + 2 * on_device).astype(np.int32),
        correlation=column[4].astype(np.int64),
        external=none.astype(np.int64),
        size_bytes=np.full(len(rows), 50e6),
        detail=none.astype(np.int32),
        names=NAMES,
        lanes=LANES,
        details=[],
        source=Source("made up"),
    )


@settings(max_examples=150, deadline=None)
@given(events)
def test_categories_partition_each_step(rows: list[tuple[int, int, int, int, int]]) -> None:
    book = step_index(timeline_of(rows))
    if not len(book.view):
        return
    lengths = np.diff(book.windows.device)
    total = sum(book.per_step(spans) for spans in book.categories.values())
    assert np.allclose(total, lengths, atol=1e-9)
    categories = list(book.categories.values())
    for i, one in enumerate(categories):
        for other in categories[i + 1 :]:
            assert (one & other).total_s < 1e-9


@settings(max_examples=60, deadline=None)
@given(events)
def test_no_trace_however_odd_breaks_a_measure(rows: list[tuple[int, int, int, int, int]]) -> None:
    assert list(measure_timeline(timeline_of(rows)))


def categories_of(run: ScriptedRun, tmp_path: Any) -> dict[Category, float]:
    from stallwise.doctor.examine import diagnose

    ledger = diagnose(run.write(tmp_path), cache=False).ledger
    assert ledger is not None
    return {category: seconds * 1e3 for category, seconds in ledger.seconds.items()}


def test_loader_time_behind_kernels_is_not_lost(tmp_path: Any) -> None:
    """The host is in the loader 12 ms a step; 10 ms of kernels are queued by then, so about 2 ms are lost."""
    run = ScriptedRun()
    for _ in range(6):
        with run.step():
            with run.span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                run.host(12_000)
            run.op("aten::mm", ("gemm", 10_000.0))
    found = categories_of(run, tmp_path)
    assert found[Category.COMPUTE] == pytest.approx(10.0, rel=0.05)
    assert 1.5 < found[Category.INPUT_WAIT] < 4.5


def test_a_wait_costs_only_the_lead_it_takes(tmp_path: Any) -> None:
    """Each synchronisation lasts milliseconds and costs the device only the next launch."""
    run = ScriptedRun()
    for _ in range(5):
        with run.step():
            for _ in range(3):
                run.op("aten::mm", ("gemm", 3_000.0))
            run.sync()
    found = categories_of(run, tmp_path)
    assert found[Category.HOST_WAIT] < 0.1
    assert found[Category.COMPUTE] == pytest.approx(9.0, rel=0.02)
