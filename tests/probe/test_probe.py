"""Measured ceilings: timing on a fake clock, the profile that others use, and the check of a fleet."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from stallwise.errors import UnreadableInput
from stallwise.physics.probe import device
from stallwise.physics.probe.host import loader_rate, write_rate
from stallwise.physics.probe.profile import load_readings, preflight, save, shares
from stallwise.physics.probe.reading import Reading
from stallwise.physics.probe.steadiness import doubts
from stallwise.physics.probe.timing import Timing, bench
from stallwise.physics.specs.hardware import find_gpu, gpu
from stallwise.surfaces.cli.measure import command
from stallwise.units import Unit

H200 = gpu("h200")


def readings(copy: float = 4.3e12, bf16: float = 790e12) -> list[Reading]:
    return [
        Reading("copy", copy, Unit.BYTE_PER_S, "test"),
        Reading("gemm bf16", bf16, Unit.FLOP_PER_S, "test"),
    ]


def test_bench_rotates_inputs_and_reports_a_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    seen: list[int] = []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr("stallwise.physics.probe.timing._torch_with_gpu", lambda: None)

    def work(which: int) -> None:
        seen.append(which)
        now[0] += 0.01 if which == 0 else 0.02

    timing = bench(work, (0,), (1,), enough_s=0.5)
    assert seen[:4] == [0, 1, 0, 1]
    assert 0.01 <= timing.median_s <= 0.02 and timing.repeats >= 10
    assert timing.spread_share > 0.2 and "host" in str(timing)


def test_a_measured_profile_changes_what_the_card_is_said_to_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STALLWISE_PROFILE", str(tmp_path / "hw.json"))
    before = find_gpu("h200")
    save(readings(copy=3.84e12), H200)
    after = find_gpu("h200")
    assert before is not None and after is not None
    assert before.achieved_byte_per_s == pytest.approx(4.32e12)
    assert after.achieved_byte_per_s == pytest.approx(3.84e12)


def test_an_absurd_or_damaged_profile_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hw.json"
    monkeypatch.setenv("STALLWISE_PROFILE", str(path))
    path.write_text(json.dumps({"achieved_share": {"h200": {"bandwidth": 40.0}}}))
    absurd = find_gpu("h200")
    assert absurd is not None and absurd.achieved_byte_per_s < H200.bandwidth_byte_per_s
    path.write_text("not json")
    assert find_gpu("h200") == H200


def test_shares_are_rates_over_the_data_sheet() -> None:
    assert shares(readings(), H200) == pytest.approx({"bandwidth": 4.3 / 4.8, "bf16": 790 / 989.4})


def test_preflight_names_the_slow_node_and_only_it() -> None:
    nodes = {f"node{i}": {r.name: r.value for r in readings()} for i in range(4)}
    assert preflight(nodes, H200) == []
    nodes["node2"]["gemm bf16"] *= 0.85
    assert {c.node for c in preflight(nodes, H200)} == {"node2"}
    alone = {"node0": {"copy": 2e12}}
    assert "data sheet" in str(preflight(alone, H200)[0])


def test_preflight_fails_loudly(tmp_path: Path) -> None:
    for i in range(3):
        rows = [r.to_dict() for r in readings(copy=4.3e12 if i else 3.0e12)]
        (tmp_path / f"n{i}.json").write_text(json.dumps({"gpu": "h200", "readings": rows}))
    files = [str(tmp_path / f"n{i}.json") for i in range(3)]
    result = CliRunner().invoke(command, ["preflight", *files])
    assert result.exit_code == 1 and "n0: copy" in result.output
    assert CliRunner().invoke(command, ["preflight", *files[1:]]).exit_code == 0


def test_files_without_readings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UnreadableInput):
        load_readings(tmp_path / "x.json")


def test_storage_and_loader_rates_are_positive(tmp_path: Path) -> None:
    assert write_rate(tmp_path).value > 0
    assert loader_rate(range(1000), seconds=0.2).value > 0
    with pytest.raises(UnreadableInput):
        write_rate(tmp_path / "missing")


def quiet_host(monkeypatch: pytest.MonkeyPatch, spread: float, load: float, cores: int = 8) -> None:
    """A host whose readings are given, under a load that is given."""
    found = [Reading("host memory copy", 2e10, Unit.BYTE_PER_S, "test", spread)]
    monkeypatch.setattr("stallwise.physics.probe.host.probe_host", lambda folder: iter(found))
    monkeypatch.setattr("stallwise.surfaces.cli.measure._torch", lambda: None)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: cores)


@pytest.mark.parametrize(
    ("spread", "load", "said"),
    [
        (0.03, 7.9, ""), (0.10, 0.0, ""), (0.12, 0.0, "repeats of host memory copy differ by ±12%"),
        (0.03, 8.1, "the load average is 8.1 on 8 cores"), (0.3, 20.0, "on 8 cores; repeats of host memory copy"),
    ],
)  # fmt: skip
def test_what_a_busy_machine_measures_is_not_kept(
    spread: float, load: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "hw.json"
    monkeypatch.setenv("STALLWISE_PROFILE", str(profile))
    profile.write_text('{"achieved_share": {"h200": {"bandwidth": 0.8}}}')
    before = profile.read_text()
    quiet_host(monkeypatch, spread, load)
    result = CliRunner().invoke(command, [])
    assert "host memory copy" in result.stdout, "it is shown in any case"
    if not said:
        assert result.exit_code == 0 and "kept in" in result.stderr and profile.read_text() != before
        return
    assert result.exit_code == 1 and "not kept: " in result.stderr and said in result.stderr
    assert profile.read_text() == before, "what was known of a quiet machine stays"


def test_readings_of_a_busy_machine_say_so_in_json_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet_host(monkeypatch, 0.02, 40.0)
    result = CliRunner().invoke(command, ["--json", "--no-save"])
    assert json.loads(result.stdout)["doubts"] == ["the load average is 40.0 on 8 cores"]
    assert result.exit_code == 0 and "not reliable" in result.stderr


def test_repeats_have_quartiles() -> None:
    timing = Timing.of([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.4, 1.4], "host")
    assert timing.median_s == 1.0 and timing.spread_share == pytest.approx(0.2) and timing.repeats == 9
    assert Reading.each("sync", 1000, timing, "test").value == pytest.approx(1e-3)


def test_launches_are_timed_in_rounds_so_that_a_busy_host_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose host is held up in every second round: the readings have a spread, and are not believed."""
    now, synced = [0.0], [0]

    def synchronize() -> None:
        synced[0] += 1
        now[0] += 2e-6

    class Tensor:
        def add_(self, value: int) -> None:
            now[0] += 5e-6 if synced[0] % 4 < 2 else 9e-6

    cuda = SimpleNamespace(
        synchronize=synchronize,
        CUDAGraph=lambda: SimpleNamespace(replay=lambda: None),
        graph=lambda graph: nullcontext(),
    )
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(device, "bench", lambda fn: Timing.of([1e-3] * 10, "device events"))
    found = {r.name: r for r in device._launches(SimpleNamespace(zeros=lambda *a, **k: Tensor(), cuda=cuda))}
    assert set(found) == {"launch eager", "launch in a graph", "sync"}
    assert found["launch in a graph"].value == pytest.approx(1e-6)
    assert found["sync"].value == pytest.approx(2e-6, rel=0.01) and found["sync"].spread_share == pytest.approx(
        0, abs=1e-6
    )
    assert 5e-6 <= found["launch eager"].value <= 9.1e-6 and found["launch eager"].spread_share > 0.2
    assert doubts(list(found.values()), 0.0, 8) == [
        f"repeats of launch eager differ by ±{found['launch eager'].spread_share:.0%}"
    ]
