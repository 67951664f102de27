"""What samples of cards show of the cards: idle, busy, waiting, held back, worn out, cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.files.stated import stated_of

TABLE = """\
Tue Nov 18 10:00:00 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.124.06             Driver Version: 570.124.06     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
"""


def card(
    number: int, *, temp: str = "35C", power: str = "71W", used: str = "4MiB", load: str = "0%", ecc: str = "0"
) -> str:
    return (
        f"|   {number}  NVIDIA H100 80GB HBM3          On  |   00000000:1{number}:00.0 Off |  {ecc:>18} |\n"
        f"| N/A   {temp}    P0            {power:>5} /  700W |  {used:>8} /  81559MiB |   {load:>5}      Default |\n"
        "+-----------------------------------------+------------------------+----------------------+\n"
    )


def test_idle_cards_are_called_idle_with_their_numbers(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "smi.txt", TABLE + card(0) + card(1, temp="37C", power="74W"))
    assert said.state == "healthy" and said.first == "none"
    for words in ("2 NVIDIA H100 80GB HBM3 idle", "0% busy", "71-74 W of 700 W", "35-37 C", "0 uncorrected ECC errors"):
        assert words in said.text
    assert "not in this file: clocks, throttle reasons, PCIe link" in said.text and "not for the job" in said.text
    assert "GPU 1: 0% busy, 74 W of 700 W, 37 C" in said.text and "smi.txt line 9" in said.text


def test_one_idle_card_with_work_in_its_memory_beside_busy_ones_is_said(tmp_path: Path) -> None:
    busy = [card(i, temp="61C", power="650W", used="70000MiB", load="99%") for i in range(3)]
    said = stated_of(tmp_path, "smi.txt", TABLE + "".join(busy) + card(3, used="70000MiB"))
    assert said.state == "unclear" and "GPU 3 is idle with 70000 MiB held while 3 other cards are busy" in said.text


def test_an_empty_card_beside_busy_ones_is_counted_and_no_fault(tmp_path: Path) -> None:
    said = stated_of(
        tmp_path, "smi.txt", TABLE + card(0, temp="61C", power="650W", used="70000MiB", load="99%") + card(1)
    )
    assert said.state == "healthy" and "(1 of them idle)" in said.text


def test_uncorrected_errors_in_the_table_are_never_health(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "smi.txt", TABLE + card(0) + card(1, ecc="3"))
    assert said.state == "sick" and said.first == "gpu-memory-errors"


def test_a_lost_card_is_never_health(tmp_path: Path) -> None:
    lost = card(1, temp="ERR!", power="ERR!", load="ERR!", ecc="ERR!").replace("700W", "ERR!")
    said = stated_of(tmp_path, "smi.txt", TABLE + card(0) + lost)
    assert said.state == "sick" and said.first == "gpu-fell-off-bus"


def test_memory_that_a_card_does_not_report_hides_nothing_else(tmp_path: Path) -> None:
    row = (
        card(0, temp="46C", power="5W").replace("    4MiB /  81559MiB", "Not Supported       ").replace("700W", " N/A")
    )
    said = stated_of(tmp_path, "smi.txt", TABLE + row)
    assert said.state == "healthy" and "0% busy, 5 W, 46 C" in said.text


QUERY = """\
==============NVSMI LOG==============
Timestamp                                 : Tue Nov 18 10:00:00 2025
Attached GPUs                             : 1
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    GPU Link Info
        PCIe Generation
            Max                           : 4
            Current                       : 4
        Link Width
            Max                           : 16x
            Current                       : 16x
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : {cap}
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : {heat}
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    Utilization
        Gpu                               : {load} %
    Temperature
        GPU Current Temp                  : {temp} C
    GPU Power Readings
        Power Draw                        : {power} W
        Current Power Limit               : 400.00 W
    Clocks
        SM                                : {clock} MHz
    Max Clocks
        SM                                : 1410 MHz
"""


def query(**changed: object) -> str:
    told: dict[str, object] = {
        "cap": "Not Active",
        "heat": "Not Active",
        "load": 98,
        "temp": 58,
        "power": 331.5,
        "clock": 1410,
    }
    return QUERY.format(**(told | changed))


def test_clear_reasons_are_no_suspicion_of_throttling(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "q.txt", query())
    assert said.state == "healthy"
    for words in (
        "98% busy",
        "332 W of 400 W",
        "58 C",
        "1410 MHz of 1410 MHz",
        "no throttle reason active",
        "PCIe Gen4 x16",
    ):
        assert words in said.text
    assert "throttle 4" not in said.text and "could be" not in said.text


def test_a_thermal_slowdown_under_load_is_found(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "q.txt", query(heat="Active", temp=92, clock=900))
    assert said.state == "sick" and said.first == "thermal-throttle"


def test_a_power_cap_on_an_idle_card_means_nothing(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "q.txt", query(cap="Active", load=0, temp=28, power=15, clock=210))
    assert said.state == "healthy" and "SW power cap (far below" in said.text and "idle" in said.text


CSV = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"


def samples(loads: list[int]) -> str:
    rows = [
        f"2025/11/18 10:{i // 60:02}:{i % 60:02}.000, 0, {load} %, {300 + 100 * load} MiB, 11264 MiB\n"
        for i, load in enumerate(loads)
    ]
    return CSV + "".join(rows)


def test_a_card_that_works_now_and_then_is_not_called_well(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "gpu.csv", samples(([2] * 7 + [95] * 3) * 12))
    assert said.state == "unclear"
    assert (
        "at least half busy in 30% of 120 samples" in said.text and "what it waits for is not in this file" in said.text
    )
    assert said.document["next"][0]["command"].startswith("python train.py")  # type: ignore[index]


def test_a_busy_recording_says_its_numbers_in_any_encoding(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "gpu.csv", samples([96] * 120).encode("utf-16"))
    assert said.state == "healthy" and "96% busy" in said.text and "9900 of 11264 MiB" in said.text


def test_a_list_of_processes_alone_tells_nothing_of_the_cards(tmp_path: Path) -> None:
    text = (
        "pid, process_name, gpu_uuid, used_gpu_memory [MiB]\n11, python, GPU-1, 700 MiB\n12, python, GPU-1, 300 MiB\n"
    )
    said = stated_of(tmp_path, "apps.csv", text)
    assert said.state == "unclear" and "1000 MiB held" in said.text


def test_processes_of_one_card_add_up(tmp_path: Path) -> None:
    head = "# gpu pid type sm mem enc dec command\n# Idx # C/G % % % % name\n"
    moment = "0 11 C 45 10 - - python\n0 12 C 46 10 - - python\n1 - - - - - - -\n"
    said = stated_of(tmp_path, "pmon.txt", head + moment * 2)
    assert "GPU 0: 91% busy" in said.text and "GPU 1: 0% busy" in said.text


def test_dcgmi_dmon_is_read_by_its_own_names(tmp_path: Path) -> None:
    text = "#Entity   GPUTL  POWER     TMPTR  SMCLK\nID                 W         C\nGPU 0     98     651.2     61     1980\nGPU 1     97     645.0     63     1980\n"
    said = stated_of(tmp_path, "dmon.txt", text)
    assert said.state == "unclear" and "97-98% busy, 645-651 W, 61-63 C, 1980 MHz" in said.text


def test_a_blank_of_dcgm_is_no_temperature(tmp_path: Path) -> None:
    text = 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 97\nDCGM_FI_DEV_GPU_TEMP{gpu="0"} 61\nDCGM_FI_DEV_POWER_USAGE{gpu="0"} 9223372036854775794\n'
    said = stated_of(tmp_path, "page.prom", text)
    assert said.state == "healthy" and "97% busy, 61 C" in said.text and " W," not in said.text.split("next")[0]


ROCM = """\
======================= ROCm System Management Interface =======================
================================= Concise Info =================================
GPU  Temp (DieEdge)  AvgPwr  SCLK     MCLK     Fan   Perf  PwrCap  VRAM%  GPU%
0    36.0c           41.0W   800Mhz   1600Mhz  0%    auto  300.0W    0%   0%
1    {temp}           {power}  {clock}  1600Mhz  0%    auto  300.0W   93%   {load}
================================================================================
"""


def test_rocm_smi_table(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "rocm.txt", ROCM.format(temp="35.0c", power="40.0W", clock="800Mhz", load="0%"))
    assert said.state == "healthy" and "2 AMD GPU idle" in said.text and "40-41 W of 300 W" in said.text
    assert "rocm-smi --showuse" in said.text and "nvidia-smi" not in said.text


def test_rocm_smi_json_whole_and_cut(tmp_path: Path) -> None:
    one = '{"Temperature (Sensor edge) (C)": "45.0", "Average Graphics Package Power (W)": "92.0", "GPU use (%)": "0"}'
    whole = stated_of(tmp_path, "rocm.json", f'{{"card0": {one}, "card1": {one}}}')
    assert whole.state == "healthy" and "92 W, 45 C" in whole.text
    cut = stated_of(tmp_path, "cut.json", f'{{"card0": {one}, "card1": {one[:40]}')
    assert cut.state == "unclear" and "cut off" in cut.text and "92 W, 45 C" in cut.text


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_half_a_report_in_xml_says_what_was_lost(tmp_path: Path, part: float) -> None:
    gpu = (
        "<gpu id='{}'><product_name>NVIDIA L4</product_name><utilization><gpu_util>0 %</gpu_util></utilization></gpu>\n"
    )
    text = (
        "<?xml version='1.0' ?>\n<nvidia_smi_log>\n"
        + "".join(gpu.format(f"0000000{i}:00:00.0") for i in range(4))
        + "</nvidia_smi_log>\n"
    )
    said = stated_of(tmp_path, "smi.xml", text[: int(len(text) * part)])
    assert said.state == "unclear"
