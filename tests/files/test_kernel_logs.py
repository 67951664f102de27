"""What the kernel's messages and NVIDIA's bug report show: faults in their order, quiet logs, other services left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.files.stated import stated_of
from tests.files.test_cards import query

BOOT = """\
[    0.000000] Linux version 5.15.0-91-generic (buildd@lcy02) (gcc) #101-Ubuntu SMP
[    1.234567] usb 1-1: new high-speed USB device number 2 using xhci_hcd
[    2.234567] ACPI Error: Method parse/execution failed
[    8.234567] pci 0000:03:00.0: 32.000 Gb/s available PCIe bandwidth, limited by 2.5 GT/s x16 link at 0000:00:02.0 (capable of 126.016 Gb/s with 8 GT/s x16 link)
[   12.945678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
[   13.945678] EDAC MC0: Giving out device to module sb_edac controller Haswell
"""


def test_a_quiet_boot_is_in_line_with_its_count_and_driver(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "dmesg.txt", BOOT)
    assert said.state == "healthy" and "6 kernel lines" in said.text and "no Xid" in said.text
    assert "driver 550.54.15 loads" in said.text and "speaks for the kernel log only" in said.text


def test_errors_come_in_their_order_with_their_meaning(tmp_path: Path) -> None:
    said = stated_of(
        tmp_path,
        "dmesg.txt",
        BOOT
        + "[ 9123.456789] NVRM: Xid (PCI:0000:3b:00): 63, pid=42, name=python, Row Remapper: New row marked\n"
        + "[ 9123.556789] NVRM: Xid (PCI:0000:3b:00): 48, pid=42, name=python, DBE (double bit error)\n"
        + "[ 9124.456789] NVRM: Xid (PCI:0000:3b:00): 45, pid=42, name=python, Ch 00000008\n",
    )
    assert said.state == "sick" and said.first == "gpu-memory-errors"
    assert "Xid 63 on 0000:3b:00 (line 7), then Xid 48 on 0000:3b:00 (line 8), then Xid 45" in said.text
    assert "double-bit memory error" in said.text and "dmesg.txt line 8" in said.text
    assert "sudo dmesg" not in said.text  # it is what was brought


def test_a_fault_of_an_earlier_boot_is_said_to_be_one(tmp_path: Path) -> None:
    text = (
        "Jul 06 21:46:01 node7 kernel: Linux version 5.15.0\n"
        "Jul 06 21:46:02 node7 kernel: NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        "-- Boot 0123456789abcdef0123456789abcdef --\n"
        "Jul 07 08:00:01 node7 kernel: Linux version 5.15.0\n"
        "Jul 07 08:00:09 node7 kernel: usb 1-1: new device\n"
    )
    said = stated_of(tmp_path, "journal.txt", text)
    assert said.first == "gpu-fell-off-bus" and "before the last boot" in said.text and "lspci" in said.text


def test_an_error_of_a_web_service_is_no_fault_of_a_gpu(tmp_path: Path) -> None:
    line = "Jul  7 10:00:02 web1 nginx[991]: connect() failed (111: Connection refused) while connecting to upstream\n"
    kernel = "Jul  7 10:00:0{} web1 kernel: [12345.678901] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"
    said = stated_of(tmp_path, "syslog", "".join(kernel.format(i) + line for i in range(4)))
    assert said.state == "healthy" and "4 lines of other services left out" in said.text
    assert "wrong-network-interface" not in said.text


def test_a_log_without_a_gpu_driver_tells_nothing_of_a_gpu(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "dmesg.txt", "".join(BOOT.splitlines(keepends=True)[:3]))
    assert said.state == "unclear" and "no GPU driver speaks in this log" in said.text


def test_the_killer_is_quoted(tmp_path: Path) -> None:
    text = BOOT.replace("[ ", "[ 1") + (
        "[19999.123456] python invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n"
        "[19999.223456] Out of memory: Killed process 4242 (python) total-vm:812345678kB, anon-rss:512345678kB\n"
    )
    said = stated_of(tmp_path, "dmesg.txt", text)
    assert said.state == "sick" and said.first == "job-failed" and "Killed process 4242 (python)" in said.text


def test_memory_errors_of_an_amd_gpu(tmp_path: Path) -> None:
    text = (
        "kern  :info  : 2026-01-07T10:00:25,890123-06:00 amdgpu 0000:01:00.0: amdgpu: Fetched VBIOS from VFCT\n"
        "kern  :err   : 2026-01-07T10:02:00,123456-06:00 amdgpu 0000:01:00.0: {14}poison is consumed by client 12, kick off gpu reset flow\n"
        "kern  :err   : 2026-01-07T10:02:01,345678-06:00 amdgpu 0000:02:00.0: amdgpu: Saved bad pages 130 reaches threshold value 128\n"
    )
    said = stated_of(tmp_path, "dmesg.txt", text)
    assert said.first == "gpu-memory-errors" and "Saved bad pages 130" in said.text and "amd-smi" in said.text
    assert "nvidia-smi -r" not in said.text


def report(kernel: str, smi: str) -> str:
    line = "_" * 44
    return (
        "\nStart of NVIDIA bug report log file.  Please include this file, along\nwith a detailed description of your problem\n\n"
        "nvidia-bug-report.sh Version: 30234565\n\n"
        f"{line}\n\n*** /etc/issue\nUbuntu 22.04\n\n{line}\n\n"
        "Sep 23 11:52:00 box gdm[12]: Unable to init server: Could not connect: Connection refused\n"
        f"{line}\n\ndmesg:\n\n{kernel}\n{line}\n\n/usr/bin/nvidia-smi --query\n\n{smi}\n{line}\n\n"
        "LnkSta: Speed 2.5GT/s (downgraded), Width x16\n"
    )


def test_a_bug_report_shows_cards_and_kernel_and_nothing_else(tmp_path: Path) -> None:
    smi = query(load=0, temp=28, power=9, clock=139)
    said = stated_of(tmp_path, "nvidia-bug-report.log.gz", gzip.compress(report(BOOT, smi).encode()))
    assert said.state == "healthy" and "idle" in said.text and "28 C" in said.text and "no Xid" in said.text
    assert "pcie-link-downgrade" not in said.text and "interface" not in said.text


def test_a_bug_report_with_a_lost_card(tmp_path: Path) -> None:
    lost = BOOT + "[ 9123.456789] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
    text = report(lost, query(load=0))
    said = stated_of(tmp_path, "nvidia-bug-report.log", text)
    line = next(at for at, words in enumerate(text.splitlines(), 1) if "Xid (PCI" in words)
    assert said.first == "gpu-fell-off-bus" and f"nvidia-bug-report.log line {line}" in said.text


def test_half_a_packed_report_is_no_proof(tmp_path: Path) -> None:
    packed = gzip.compress(report(BOOT * 40, query(load=0)).encode())
    said = stated_of(tmp_path, "nvidia-bug-report.log.gz", packed[: len(packed) // 2])
    assert said.state != "healthy" and "could be read" in said.text


XID_BOOT = (
    "[    7.812345] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
    "[    9.112345] nvidia-uvm: Loaded the UVM driver, major device number 509.\n"
)


@pytest.mark.parametrize(
    ("code", "means"), [(62, "internal controller halted"), (54, "auxiliary power"), (109, "timed out")]
)
def test_a_card_that_failed_inside_did_not_leave_the_bus(tmp_path: Path, code: int, means: str) -> None:
    xid = f"[ 8123.554321] NVRM: Xid (PCI:0000:3b:00): {code}, pid='<unknown>', name=<unknown>, 2027(321c) 00000000 00000000\n"
    said = stated_of(tmp_path, "dmesg.log", XID_BOOT + xid)
    assert said.state == "unclear" and "fell off the bus" not in said.text
    assert f"Xid {code} on 0000:3b:00" in said.text and means in said.text and "(line 3)" in said.text


def test_the_code_decides_what_left_the_bus(tmp_path: Path) -> None:
    xid = (
        "[ 8123.554321] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    )
    assert stated_of(tmp_path, "dmesg.log", XID_BOOT + xid).first == "gpu-fell-off-bus"


def test_a_message_that_repeats_is_counted_and_not_its_kept_lines(tmp_path: Path) -> None:
    aer = "".join(
        f"[  {900 + n}.554321] pcieport 0000:3a:00.0: AER: Corrected error received: 0000:3b:00.0\n" for n in range(60)
    )
    assert "60 x PCIe error" in stated_of(tmp_path, "dmesg.log", XID_BOOT + aer).text
