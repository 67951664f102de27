# ruff: noqa: E501  (lines as nvidia-smi prints them)
"""nvidia-smi -q, -q -x, dmon, the plain table, topo -m and nvlink -s: the same words in other clothes."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.reading import read_artifact
from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.fact import Fact, Table
from stallwise.readers import nvidia_smi_csv, nvidia_smi_report
from stallwise.readers.native import nvidia_smi_nvlink, nvidia_smi_topo

SMI = Path(__file__).parents[1] / "fixtures" / "smi"


def one_table(reader: object, path: Path) -> Table:
    artifact = Artifact(path.name, path)
    assert reader.recognises(path.name, artifact.head)  # type: ignore[attr-defined]
    (table,) = [i for i in reader.read(artifact) if isinstance(i, Table)]  # type: ignore[attr-defined]
    return table


def from_text(reader: object, text: str) -> list[object]:
    artifact = Artifact("x", content=text.encode())
    assert reader.recognises("x", artifact.head)  # type: ignore[attr-defined]
    return list(reader.read(artifact))  # type: ignore[attr-defined]


def test_text_and_xml_of_one_card_say_the_same() -> None:
    text, xml = (
        one_table(nvidia_smi_report, SMI / "nvidia_smi_q.txt"),
        one_table(nvidia_smi_report, SMI / "nvidia_smi_q.xml"),
    )
    steady = {"power_limit_w": 700.0, "power_default_limit_w": 700.0, "clock_sm_max_hz": 1980e6, "pcie_gen_max": 5.0,
              "pcie_width": 16.0, "memory_total_bytes": 143771 * 2**20, "remap_pending": 0.0, "ecc_uncorrected": 0.0,
              "ecc_corrected": 0.0, "thermal_margin_c": 50.0, "reasons": 1.0, "utilisation_share": 0.0}  # fmt: skip
    for table in (text, xml):
        assert table.meta["name"] == "NVIDIA H200"
        assert {k: table.columns[k][0] for k in steady} == steady
    assert text.columns.keys() == xml.columns.keys()


def test_hardware_slowdown_below_its_parent_sets_both_bits() -> None:
    text = """==============NVSMI LOG==============
GPU 00000000:07:00.0
    Product Name                       : Tesla V100
    Clocks Throttle Reasons
        HW Slowdown                    : Active
            HW Thermal Slowdown        : Active
        SW Power Cap                   : Not Active
    Power Readings
        Power Draw                     : 100.00 W
        Power Limit                    : 300.00 W
    ECC Errors
        Volatile
            Double Bit
                Device Memory          : 2
                Total                  : 2
"""
    (table,) = [i for i in from_text(nvidia_smi_report, text) if isinstance(i, Table)]
    assert table.columns["reasons"][0] == 0x48
    assert table.columns["power_limit_w"][0] == 300.0 and table.columns["ecc_uncorrected"][0] == 2.0


def test_xml_with_entities_is_refused() -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><nvidia_smi_log><gpu>&b;</gpu></nvidia_smi_log>'
    with pytest.raises(UnreadableInput, match="entities"):
        list(nvidia_smi_report.read(Artifact("x", content=bomb)))


def test_xml_cut_in_the_middle_gives_what_is_whole_or_says_so() -> None:
    data = (SMI / "nvidia_smi_q.xml").read_bytes()
    with pytest.raises(UnreadableInput, match="damaged"):
        list(nvidia_smi_report.read(Artifact("x", content=data[: len(data) // 2])))


def test_dmon_columns_are_found_by_their_header() -> None:
    table = one_table(nvidia_smi_csv, SMI / "dmon.txt")
    assert table.columns["clock_sm_hz"].tolist() == [1980e6, 345e6, 345e6]
    assert table.columns["power_w"].tolist() == [127.0, 84.0, 79.0]


def test_the_plain_table_is_read() -> None:
    text = """Sun Nov 15 00:55:42 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    2 |
| N/A   63C    P0            697W /  700W |   74102MiB /  81559MiB |    100%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
    (table,) = [i for i in from_text(nvidia_smi_report, text) if isinstance(i, Table)]
    assert table.meta == {"name": "NVIDIA H100 80GB HBM3", "bus_id": "00000000:1b:00.0"}
    assert table.columns["utilisation_share"][0] == 1.0 and table.columns["ecc_uncorrected"][0] == 2.0
    assert table.columns["memory_used_bytes"][0] == 74102 * 2**20


def test_topology_pairs_and_their_paths() -> None:
    text = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-31\t0\nGPU1\tNV18\t X \tSYS\t0-31\t0\nNIC0\tPIX\tSYS\t X \t\t\n\nLegend:\n"
    (table,) = [i for i in from_text(nvidia_smi_topo, text) if isinstance(i, Table)]
    pairs = {(a, b): k for a, b, k in zip(*(table.columns[c] for c in ("first", "second", "kind")), strict=True)}
    assert pairs["GPU0", "GPU1"] == "NV18" and pairs["GPU1", "NIC0"] == "SYS" and ("GPU0", "GPU0") not in pairs


def test_a_single_gpu_has_no_pairs_in_colour() -> None:
    _, items = read_artifact(Artifact("topo.txt", SMI / "topo.txt"))
    (paths,) = [i for i in items if isinstance(i, Table) and i.kind == "gpu.paths"]
    assert len(paths) == 0 and paths.meta["devices"][0] == "GPU0"


def test_links_that_are_down_are_counted() -> None:
    text = "GPU 0: NVIDIA B200 (UUID: GPU-0)\n\t Link 0: 53.125 GB/s\n\t Link 1: <inactive>\nGPU 1: NVIDIA B200 (UUID: GPU-1)\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
    found = [i for i in from_text(nvidia_smi_nvlink, text) if isinstance(i, Fact)]
    down = {f.scope.gpu: f.number for f in found if f.quantity is hw.NVLINK_INACTIVE}
    assert down == {0: 1.0, 1: 1.0}


def test_scrapes_of_dcgm_are_samples() -> None:
    scrape = 'DCGM_FI_DEV_SM_CLOCK{{gpu="0",modelName="NVIDIA H100",Hostname="n1"}} {}\nDCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="n1"}} 100\n'
    text = (
        scrape.format(1980)
        + scrape.format(1200)
        + 'DCGM_FI_DEV_XID_ERRORS{gpu="0"} 79\nDCGM_FI_DEV_XID_ERRORS{gpu="1"} 0\n'
    )
    items = read_artifact(Artifact("dcgm.txt", content=text.encode()))[1]
    (table,) = [i for i in items if isinstance(i, Table)]
    assert table.columns["clock_sm_hz"].tolist() == [1980e6, 1200e6] and table.scope.node == "n1"
    assert [f.number for f in items if isinstance(f, Fact) and f.quantity is hw.GPU_XID] == [79.0]
