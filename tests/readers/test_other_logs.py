"""Compiler, collector, checkpoints, host tools, profilers and TensorBoard."""

from __future__ import annotations

import struct

import pytest

from stallwise.doctor.gather import read_artifact
from stallwise.doctor.measures import scaling
from stallwise.doctor.messages import log_metrics_of
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import fabric, memory, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Note, Series
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.reading import Printed, Reading, Rows
from stallwise.readers import failed_calls, readers_for
from stallwise.readers.text.steps import understood_steps


def facts(text: str | bytes, name: str = "run.log") -> dict[str, Fact]:
    content = text.encode() if isinstance(text, str) else text
    artifact = Artifact(name, content=content)
    found: list[object] = []
    for item in (i for r in readers_for(artifact) for i in r.read(artifact)):
        found += understood_steps(item, artifact.name) if isinstance(item, Printed | Rows | Reading) else [item]
    found += [i for _, items in log_metrics_of(artifact) for i in items]
    return {f.quantity.name: f for f in reversed(found) if isinstance(f, Fact)}


def value(text: str, quantity: Quantity) -> float | str:
    return facts(text)[quantity.name].value


RECOMPILE = (
    "V1103 12:00:0{i}.0 44 torch/_dynamo/guards.py:1] [3/{i}] [__recompiles] Recompiling function f in a.py:4\n"
    "V1103 12:00:0{i}.0 44 torch/_dynamo/guards.py:1] [3/{i}] [__recompiles]     - 3/0: tensor 'x' size mismatch at "
    "index 1. expected 8, actual {i}\n"
)


def test_recompiles_with_their_guard() -> None:
    text = "".join(RECOMPILE.format(i=i) for i in range(1, 6))
    assert value(text, run.RECOMPILES) == 5
    assert "size mismatch" in str(value(text, run.RECOMPILE_REASON))


def test_the_limit_in_old_and_new_words() -> None:
    old = "[2023-02-10] torch._dynamo.convert_frame: [WARNING] torch._dynamo hit config.cache_size_limit (64)\n"
    new = "W0505 torch/_dynamo/convert_frame.py:1358] [0/8] torch._dynamo hit config.recompile_limit (8)\n"
    assert value(old + new, run.RECOMPILE_LIMIT_HIT) == 2


def test_graph_breaks_in_logs_and_in_explain() -> None:
    log = "".join(
        f"V0611 torch/_dynamo/x.py:5] [0/0] [__graph_breaks] Graph break in user code at m/aev.py:{i}\n"
        "V0611 torch/_dynamo/x.py:5] [0/0] [__graph_breaks] Graph Break Reason: Unsupported Tensor.item() call\n"
        for i in range(7)
    )
    assert value(log, run.GRAPH_BREAKS) == 7
    assert "item" in str(value(log, run.GRAPH_BREAK_REASON))
    explain = "Graph Count: 150\nGraph Break Count: 149\nOp Count: 8\nbench eager:    18.4 ms/step\nbench compiled: 21.9 ms/step\n"
    assert value(explain, run.GRAPH_BREAKS) == 149
    assert value(explain, run.COMPILED_TIME) == pytest.approx(0.0219)
    assert value(explain, run.EAGER_TIME) == pytest.approx(0.0184)


def test_full_collections_only() -> None:
    text = "".join(
        f"[rank 5 update {u}] gc: collecting generation {g}...\ngc: done, 118 unreachable, 0 uncollectable, {s}s elapsed\n"
        for u, g, s in ((100, 2, 1.4), (150, 0, 0.001), (400, 2, 1.6))
    )
    found = facts(text)
    assert found[run.GC_COLLECTIONS.name].value == 2
    assert found[run.GC_PAUSE.name].value == pytest.approx(1.5)


def test_a_log_that_dies_in_a_save() -> None:
    start = "step: 10 loss: 1.0\nSaving model checkpoint to out/tmp-checkpoint-500\nGetting optimizer state dict took 118.28 secs\n"
    died = facts(start + "[E] Watchdog caught collective operation timeout\n")
    assert died[run.DIED_IN_SAVE.name].value == 1.0
    assert died[run.SAVE_TIME.name].value == pytest.approx(118.28)
    assert run.DIED_IN_SAVE.name not in facts(start + "step: 11 loss: 0.9\nRuntimeError: later\n")


def test_settings() -> None:
    found = facts(
        "Namespace(batch_size=24, num_workers=0, fp16=True)\nmount: data type nfs4 (rw)\ntokenizer: on the fly, step loss\n"
    )
    assert found[run.LOADER_WORKERS.name].value == 0
    assert found[run.PRECISION.name].value == "fp16"
    assert found[run.NETWORK_STORAGE.name].value == 1
    assert found[run.ON_THE_FLY.name].value == 1
    warned = facts(
        "UserWarning: This DataLoader will create 32 worker processes in total. Our suggested max number of worker in "
        "current system is 8, which is smaller\n"
    )
    assert (warned[run.LOADER_WORKERS.name].value, warned[run.CPU_CORES.name].value) == (32, 8)


def test_top_and_free() -> None:
    top = (
        "top - 08:00:12 up 12 days,  1 user,  load average: 1.21, 1.15, 1.10\n"
        "%Cpu(s):  1.1 us,  0.1 sy,  0.0 ni, 98.8 id,  0.0 wa\n"
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        "   4120 user      20   0   61.2g   9.1g   1.2g R 100.0   0.9  41:12.20 python\n"
    )
    assert facts(top)[run.HOST_BUSY_CORES.name].value == 1.0
    assert facts(top)[run.HOST_IDLE_SHARE.name].value == pytest.approx(0.988)
    free = "".join(f"01:{m:02d}:00 Mem: total 503 GiB used {60 + m} GiB available 400 GiB\n" for m in range(0, 50, 10))
    artifact = Artifact("free.txt", content=free.encode())
    series = [i for _, items in log_metrics_of(artifact) for i in items if isinstance(i, Series)]
    assert series[0].quantity is run.HOST_MEMORY and series[0].values[-1] == pytest.approx(100 * 2**30)


def test_profiler_tables() -> None:
    row = "|  {name:70}|  {mean}\t|  {calls}\t|  {total}\t|  {share}\t|\n"
    lightning = (
        "FIT Profiler Report\n|  Action  |  Mean duration (s)\t|  Num calls\t|  Total time (s)\t|  Percentage %\t|\n"
        + "".join(
            row.format(name=n, mean=m, calls=c, total=t, share=s)
            for n, m, c, t, s in (
                ("Total", "-", 5000, 1000, "100 %"),
                ("[_TrainingEpochLoop].train_dataloader_next", 0.6, 1000, 600, 60),
                ("run_training_batch", 0.35, 1000, 350, 35),
            )
        )
    )
    found = facts(lightning)
    assert found[run.DATA_SHARE.name].value == pytest.approx(0.6)
    assert found[run.HOST_UNEXPLAINED_SHARE.name].value == pytest.approx(0.05)
    header = "  ".join(f"{c:>16}" for c in ("Name", "Self CPU %", "Self CPU", "CPU total", "# of Calls"))
    rows = [
        ("cudaStreamSynchronize", "15.0%", "450.0ms", "450.0ms", "10"),
        ("aten::item", "0.01%", "0.4ms", "451.1ms", "10"),
    ]
    table = "\n".join([header, *("  ".join(f"{c:>16}" for c in r) for r in rows), "Self CPU time total: 3.000s"])
    found = facts(table)
    assert found[run.SYNC_SHARE.name].value == pytest.approx(0.15)
    assert found[run.SYNC_CALLER.name].value == "aten::item"


def test_probes_and_variants() -> None:
    probe = facts("kernels_per_step,launches_us,graph_replay_us\n10,70,20\n20,130,26\n40,250,38\n", "p.csv")
    assert probe[run.LAUNCH_COST.name].value == pytest.approx(6e-6, rel=0.01)
    assert probe[run.REPLAY_COST.name].value == pytest.approx(0.6e-6, rel=0.01)
    ab = facts("variant,ms_per_step\nwith_sync,2.0\nwithout_sync,1.5\n", "ab.csv")
    assert ab[run.SYNC_REMOVED_GAIN.name].value == pytest.approx(0.25)
    api = facts(
        "Generating SQLite file\n\nTime (%),Total Time (ns),Num Calls,Avg (ns),Name\n"
        "93.3,50000000000,500,1,cudaDeviceSynchronize\n6.1,3000000000,6000,1,cudaLaunchKernel\n",
        "api.csv",
    )
    assert api[run.SYNC_TIME.name].value == pytest.approx(0.1)


def _field(number: int, kind: int, payload: bytes) -> bytes:
    head = bytes([number << 3 | kind])
    return head + (bytes([len(payload)]) if kind == 2 else b"") + payload


def _event(step: int, tag: str, number: float, *, tensor: bool = False) -> bytes:
    if tensor:
        inner = _field(8, 2, _field(1, 0, b"\x01") + _field(5, 2, struct.pack("<f", number)))
    else:
        inner = _field(2, 5, struct.pack("<f", number))
    value_ = _field(1, 2, tag.encode()) + inner
    return _field(1, 1, struct.pack("<d", 1.0)) + _field(2, 0, bytes([step])) + _field(5, 2, _field(1, 2, value_))


def _record(body: bytes) -> bytes:
    return struct.pack("<Q", len(body)) + b"\0\0\0\0" + body + b"\0\0\0\0"


@pytest.mark.parametrize("tensor", [False, True])
def test_tensorboard_scalars(tensor: bool) -> None:
    version = _record(_field(1, 1, struct.pack("<d", 1.0)) + _field(3, 2, b"brain.Event:2"))
    events = b"".join(_record(_event(i, "train/loss", 2.0 - i / 10, tensor=tensor)) for i in range(5))
    artifact = Artifact("events.out.tfevents.1", content=version + events)
    found: list[object] = []
    for item in (i for r in readers_for(artifact) for i in r.read(artifact)):
        found += understood_steps(item, artifact.name) if isinstance(item, Printed | Rows | Reading) else [item]
    found += [i for _, items in log_metrics_of(artifact) for i in items]
    series = next(i for i in found if isinstance(i, Series))
    assert series.quantity is run.LOSS
    assert list(series.x) == [0, 1, 2, 3, 4]
    assert series.values[3] == pytest.approx(1.7)
    cut = Artifact("events", content=(version + events)[:-9])
    assert any(isinstance(i, Note) for r in readers_for(cut) for i in r.read(cut))


@pytest.mark.parametrize(
    "line",
    [
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_an_error_of_the_hosts_memory_is_not_one_of_the_device(line: str) -> None:
    found = facts(f"epoch 1 done\n{line}\n")
    assert memory.FAILED.name not in found
    assert memory.HOST_KILLED.name in found


def test_ranks_that_failed_in_different_collectives() -> None:
    text = "".join(
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/a/train.py", line 12, in main\n'
        f'[rank{rank}]:   File "/x/torch/distributed/distributed_c10d.py", line {100 + rank}, in {op}\n'
        f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error\n"
        for rank, op in enumerate(("barrier", "all_reduce"))
    )
    (waits,) = failed_calls.read(Artifact("x.log", content=text.encode()))
    assert list(waits.columns["op"]) == ["barrier", "all_reduce"] and list(waits.columns["rank"]) == [0, 1]
    assert list(waits.columns["frame"]) == ["/a/train.py:12 main"] * 2


def test_the_same_training_on_more_cards_that_takes_longer() -> None:
    evidence = Evidence()
    for name, cards, step_s in (("one.log", "0", 1.0), ("two.log", "0,1", 1.6)):
        lines = "".join(f"{n}/40 [00:10<00:20,  {step_s}s/it, loss=2.0]\n" for n in range(20))
        text = f"$ CUDA_VISIBLE_DEVICES={cards} NCCL_P2P_DISABLE=0 python train.py\n{lines}"
        evidence.add(read_artifact(Artifact(name, content=text.encode()))[1])
    (slowdown,) = [f for f in scaling.from_evidence(evidence) if f.quantity is fabric.RUN_SLOWDOWN]
    assert slowdown.value == 1.6 and slowdown.note == "1 to 2 GPUs"
