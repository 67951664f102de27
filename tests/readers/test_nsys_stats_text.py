"""What `nsys stats` prints is read as text as well as CSV, many tables after one another."""

from __future__ import annotations

from pathlib import Path

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import run
from stallwise.evidence.fact import Fact
from stallwise.readers import nsys_stats

PRINTED = """Processing [a.sqlite] with [cuda_api_sum.py]...

 ** CUDA API Summary (cuda_api_sum):

 Time (%)  Total Time (ms)  Num Calls  Avg (ms)          Name
 --------  ---------------  ---------  --------  ---------------------
     70.0            140.0         14      10.0  cudaLaunchKernel
     30.0             60.0          3      20.0  cudaStreamSynchronize

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)                     Name
 --------  ---------------  ---------  ---------  -----------------------------------
     75.0        3,000,000          3  1000000.0  void matmul<float, (int)4>(float *)
     25.0        1,000,000         10   100000.0  add

 ** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum):

 Time (%)  Total Time (ns)  Count  Avg (ns)         Operation
 --------  ---------------  -----  --------  ----------------------------
    100.0          9000000      3   3000000  [CUDA memcpy Host-to-Device]
"""


def artifact(folder: Path) -> Artifact:
    path = folder / "stats.txt"
    path.write_text(PRINTED, encoding="utf-8")
    return Artifact(path.name, path)


def test_kernels_of_the_printed_table(tmp_path: Path) -> None:
    source = artifact(tmp_path)
    assert nsys_stats.recognises(source.name, source.head)
    facts = [f for f in nsys_stats.read(source) if isinstance(f, Fact)]
    shares = {f.scope.kernel: f.value for f in facts if f.quantity is k.TIME_SHARE}
    assert shares == {"void matmul<float, (int)4>(float *)": 0.75, "add": 0.25}


def test_calls_of_the_printed_table(tmp_path: Path) -> None:
    source = artifact(tmp_path)
    assert nsys_stats.recognises(source.name, source.head)
    facts = {f.quantity: f for f in nsys_stats.read(source) if isinstance(f, Fact)}
    assert abs(facts[run.SYNC_TIME].number - 0.02) < 1e-12
    assert facts[run.SYNC_CALLER].value == "cudaStreamSynchronize"
