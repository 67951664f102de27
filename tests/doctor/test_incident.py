"""Incidents of several files: first fault, order by clocks that are known, owner, hosts to drain."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.incident import Incident, Part, Row
from stallwise.readers.shapes.stamps import Stamps
from stallwise.render.incident import incident_rows
from stallwise.render.json import to_dict
from stallwise.render.text import to_text

START = datetime(2026, 11, 17, 2, 48, 32, tzinfo=UTC)
XID = "NVRM: Xid (PCI:0000:3b:00): {}, pid=20441, name=python, {}"


def steps(
    seconds: float,
    count: int,
    zone: str = "",
    start: datetime = START,
    first: int = 100,
    form: str = "%Y-%m-%d %H:%M:%S",
) -> str:
    """A training log with one line a step."""
    lines = []
    for i in range(count):
        stamp = (start + timedelta(seconds=seconds * i)).strftime(form) + zone
        lines.append(
            f"[{stamp}] iteration {first + i}/9000 | elapsed time per iteration (ms): {seconds * 1e3:.1f} | lm loss: 2.1"
        )
    return "\n".join(lines) + "\n"


def timed(folder: Path, **files: str) -> Incident:
    """The incident of these files."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    incident = diagnose(folder, cache=False).incident
    assert incident is not None
    return incident


def kernel(moment: datetime, text: str) -> str:
    """A line as `dmesg -T` prints it."""
    return f"[{moment:%a %b %d %H:%M:%S %Y}] {text}\n"


def row(incident: Incident, words: str) -> Row:
    """The row that says so."""
    return next(r for r in incident.rows if words in r.sentence)


def three_files(folder: Path) -> Path:
    """dmesg, training log and nvidia-smi of one incident, in their programs' own formats."""
    down = datetime(2026, 11, 17, 3, 1, 12, tzinfo=UTC)
    dmesg = ""
    for k in range(4):
        dmesg += kernel(down + timedelta(seconds=20 * k), "mlx5_core 0000:9a:00.0 mlx5_2: Link down")
        dmesg += kernel(down + timedelta(seconds=20 * k + 9), "mlx5_core 0000:9a:00.0 mlx5_2: Link up")
    dmesg += kernel(down + timedelta(seconds=83), XID.format(94, "Contained: SM (0x1). RST: No, D-RST: No"))
    (folder / "dmesg.txt").write_text(dmesg)
    log = steps(1.9, 400) + steps(4.4, 15, start=START + timedelta(seconds=764), first=500)
    log += (
        "node-17:20441:20977 [7] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.7.31<47812> "
        "with status=12 opcode=0 len=0 vendor err 129 (Recv)\n"
    )
    log += steps(4.4, 8, start=START + timedelta(seconds=830), first=515)
    for rank, sequence in ((3, 91822), (31, 91821)):
        log += (
            f"[rank{rank}]:[E1117 03:12:58.{rank:02}0000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "
            f"timeout: WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, Timeout(ms)=600000) "
            "ran for 600012 milliseconds before timing out.\n"
        )
    (folder / "train.log").write_text(log)
    page = (Path(__file__).parent / "incident_three" / "nvidia_smi.txt").read_text()
    (folder / "nvidia_smi.txt").write_text(page)
    return folder


def test_three_files_tell_their_four_facts(tmp_path: Path) -> None:
    diagnosis = diagnose(three_files(tmp_path), cache=False)
    incident = diagnosis.incident
    assert incident is not None and incident.first is not None
    assert "Link down" in incident.first.sentence and incident.first.times == 4
    assert (incident.owner, incident.drain, incident.last_good_step) == ("network", ("node-17",), 499)
    assert row(incident, "steps take 4.4 s instead of 1.9 s").caused_by is not None
    assert row(incident, "status=12").caused_by is not None
    behind = row(incident, "rank 31 is 1 collective behind")
    assert behind.caused_by is not None and "no mismatch of the code" in behind.sentence
    assert row(incident, "94").part is Part.SEPARATE
    assert row(incident, "87 C and 212 of 700 W").part is Part.NOTICE
    assert diagnosis.ranked[0] == "network-congestion" == diagnosis.findings[0].cause
    assert "collective-mismatch" not in diagnosis.ranked[:2]


def test_text_and_json_tell_the_same(tmp_path: Path) -> None:
    diagnosis = diagnose(three_files(tmp_path), cache=False)
    assert diagnosis.incident is not None
    rows = incident_rows(diagnosis.incident)
    text = to_text(diagnosis, width=120)
    assert 4 <= len(rows) <= 12
    assert "fault  03:01:12" in text and "sbatch --exclude=node-17" in text and "kubectl cordon node-17" in text
    answer = to_dict(diagnosis)
    assert answer["drain"] == ["node-17"]
    assert [r["first"] for r in answer["incident"]].count(True) == 1
    assert answer["incident_about"]["first"] == next(r["row"] for r in answer["incident"] if r["first"])


def test_clocks_without_a_tie_prove_no_order(tmp_path: Path) -> None:
    three_files(tmp_path)
    incident = diagnose(tmp_path, cache=False).incident
    assert incident is not None
    assert all(Path(b.earlier.file).name == Path(b.later.file).name for b in incident.before)


def test_step_numbers_show_a_clock_that_is_wrong(tmp_path: Path) -> None:
    late = START + timedelta(seconds=93)
    stopped = (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    )
    incident = timed(
        tmp_path,
        rank0__log=steps(2.0, 50, "Z", form="%Y-%m-%dT%H:%M:%S") + stopped,
        rank1__log=steps(2.0, 50, "Z", start=late, form="%Y-%m-%dT%H:%M:%S") + stopped,
    )
    wrong = next(c for c in incident.clocks if "rank1" in c.file)
    assert wrong.shift_s == pytest.approx(-93.0, abs=1.5)
    assert "50 step numbers" in wrong.known_by


def test_a_job_number_in_two_logs_tells_the_zone(tmp_path: Path) -> None:
    log = (
        steps(5.0, 60)
        + "slurmstepd: error: *** JOB 90122 ON n1 CANCELLED AT 2026-11-17T02:53:40 DUE TO PREEMPTION ***\n"
    )
    control = "[2026-11-17T00:53:40.107] preempted JobId=90122 has been requeued to reclaim resources for JobId=90881\n"
    incident = timed(tmp_path, slurm__out=log, slurmctld__log=control)
    assert incident.first is not None and "preempted" in incident.first.sentence
    assert (incident.owner, incident.drain) == ("none", ())
    assert row(incident, "CANCELLED").caused_by is not None
    assert next(c for c in incident.clocks if "slurmctld" in c.file).shift_s == 7200.0


def test_a_boot_clock_is_ordered_by_cause_alone(tmp_path: Path) -> None:
    dmesg = f"[  100.000000] eth0: up\n[ 5000.000000] {XID.format(79, 'GPU has fallen off the bus.')}\n[ 5001.000000] usb 1-1: new\n"
    log = steps(2.0, 40) + "torch.AcceleratorError: CUDA error: unspecified launch failure\n"
    incident = timed(tmp_path, **{"gpu-9_dmesg__txt": dmesg, "rank0__log": log})
    assert incident.first is not None and ": 79" in incident.first.sentence
    assert incident.drain == ("gpu-9",)
    assert incident.before == ()


def test_what_was_over_while_the_job_went_well_is_separate(tmp_path: Path) -> None:
    early, fault = START - timedelta(hours=3), START + timedelta(seconds=79)
    dmesg = kernel(early, XID.format(13, "Graphics Exception")) + kernel(
        fault, XID.format(79, "GPU has fallen off the bus.")
    )
    log = steps(2.0, 40) + "RuntimeError: CUDA error: unspecified launch failure\n"
    incident = timed(tmp_path, **{"dmesg_gpu-9__txt": dmesg, "rank0__log": log})
    assert incident.first is not None and ": 79" in incident.first.sentence
    assert row(incident, ": 13").part is Part.SEPARATE


@pytest.mark.parametrize(("again", "owner"), [("0000:3b:00", "node"), ("0000:4c:00", "your code")])
def test_one_unit_that_repeats_is_the_card_two_cards_are_the_program(tmp_path: Path, again: str, owner: str) -> None:
    unit = "Graphics SM Warp Exception on (GPC 1, TPC 0, SM 1): Out Of Range Address"
    fault = START + timedelta(seconds=79)
    xid = f"NVRM: Xid (PCI:{again}): 13, pid=20441, name=python, {unit}"
    dmesg = kernel(fault, XID.format(13, unit)) + kernel(fault + timedelta(seconds=20), xid)
    incident = timed(
        tmp_path, **{"dmesg_gpu-9__txt": dmesg, "rank0__log": steps(2.0, 40) + "RuntimeError: CUDA error: misaligned\n"}
    )
    assert incident.owner == owner
    assert bool(incident.drain) == (owner == "node")


def test_no_clock_no_timeline(tmp_path: Path) -> None:
    stopped = (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    )
    incident = timed(
        tmp_path,
        rank0__log=stopped,
        rank1__log="torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
    )
    assert incident.rows == () and "no line" in incident.why_none


FAULTS = {  # as their drivers, schedulers and controllers write them, with who has to act
    "gpu-fell-off-bus": (XID.format(79, "GPU has fallen off the bus."), "node"),
    "gpu-memory-errors": (XID.format(48, "An uncorrectable double bit error (DBE) has been detected"), "node"),
    "nvlink-fault": ("nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "node"),
    "network-congestion": ("mlx5_core 0000:17:00.0 ens1f0: Link down", "network"),
    "input-bursty": ("nfs: server filer-1 not responding, still trying", "storage"),
    "memory-leak": ("python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "your code"),
}
NOISE = (
    "pcieport 0000:98:01.0: AER: Corrected error received: 0000:98:00.0",
    "EDAC MC1: 1 CE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
    "mce: [Hardware Error]: Machine check events logged",
)


@pytest.mark.parametrize("form", ["syslog", "iso", "zoned", "ctime"])
@pytest.mark.parametrize("cause", FAULTS)
def test_a_planted_fault_is_first_whatever_the_clocks(cause: str, form: str, tmp_path: Path) -> None:
    """The machine's clock is off by a few seconds and in some zone; no order is stated that is not so."""
    dice = random.Random(f"{cause} {form}")
    text, owner = FAULTS[cause]
    host, hours, skew = f"gpu-{dice.randint(10, 99)}", dice.choice([0, 2, 8, -5]), dice.uniform(-4, 4)
    fault = START + timedelta(seconds=dice.uniform(0, 4000))
    printed = [(fault - timedelta(seconds=600 * k), NOISE[k % 3]) for k in range(7, 0, -1)]
    printed += [(fault, text), (fault + timedelta(seconds=400), "docker0: port 4(veth1) entered forwarding state")]

    def line(at: datetime, message: str) -> str:
        local = at + timedelta(hours=hours, seconds=skew)
        zone = f"{'+' if hours >= 0 else '-'}{abs(hours):02d}00"
        return {
            "syslog": f"{local:%b %d %H:%M:%S} {host} kernel: {message}\n",
            "iso": f"{local:%Y-%m-%dT%H:%M:%S} {host} kernel: {message}\n",
            "zoned": f"{local:%Y-%m-%dT%H:%M:%S}{zone} {host} kernel: {message}\n",
            "ctime": kernel(local, message),
        }[form]

    begun = fault - timedelta(seconds=120)
    died = fault + timedelta(seconds=dice.uniform(3, 50))
    log = steps(2.0, 60, "Z", begun, form="%Y-%m-%dT%H:%M:%S")
    log += f"[{died:%Y-%m-%dT%H:%M:%S}Z] [rank7]: ncclRemoteError: A call failed possibly due to a network error "
    log += "or a remote process exiting prematurely.\n"
    incident = timed(
        tmp_path, **{f"dmesg-{host}__txt": "".join(line(at, message) for at, message in printed), "train__log": log}
    )
    assert incident.first is not None and text[:30] in incident.first.sentence
    assert incident.owner == owner
    assert incident.drain == ((host,) if owner in ("node", "network") else ())
    true = {f"line {n}": at for n, (at, _) in enumerate(printed, 1)}
    true_of_log = {f"line {n}": begun + timedelta(seconds=2 * n - 2) for n in range(1, 61)} | {"line 61": died}
    for pair in incident.before:
        earlier, later = ((true if "dmesg" in s.file else true_of_log)[s.where] for s in (pair.earlier, pair.later))
        assert earlier <= later, pair


@pytest.mark.parametrize(
    ("head", "offset_s"),
    [
        ("INFO tz Asia/Shanghai; pid 1", 28800.0), ("INFO world 8, zone America/New_York (UTC-05:00)", -18000.0),
        ("INFO [UTC] starts", 0.0), ("INFO the container's clock is UTC", 0.0), ("INFO starts", None),
    ],
)  # fmt: skip
def test_a_zone_that_the_head_states_is_the_files(head: str, offset_s: float | None) -> None:
    lines = [f"2026-11-17 02:48:32,100 {head}", "2026-11-17 02:48:33,100 step 1"]
    stamp = Stamps(lines).own(1)
    assert stamp is not None and stamp.offset_s == offset_s


def test_a_script_that_prints_the_date_first_tells_the_zone_of_what_it_starts() -> None:
    stamps = Stamps(["Tue Nov 17 01:48:30 UTC 2026", "2026-11-17 02:49:02,100 step 1"])
    stamp = stamps.own(1)
    assert stamp is not None and stamp.offset_s == 3600.0


def test_a_listing_of_ages_counts_back_from_its_moment() -> None:
    rows = ["Thu May  8 07:58:21 UTC 2025", "LAST SEEN   TYPE", "12m         Warning   OOMKilling   node/gpu-a31"]
    stamp, listed = Stamps(rows).own(2), Stamps(rows).own(0)
    assert stamp is not None and listed is not None
    assert (listed.from_s - stamp.to_s, listed.from_s - stamp.from_s) == (12 * 60 - 1, 13 * 60)


def test_faults_of_other_machines_and_of_before_a_reboot_are_separate(tmp_path: Path) -> None:
    fault = START + timedelta(seconds=79)
    control = f"[{fault - timedelta(seconds=40):%Y-%m-%dT%H:%M:%S}] error: Nodes cpu-9 not responding\n"
    early = fault - timedelta(seconds=110)
    dmesg = kernel(early, XID.format(48, "DBE")) + kernel(early, "Linux version 5.15.0-91-generic (buildd@lcy02)")
    dmesg += kernel(fault, XID.format(79, "GPU has fallen off the bus."))
    log = steps(2.0, 40) + "RuntimeError: CUDA error: unspecified launch failure\n"
    incident = timed(tmp_path, **{"dmesg_gpu-9__txt": dmesg, "slurmctld__log": control, "rank0__log": log})
    assert incident.first is not None and ": 79" in incident.first.sentence
    assert row(incident, ": 48").part is Part.SEPARATE
    assert row(incident, "cpu-9").part is Part.SEPARATE
