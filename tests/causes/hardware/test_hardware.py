# ruff: noqa: E501
"""Hardware verdicts by name: what is broken is named, what is normal is not."""

from __future__ import annotations

import numpy as np
import pytest

from stallwise.causes.hardware.pcie_link_downgrade import pcie_link_downgrade
from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.gather import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Source, Table

HEADER = "index, name, utilization.gpu [%], temperature.gpu, power.draw [W], power.limit [W], power.default_limit [W], clocks.sm [MHz], clocks_event_reasons.active, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n"


def row(gpu: int = 0, use: int = 99, heat: int = 60, watt: int = 650, limit: int = 700, default: int = 700, clock: int = 1755,
        mask: int = 0, gen: int = 5, width: int = 16) -> str:  # fmt: skip
    return f"{gpu}, NVIDIA H100 80GB HBM3, {use} %, {heat}, {watt} W, {limit} W, {default} W, {clock} MHz, 0x{mask:016x}, {gen}, 5, {width}, 16\n"


def diagnosed(*texts: str) -> Diagnosis:
    evidence = Evidence()
    for number, text in enumerate(texts):
        formats, items = read_artifact(Artifact(f"file{number}", content=text.encode()))
        evidence.formats += formats
        evidence.add(items)
    return examine(evidence)


def ranked(*texts: str) -> tuple[str, ...]:
    return diagnosed(*texts).ranked


def calm(*texts: str) -> bool:
    return diagnosed(*texts).state is not State.SICK


def smi(*rows: str) -> str:
    return HEADER + "".join(rows)


NORMAL = {
    "power cap at the default limit under load": smi(*[row(watt=698, clock=1410, mask=4)] * 12),
    "low link and clock at idle": smi(*[row(use=0, watt=70, clock=345, mask=1, gen=1)] * 12),
    "a moment of thermal slowdown": smi(*[row()] * 30, row(mask=0x20)),
    "cards that differ by a few percent": smi(
        row(0, clock=1755), row(1, clock=1740), row(2, clock=1710), row(3, clock=1755)
    ),
    "corrected errors": "index, utilization.gpu [%], ecc.errors.corrected.volatile.total, ecc.errors.uncorrected.volatile.total\n0, 99 %, 3, 0\n",
    "a limit lowered a little": smi(*[row(limit=660, watt=650, mask=4)] * 5),
}


@pytest.mark.parametrize("what", NORMAL)
def test_what_is_normal_is_healthy(what: str) -> None:
    assert calm(NORMAL[what])


BROKEN = {
    "thermal-throttle": smi(*[row(clock=1755)] * 10, *[row(heat=88, clock=1200, mask=0x20)] * 10),
    "power-throttle": smi(*[row(limit=300, watt=298, clock=900, mask=4)] * 5),
    "pcie-link-downgrade": smi(*[row(0)] * 4, *[row(1, gen=2)] * 4),
    "gpu-memory-errors": "index, utilization.gpu [%], remapped_rows.pending, remapped_rows.failure\n0, 99 %, Yes, No\n",
}


@pytest.mark.parametrize("cause", BROKEN)
def test_what_is_broken_is_named(cause: str) -> None:
    assert ranked(BROKEN[cause])[0] == cause


def test_the_power_brake_is_power_even_when_the_slowdown_bit_is_set_too() -> None:
    assert ranked(smi(*[row(mask=0x88, clock=900)] * 5))[0] == "power-throttle"


def test_a_card_far_behind_its_neighbours_without_a_reason_is_held_by_power_when_cool() -> None:
    text = "".join(f'DCGM_FI_DEV_SM_CLOCK{{gpu="{g}"}} {c}\nDCGM_FI_DEV_POWER_USAGE{{gpu="{g}"}} {w}\nDCGM_FI_DEV_GPU_TEMP{{gpu="{g}"}} {t}\nDCGM_FI_DEV_GPU_UTIL{{gpu="{g}"}} 100\n'
                   for g, c, w, t in ((0, 1380, 690, 64), (1, 1395, 695, 65), (2, 400, 190, 45), (3, 1380, 692, 63)))  # fmt: skip
    assert ranked(text)[0] == "power-throttle"


def test_heat_without_reasons_is_told_by_temperature_and_clock() -> None:
    header = "index, name, utilization.gpu [%], temperature.gpu, clocks.sm [MHz]\n"
    rows = [f"0, NVIDIA A100, 99 %, {70 + i}, {1410 if i < 18 else 1100} MHz\n" for i in range(24)]
    assert ranked(header + "".join(rows))[0] == "thermal-throttle"


def test_counters_of_thermal_violation_that_grow() -> None:
    scrape = 'DCGM_FI_DEV_GPU_UTIL{{gpu="0"}} 99\nDCGM_FI_DEV_SM_CLOCK{{gpu="0"}} 1300\nDCGM_FI_DEV_THERMAL_VIOLATION{{gpu="0"}} {}\n'
    assert ranked("".join(scrape.format(n) for n in (100, 900, 1800)))[0] == "thermal-throttle"
    assert calm("".join(scrape.format(n) for n in (100, 100, 100)))


def test_a_code_of_a_partition_is_not_mistaken_for_its_number() -> None:
    log = "[1.0] NVRM: Xid (PCI:0000:41:00 GPU-I:05): 31, pid=1, name=python, MMU Fault\n"
    assert ranked(log)[0] == "application-fault"


def xid(code: int, bus: str = "0000:3b:00", text: str = "pid=77, name=python, x", time: float = 10.0) -> str:
    return f"[{time:12.6f}] NVRM: Xid (PCI:{bus}): {code}, {text}\n"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (xid(79), "gpu-fell-off-bus"),
        (
            xid(119, text="pid=1, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP!"),
            "gpu-fell-off-bus",
        ),
        (xid(48) + xid(45), "gpu-memory-errors"),
        (
            xid(63, text="Row Remapper: New row marked for remapping, reset gpu to activate.") + xid(94),
            "gpu-memory-errors",
        ),
        (xid(45) + xid(95), "gpu-memory-errors"),
        (xid(74, text="NVLink: fatal error detected on link 4"), "nvlink-fault"),
        (xid(13), "application-fault"),
        (xid(43) + xid(45), "application-fault"),
        (xid(31) + xid(79), "gpu-fell-off-bus"),
        ("[1.0] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n", "nvlink-fault"),
        (
            "Jul  9 04:12:52 gpu-1 kernel: [11.2] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n",
            "gpu-fell-off-bus",
        ),
    ],
)
def test_driver_codes_lead_to_their_cause(log: str, cause: str) -> None:
    assert ranked(log)[0] == cause


def test_cleanup_alone_is_no_cause() -> None:
    assert calm("[1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.54.03\n" + xid(45))


LINK = "63.012 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:3a:00.0 (capable of 126.0 Gb/s)"


@pytest.mark.parametrize(
    ("line", "listed", "found"),
    [
        ("pci 0000:3b:00.0", "00000000:3b:00.0", True),
        ("pci 0000:2c:00.0", "00000000:3b:00.0", False),  # a chipset's function
        ("mlx5_core 0000:2c:00.0", "00000000:3b:00.0", True),
        ("pci 0000:2c:00.0", "", True),
    ],
)
def test_a_narrow_link_of_what_is_no_card_is_no_cards_trouble(line: str, listed: str, found: bool) -> None:
    evidence = Evidence()
    evidence.add([Fact(hw.PCIE_LIMITED, f"{line}: {LINK}", Source("dmesg", "line 4"))])
    sample = {"time_s": np.zeros(1), "power_w": np.full(1, 90.0)}
    evidence.add([Table("gpu.samples", sample, Source("smi"), Scope(gpu=0), {"name": "GPU", "bus_id": listed})])
    assert bool(pcie_link_downgrade.judge(evidence)) is found
