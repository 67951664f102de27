"""The trace reader takes every schema that PyTorch has written."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from stallwise.evidence.timeline import NO_ID, Kind
from stallwise.readers.native import _trace_blocks, torch_trace
from tests.readers.trace_files import BASE_US, document, event, launch, read_bytes, read_document, step


def kinds_by_name(timeline):
    return {timeline.text(i): Kind(k) for i, k in enumerate(timeline.kind.tolist())}


def test_times_are_seconds_since_the_first_event_and_sorted() -> None:
    timeline = read_document(document([*step(4, start_us=300), *step(3)]))
    assert len(timeline) == 14
    assert timeline.start_s[0] == 0.0
    assert np.all(np.diff(timeline.start_s) >= 0)
    assert timeline.text(0) == "ProfilerStep#3"
    assert timeline.duration_s[0] == pytest.approx(200e-6)
    assert timeline.origin_s == pytest.approx(BASE_US * 1e-6)
    assert timeline.span_s == pytest.approx(500e-6)


def test_a_parent_comes_before_the_child_that_starts_with_it() -> None:
    timeline = read_document(document([event("child", "cpu_op", 0, 5), event("parent", "cpu_op", 0, 50)]))
    assert [timeline.text(i) for i in range(2)] == ["parent", "child"]


def test_kernel_and_launch_share_a_correlation() -> None:
    timeline = read_document(document(step()))
    kernels, calls = timeline.rows(Kind.KERNEL), timeline.rows(Kind.RUNTIME)
    assert timeline.correlation[kernels].tolist() == timeline.correlation[calls].tolist() == [30, 31]
    assert timeline.correlation[timeline.rows(Kind.ANNOTATION)].tolist() == [NO_ID]


def test_details_are_interned_and_decoded_on_demand() -> None:
    timeline = read_document(document(step()))
    ops = timeline.rows(Kind.CPU_OP)
    assert timeline.details_of(int(ops[0])) == {"Input Dims": [[8, 4], [4, 2]]}
    assert timeline.distinct_values("Input Dims", ops)[0] == [[[8, 4], [4, 2]]]
    assert timeline.detail[ops[0]] == timeline.detail[ops[1]]
    assert timeline.details_of(int(timeline.rows(Kind.KERNEL)[0]))["grid"] == [1, 2, 3]
    assert timeline.details_of(int(timeline.rows(Kind.RUNTIME)[0])) == {}
    assert len(timeline.details) == 2


def test_collective_arguments_are_kept_on_kernels_and_operators() -> None:
    collective = {
        "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 8,
        "dtype": "BFloat16", "Process Group Name": "3", "Process Group Description": "dp", "Seq": 17,
        "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
    }  # fmt: skip
    timeline = read_document(document(launch(1, 0, kernel="ncclDevKernel_AllReduce", **collective)))
    found = timeline.details_of(int(timeline.rows(Kind.KERNEL)[0]))
    assert found == {"grid": [1, 2, 3], **collective}


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("Kernel", Kind.KERNEL),
        ("kernel", Kind.KERNEL),
        ("Memcpy", Kind.MEMCPY),
        ("gpu_memcpy", Kind.MEMCPY),
        ("Memset", Kind.MEMSET),
        ("Operator", Kind.CPU_OP),
        ("cpu_op", Kind.CPU_OP),
        ("Runtime", Kind.RUNTIME),
        ("cuda_runtime", Kind.RUNTIME),
        ("cuda_driver", Kind.RUNTIME),
        ("hip_runtime", Kind.RUNTIME),
        ("xpu_runtime", Kind.RUNTIME),
        ("mtia_runtime", Kind.RUNTIME),
        ("user_annotation", Kind.ANNOTATION),
        ("gpu_user_annotation", Kind.GPU_ANNOTATION),
        ("python_function", Kind.PYTHON),
        ("overhead", Kind.OVERHEAD),
        ("cuda_sync", Kind.SYNC),
        ("mtia_ccp_events", Kind.KERNEL),
        ("something_of_2031", Kind.OTHER),
    ],
)
def test_categories_of_every_year_mean_the_same(category: str, kind: Kind) -> None:
    timeline = read_document(document([event("x", category, 0, 1)]))
    assert Kind(timeline.kind[0]) is kind


def test_steps_of_2021_were_called_operators() -> None:
    timeline = read_document(
        document([event("ProfilerStep#7", "Operator", 0, 9), event("aten::add", "Operator", 1, 2)])
    )
    assert kinds_by_name(timeline) == {"ProfilerStep#7": Kind.ANNOTATION, "aten::add": Kind.CPU_OP}


def test_an_accelerator_queue_is_told_apart_by_its_words() -> None:
    names = ["dma_request", "event_wait", "pe_exe"]
    timeline = read_document(document([event(n, "mtia_ccp_events", i, 1) for i, n in enumerate(names)]))
    assert [Kind(k) for k in timeline.kind] == [Kind.MEMCPY, Kind.SYNC, Kind.KERNEL]


def test_events_without_category_are_known_by_their_process() -> None:
    rows = [
        {"ph": "X", "name": "mm", "pid": "CPU functions", "tid": 1, "ts": 1, "dur": 3, "args": {}},
        {"ph": "X", "name": "sgemm", "pid": "CUDA functions", "tid": 0, "ts": 2, "dur": 3, "args": {}},
        {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "/device:GPU:0"}},
        {"ph": "X", "name": "fusion.3", "pid": 5, "tid": 2, "ts": 3, "dur": 3},
    ]
    timeline = read_document({"traceEvents": rows})
    assert [Kind(k) for k in timeline.kind] == [Kind.CPU_OP, Kind.KERNEL, Kind.KERNEL]


def test_a_bare_list_is_a_trace_too() -> None:
    assert len(read_document(step())) == 7


def test_properties_may_stand_after_the_events() -> None:
    doc = {
        "traceEvents": step(),
        "distributedInfo": {"rank": 5, "world_size": 8, "backend": "nccl"},
        "deviceProperties": [
            {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85e9, "numSms": 132, "computeMajor": 9},
            {"id": 1, "name": "NVIDIA H100 80GB HBM3"},
        ],
        "traceName": "x.json",
    }
    timeline = read_document(doc)
    assert timeline.scope.rank == 5
    assert timeline.distributed["world_size"] == 8
    assert [d.index for d in timeline.devices] == [0, 1]
    assert (timeline.devices[0].sm_count, timeline.devices[0].compute_capability) == (132, "9.0")


def test_absolute_time_comes_from_the_base() -> None:
    rows = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5_000_000.5, "dur": 1.0}]
    timeline = read_document(document(rows, baseTimeNanoseconds=1_790_857_026_000_000_000, displayTimeUnit="ms"))
    assert timeline.origin_s == pytest.approx(1_790_857_031.0000005)


def test_numbers_written_as_strings_or_floats_are_numbers() -> None:
    rows = [
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": "12", "tid": "13", "ts": "100.5", "dur": "2",
         "args": {"correlation": "77", "external id": "5"}},
        {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 104.0, "dur": 2.0,
         "args": {"correlation": 77.0, "External id": "5"}},
    ]  # fmt: skip
    timeline = read_document(document(rows))
    assert timeline.correlation.tolist() == [77, 77]
    assert timeline.external.tolist() == [5, 5]
    assert timeline.lanes[timeline.lane[1]].thread == "7"


def test_an_id_beyond_64_bits_is_no_id() -> None:
    timeline = read_document(document([event("x", "cpu_op", 0, 1, **{"External id": 2**64 - 1})]))
    assert timeline.external.tolist() == [NO_ID]


def test_a_host_process_and_a_device_with_one_number_are_two_lanes() -> None:
    rows = [event("op", "cpu_op", 0, 1, pid=0, tid=7), event("k", "kernel", 1, 1, pid=0, tid=7)]
    timeline = read_document(document(rows))
    assert [timeline.lanes[c].on_device for c in timeline.lane] == [False, True]


def test_threads_keep_their_names() -> None:
    named = {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "ts": 0, "args": {"name": "pt_autograd_0"}}
    timeline = read_document(document([named, *step()]))
    assert {lane.label for lane in timeline.lanes if not lane.on_device} == {"pt_autograd_0"}


def test_allocator_instants_become_counters() -> None:
    def instant(at: float, size: int, total: int, device_type: int) -> dict:
        args = {"Bytes": size, "Total Allocated": total, "Total Reserved": 4096, "Addr": 2**63 + 5,
                "Device Type": device_type, "Device Id": 2}  # fmt: skip
        return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
                "args": args}  # fmt: skip

    timeline = read_document(document([instant(9, -512, 0, 1), instant(3, 512, 512, 1), instant(5, 64, 64, 0)]))
    rows = timeline.rows(Kind.MEMORY)
    assert timeline.size_bytes[rows].tolist() == [512, 64, -512]
    assert timeline.memory is not None
    assert timeline.memory.allocated_bytes.tolist() == [512, 64, 0]
    assert timeline.memory.device.tolist() == [2, NO_ID, 2]
    assert int(timeline.memory.address[0]) == 2**63 + 5


def test_begin_and_end_make_one_event() -> None:
    rows = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 10, "cat": "user_annotation"},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 12, "cat": "cpu_op"},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 15},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 20},
    ]
    timeline = read_document({"traceEvents": rows})
    assert [(timeline.text(i), round(d * 1e6)) for i, d in enumerate(timeline.duration_s)] == [
        ("outer", 10),
        ("inner", 3),
    ]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("run/worker3_step_12.1694128201557.pt.trace.json.gz", 3),
        ("rank-34.Jul_15.pt.trace.json", 34),
        ("traces/rank_7/trace.json", None),
        ("trace_rank12.json", 12),
        ("run.zip!rank5.json", 5),
        ("trace.json", None),
        ("frank2.json", None),
    ],
)
def test_the_rank_is_taken_from_the_file_name_where_the_trace_does_not_say(name: str, rank: int | None) -> None:
    assert read_document(document(step()), name).scope.rank == rank


def test_the_traces_own_rank_wins_over_the_name() -> None:
    assert read_document(document(step(), distributedInfo={"rank": 2}), "rank9.json").scope.rank == 2


def test_blocks_are_cut_between_events_whatever_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [e for n in range(40) for e in step(n, start_us=n * 250.0)]
    for e in events:
        e["args"]["note"] = [{"name": '},{ "ph"'}, {"name": "nested"}]
    whole = read_document(document(events))
    monkeypatch.setattr(_trace_blocks, "BLOCK_BYTES", 700)
    for indent in (None, 1):
        for reverse in (False, True):
            rows = [dict(sorted(e.items(), reverse=reverse)) for e in events]
            content = json.dumps({"traceEvents": rows, "distributedInfo": {"rank": 1}}, indent=indent).encode()
            for packed in (content, gzip.compress(content)):
                timeline, notes = read_bytes(packed)
                assert notes == []
                assert timeline.scope.rank == 1
                assert np.array_equal(timeline.start_s, whole.start_s)
                assert [timeline.names[c] for c in timeline.name] == [whole.names[c] for c in whole.name]


def test_python_frames_are_kept_without_detail() -> None:
    rows = [event("train.py(12): main", "python_function", 0, 9, **{"Python id": 1, "Input Dims": [[1]]})]
    timeline = read_document(document(rows))
    assert Kind(timeline.kind[0]) is Kind.PYTHON
    assert timeline.detail.tolist() == [NO_ID]


def test_other_json_is_not_a_trace() -> None:
    for content in (
        b'{"schema": "1.0.3", "nodes": []}',
        b'[{"file": "x", "batch_size": 32}]',
        b"[1, 2]",
        b"",
        b"\x00\x01",
    ):
        assert not torch_trace.recognises("x.json", content)
