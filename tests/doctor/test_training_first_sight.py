"""Classes of files about training that were once misread: units after "per", short logs, host profiles, unused memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.readers.text.name import name


def _of(folder: Path, file: str, text: str) -> Diagnosis:
    path = folder / file
    path.write_text(text, encoding="utf-8")
    return diagnose(str(path))


@pytest.mark.parametrize(
    ("key", "quantity", "scale"),
    [
        ("requests_per_minute", "serve.offered_rate", 1 / 60),
        ("images_per_second", "run.samples_per_s", 1.0),
        ("batches_per_second", "run.step_time", 1.0),
        ("time_per_step_ms", "run.step_time", 1e-3),
    ],
)
def test_what_follows_per_belongs_to_a_rate(key: str, quantity: str, scale: float) -> None:
    found = name((key,))
    assert found is not None and found.quantity.name == quantity
    assert found.scale == pytest.approx(scale) and found.inverse == (key == "batches_per_second")


@pytest.mark.parametrize("key", ["checkpoint_s_per_hour", "saves_per_day", "eval_minutes_per_day"])
def test_a_rate_is_never_a_duration(key: str) -> None:
    found = name((key,))
    assert found is None or found.quantity.unit.value != "s"


_METERS = "Train: {e} [{n:>4}/900 ({p:>3}%)]  Loss: {l:.3f} ({l:.1f})  Time: {t:.3f}s, {r:.1f}/s  LR: 1e-4  Data: {d:.3f} ({d:.3f})\n"


@pytest.mark.parametrize(("data_s", "starved"), [(0.9, True), (0.004, False)])
def test_a_short_log_of_meters_is_a_log(tmp_path: Path, data_s: float, starved: bool) -> None:
    lines = [
        _METERS.format(e=1, n=n, p=n // 9, l=4 - n / 900, t=0.3 + data_s, r=64 / (0.3 + data_s), d=data_s)
        for n in (0, 50, 100, 150)
    ]
    found = _of(tmp_path, "out.log", "".join(lines))
    assert (found.ranked[:1] == ("input-starved",) and str(found.state).endswith("SICK")) == starved


_CPROFILE = """         9000 function calls in {total:.3f} seconds

   Ordered by: internal time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     1000  100.000    0.100  100.000    0.100 {{method 'run_backward' of 'torch._C._EngineBase' objects}}
    {calls:>5}  {spent:.3f}    0.100  {spent:.3f}    0.100 {what}
"""


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("{built-in method gc.collect}", "python-gc-pauses"),
        ("dataloader.py:630(__next__)", "input-starved"),
        ("serialization.py:850(save)", "checkpoint-stall"),
    ],
)
def test_host_work_in_a_function_profile_decides_by_its_share(tmp_path: Path, what: str, cause: str) -> None:
    much = _of(tmp_path, "much.txt", _CPROFILE.format(total=210.0, calls=1000, spent=100.0, what=what))
    assert much.ranked[:1] == (cause,) and str(much.state).endswith("SICK")
    little = _of(tmp_path, "little.txt", _CPROFILE.format(total=111.0, calls=10, spent=1.0, what=what))
    assert not str(little.state).endswith("SICK")


_SUMMARY = """torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
|                  PyTorch CUDA memory summary, device ID 0                 |
|            CUDA OOMs: 1            |        cudaMalloc retries: 9         |
| Allocated memory      |  30000 MiB |  {peak} MiB |  20731 GiB |  20684 GiB |
| GPU reserved memory   |  40000 MiB |  40000 MiB |    912 GiB |    835 GiB |
"""


@pytest.mark.parametrize(("peak_mib", "split"), [(31000, True), (39800, False)])
def test_reserve_beyond_the_highest_use_is_fragmentation(tmp_path: Path, peak_mib: int, split: bool) -> None:
    found = _of(tmp_path, "summary.txt", _SUMMARY.format(peak=peak_mib))
    assert (found.ranked[:1] == ("oom-fragmentation",)) == split


def test_a_scaling_series_may_begin_with_one_gpu(tmp_path: Path) -> None:
    rows = "gpus,nodes,step_ms\n1,1,300\n2,1,310\n4,1,315\n8,1,320\n16,2,1200\n"
    assert _of(tmp_path, "scaling.csv", rows).ranked[0] == "collective-topology-cliff"


def test_xla_compiling_one_function_again_and_again(tmp_path: Path) -> None:
    again = "".join(f"Finished XLA compilation of jit(train_step) in 9.{n} sec\n" for n in range(6))
    assert _of(tmp_path, "again.log", again).ranked[0] == "recompilation"
    once = "".join(
        f"Finished XLA compilation of jit({f}) in 0.1 sec\n" for f in ("init", "train_step", "mean", "add", "eval")
    )
    assert not str(_of(tmp_path, "once.log", once).state).endswith("SICK")


def test_a_unit_above_holds_for_the_parts_below() -> None:
    for above, scale in (("step_breakdown_ms", 1e-3), ("timings_us", 1e-6)):
        found = name((above, "optimizer"))
        assert found is not None and found.quantity.name == "stage.optimizer" and found.scale == pytest.approx(scale)


@pytest.mark.parametrize(("optimizer_ms", "sick"), [(30.0, True), (2.0, False)])
def test_stages_that_are_all_listed_are_the_whole(tmp_path: Path, optimizer_ms: float, sick: bool) -> None:
    text = f'{{"breakdown_ms": {{"forward": 11.0, "backward": 22.0, "optimizer": {optimizer_ms}}}}}'
    found = _of(tmp_path, "timing.json", text)
    assert ("optimizer takes 48% of its whole" in str([r.text for f in found.findings for r in f.because])) == sick


def test_a_tensor_parallel_group_of_a_node_crosses_none(tmp_path: Path) -> None:
    layout = "We train on 4 nodes x 8 A100 with TP {tp}. MFU is 20 %.\n"
    assert "tp-crosses-nodes" not in _of(tmp_path, "inside.txt", layout.format(tp=8)).ranked[:1]
    assert _of(tmp_path, "across.txt", layout.format(tp=16)).ranked[0] == "tp-crosses-nodes"


@pytest.mark.parametrize(("microbatches", "sick"), [(4, True), (64, False)])
def test_the_bubble_of_the_schedule_decides(tmp_path: Path, microbatches: int, sick: bool) -> None:
    text = f"pipeline stages: 4\nmicro-batches: {microbatches}\nschedule: 1F1B\n"
    found = _of(tmp_path, "layout.txt", text)
    assert "pipeline-bubble" in found.ranked[:2] if sick else found.ranked[:1] != ("pipeline-bubble",)
