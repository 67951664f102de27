"""What people and collectors of logs say of cards and networks, without the formats of their programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.evidence.catalog import fabric, hardware
from stallwise.readers.text.phrases import symptom_in


@pytest.mark.parametrize(
    "text",
    ["ECC uncorrectable: 0. throttling: none.", "Xid: none, link errors: 0", "0 uncorrectable ECC errors this week"],
)
def test_errors_counted_as_none_are_no_complaint(text: str) -> None:
    assert symptom_in(text) == ""


@pytest.mark.parametrize(
    "text", ["uncorrectable ECC error on GPU: 0", "GPU 0 hangs after an hour", "ECC uncorrectable: 12", "xid: 0x4f"]
)
def test_a_number_that_tells_which_one_denies_nothing(text: str) -> None:
    assert symptom_in(text)


def test_nccl_is_read_behind_the_labels_of_a_collector(tmp_path: Path) -> None:
    lines = [
        f'2026-02-03T07:0{n}:13.250Z {{app="fit",pod="fit-{n}"}} NCCL INFO {text}'
        for n in (0, 1)
        for text in (
            "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
            "NET/IB : No device found.",
            f"NET/Socket : Using [0]eth0:10.244.3.{n}<0>",
            "Using network Socket",
        )
    ]
    page = tmp_path / "collected.log"
    page.write_text("\n".join(lines) + "\n")
    evidence = diagnose(str(page)).evidence
    chosen = {(f.scope.node, f.value) for f in evidence.all(fabric.NCCL_NET)}
    assert chosen == {("fit-0", "Socket"), ("fit-1", "Socket")}
    assert len(evidence.all(fabric.NCCL_RDMA_ABSENT)) == 2


def test_a_mail_with_its_headers_is_a_page(tmp_path: Path) -> None:
    mail = (
        "From: ops@lab.example\nDate: Tue, 3 Feb 2026 09:20:05 +0100\nSubject: node 12\n\n"
        "The SM clock of card 3 fell from 1980 MHz to 1005 MHz when it reached 89 degrees, and the job got slower.\n"
    )
    page = tmp_path / "node.eml"
    page.write_text(mail)
    found = diagnose(str(page))
    assert found.evidence.value(hardware.GPU_TEMPERATURE) == 89.0
    assert found.evidence.value(hardware.GPU_CLOCK_FALL) == pytest.approx(1 - 1005 / 1980)
    assert (found.state, found.ranked[0]) == (State.SICK, "thermal-throttle")


@pytest.mark.parametrize(("limit", "held"), [(350, True), (700, False)])
def test_a_limit_far_below_what_the_card_is_made_for_is_seen(tmp_path: Path, limit: int, held: bool) -> None:
    labels = '{gpu="0",modelName="NVIDIA H100 80GB HBM3",Hostname="n4"}'
    state = {"SM_CLOCK": 1020, "POWER_USAGE": limit - 1, "POWER_MGMT_LIMIT": limit, "GPU_UTIL": 100, "GPU_TEMP": 54}
    page = tmp_path / "scrape.prom"
    page.write_text("".join(f"DCGM_FI_DEV_{key}{labels} {value}\n" for key, value in state.items()))
    found = diagnose(str(page))
    assert (found.state is State.SICK and found.ranked[0] == "power-throttle") is held


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("Port 4 of gpu-b09 has symbol errors 65535 and a quarter of the rate.", False),
        ("GPU 2 has NVLink CRC errors 8120 on link 3.", True),
    ],
)
def test_errors_of_another_link_are_not_nvlinks(tmp_path: Path, text: str, counted: bool) -> None:
    page = tmp_path / "note.txt"
    page.write_text(f"We train on 128 GPUs, a step takes 9.8 s. {text}\n")
    assert bool(diagnose(str(page)).evidence.all(hardware.NVLINK_ERRORS)) is counted
