"""Signs of a cause in shapes and words of several programs: a heading that is only a unit, a stage by its device, remarks of a
compiler, a session with two runs, a profile of functions, what a shell prints of processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.evidence.catalog import run

ENGINE = (
    "INFO 12-08 14:01:{}1 [loggers.py:248] Engine 000: Avg prompt throughput: 88.1 tokens/s, Avg generation throughput: 5120.4 "
    "tokens/s, Running: 128 reqs, Waiting: 0 reqs, GPU KV cache usage: 31.2%, Prefix cache hit rate: 12.0%\n"
)
CASES = {
    "loop.log": (
        "input-starved",
        """\
[train] iter 1: loadtime 0.8 itertime 1.2 loss 3.1
[train] iter 2: loadtime 0.9 itertime 1.3 loss 3.0
[train] iter 3: loadtime 0.85 itertime 1.25 loss 2.9
[train] iter 4: loadtime 0.88 itertime 1.27 loss 2.8
[train] iter 5: loadtime 0.83 itertime 1.22 loss 2.8
""",
    ),
    "loop.csv": (
        "input-starved",
        """\
step,dtime,itime,loss
1,0.80,1.20,3.1
2,0.81,1.22,3.0
3,0.83,1.21,2.9
4,0.82,1.23,2.8
5,0.84,1.24,2.8
""",
    ),
    "pp.md": (
        "pipeline-stage-imbalance",
        """\
pp=4, 1F1B, 32 micro-batches. Forward of one micro batch on each rank:

| rank | s |
|---|---|
| 0 | 0.041 |
| 1 | 0.040 |
| 2 | 0.040 |
| 3 | 0.058 |
""",
    ),
    "stage.csv": (
        "pipeline-stage-imbalance",
        """\
device,layers,stage latency (ms)
jetson-a,10,41.0
jetson-b,10,40.2
desktop,12,18.4
""",
    ),
    "comm.md": (
        "exposed-communication",
        """\
ResNet-50 DDP over 1 GbE

| machines | step (s) | allreduce (from the timeline) | forward+backward (same) |
|:--|:--|:--|:--|
| 1 | 0.20 | - | 0.20 |
| 2 | 0.92 | 0.80 | 0.20 |
| 4 | 1.33 | 1.21 | 0.20 |

NCCL INFO NET/Socket : Using [0]eno1:192.168.0.4<0>
""",
    ),
    "spill.txt": (
        "register-spills",
        """\
a.hip:31:0: remark: Function Name: fused_moe_kernel [-Rpass-analysis=kernel-resource-usage]
a.hip:31:0: remark:     TotalSGPRs: 96 [-Rpass-analysis=kernel-resource-usage]
a.hip:31:0: remark:     VGPRs: 512 [-Rpass-analysis=kernel-resource-usage]
a.hip:31:0: remark:     AGPRs: 0 [-Rpass-analysis=kernel-resource-usage]
a.hip:31:0: remark:     ScratchSize [bytes/lane]: 1204 [-Rpass-analysis=kernel-resource-usage]
a.hip:31:0: remark:     Occupancy [waves/SIMD]: 1 [-Rpass-analysis=kernel-resource-usage]
a.hip:31:0: remark:     VGPRs Spill: 301 [-Rpass-analysis=kernel-resource-usage]
""",
    ),
    "efa.log": (
        "memlock-limit",
        """\
libfabric:718890:1658904526::efa:mr:efa_mr_reg_impl():517<warn> Unable to register MR: Cannot allocate memory
libfabric:718890:1658904526::efa:mr:efa_mr_regattr():632<warn> Unable to register MR: Cannot allocate memory
""",
    ),
    "gdb.txt": (
        "transport-never-worked",
        """\
Thread 1 (Thread 0x7f2 (LWP 211) "python"):
#0  0x00007f1 in poll () from /lib/libc.so.6
#1  0x00007f2 in bootstrapNetAccept (state=0x1) at bootstrap.cc:88
#2  0x00007f3 in bootstrapInit (handle=0x2) at bootstrap.cc:300
#3  0x00007f4 in ncclCommInitRankFunc (job=0x3) at init.cc:1388
""",
    ),
    "disk.log": (
        "job-failed",
        """\
epoch 3 step 900 loss 1.92
Traceback (most recent call last):
  File "train.py", line 88, in save
    torch.save(state, path)
  File "/usr/lib/python3/site-packages/torch/serialization.py", line 440, in save
    _save(obj, opened_zipfile)
RuntimeError: [enforce fail at inline_container.cc:450] . PytorchStreamWriter failed writing file data/211: file write failed
""",
    ),
    "prof.txt": (
        "profiler-inflated",
        """\
$ torchrun --nproc_per_node 1 train.py
step 10: 0.212 s/it
step 20: 0.211 s/it
step 30: 0.214 s/it
$ nsys profile -o t --pytorch=autograd-nvtx torchrun --nproc_per_node 1 train.py
step 10: 0.402 s/it
step 20: 0.399 s/it
""",
    ),
    "cap.txt": (
        "client-limited",
        """\
client config
  num_concurrent: 512
"""
        + "".join(ENGINE.format(n) for n in range(1, 5)),
    ),
    "gc.txt": (
        "python-gc-pauses",
        """\
         918211 function calls in 9.214 seconds
   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
       31    4.010    0.129    4.010    0.129 {built-in method gc.collect}
      310    2.100    0.007    2.100    0.007 {built-in method torch._C._nn.linear}
        1    0.100    0.100    9.214    9.214 serve.py:20(handle)
""",
    ),
    "sim.txt": (
        "host-work-unattributed",
        """\
   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     5000   12.100    0.002   40.220    0.008 gym_envs/traffic.py:88(step)
   900000   25.300    0.000   25.300    0.000 gym_envs/geometry.py:12(collide)
     5000    0.700    0.000    1.900    0.000 torch/nn/modules/module.py:1501(_call_impl)
GPU 3 % busy
""",
    ),
    "pre.txt": (
        "cpu-bound-engine",
        """\
Whisper service, one worker. Per request: feature extraction 480 ms, model time 130 ms, postprocess 12 ms.
GPU 24 % busy, one CPU core at 100 %.
""",
    ),
    "pre.json": (
        "cpu-bound-engine",
        """\
{"service": "reranker", "latency_ms": {"tokenize_time": 210, "model_time": 60}, "gpu_util_pct": 19}
""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sign_is_heard(name: str, tmp_path: Path) -> None:
    cause, text = CASES[name]
    (tmp_path / name).write_text(text)
    assert diagnose(str(tmp_path / name), cache=False).ranked[0] == cause


@pytest.mark.parametrize("said", ["fp16 is off", "no fp16", "fp16: disabled", "bf16/fp16 off"])
def test_what_is_denied_is_not_said(said: str, tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text(f"The loss becomes NaN at step 1200 after 3 hours of training, {said}.\n")
    answer = diagnose(str(tmp_path / "mail.txt"), cache=False)
    assert not answer.evidence.all(run.PRECISION)


def test_a_log_of_an_unknown_program_ends_in_cannot_tell(tmp_path: Path) -> None:
    lines = [f"2026-07-23T15:3{n}:02Z INFO  indexer: batch {n} of the archive stored" for n in range(8)]
    (tmp_path / "service.log").write_text("\n".join(lines))
    answer = diagnose(str(tmp_path / "service.log"), cache=False)
    assert answer.state is State.UNCLEAR
    assert answer.next


def test_evaluations_that_a_log_times_are_held_against_its_training(tmp_path: Path) -> None:
    lines = [f"iteration {n}00 | loss 1.0 | step time 0.5 s" for n in range(1, 6)]
    whole = [*lines[:2], "validation took 14 min", *lines[2:4], "validation took 13 min", lines[4]]
    (tmp_path / "run.log").write_text("\n".join(whole))
    assert diagnose(str(tmp_path / "run.log"), cache=False).ranked[0] == "eval-in-loop"


def test_the_end_of_a_log_does_not_tell_how_long_was_trained(tmp_path: Path) -> None:
    lines = [f"iteration 99{n}0 | loss 1.0 | step time 0.5 s" for n in range(7, 10)]
    (tmp_path / "tail.log").write_text("\n".join([*lines, "validation took 2 min"]))
    assert diagnose(str(tmp_path / "tail.log"), cache=False).state is State.UNCLEAR


def test_a_sign_that_counts_do_not_bear_out_is_said_beside_the_words(tmp_path: Path) -> None:
    """A process that is defunct may be the fault or follow from one: rules that saw it were right in four of ten cases."""
    (tmp_path / "ps.txt").write_text(
        "training stopped printing at step 900 two hours ago, GPUs 0,1,3 at 100 %\n"
        "root  801  99 python train.py --local_rank=0   Rl\n"
        "root      802  0.0  0.0      0     0 ?        Zl   09:12   1:02 [pt_main_thread] <defunct>\n"
    )
    found = diagnose(str(tmp_path / "ps.txt"), cache=False)
    assert "rank-died-first" in found.ranked[:2] and any(f.cause == "rank-died-first" for f in found.findings)
