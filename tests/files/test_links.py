"""What `topo -m` and `nvlink -s/-e` show of the links between cards."""

from __future__ import annotations

from pathlib import Path

from tests.files.stated import stated_of

LEGEND = "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"


def matrix(kinds: list[list[str]], nics: list[str] | None = None, rows: int | None = None) -> str:
    count = len(kinds)
    head = "\t".join(
        ["", *(f"GPU{i}" for i in range(count)), *(["NIC0"] if nics else []), "CPU Affinity", "NUMA Affinity"]
    )
    body = [
        "\t".join(
            [
                f"GPU{i}",
                *(" X " if i == j else kinds[i][j] for j in range(count)),
                *([nics[i]] if nics else []),
                "0-31",
                str(i // 2),
            ]
        )
        for i in range(rows or count)
    ]
    body += ["\t".join(["NIC0", *nics, " X ", "", ""])] if nics and rows is None else []
    return "\x1b[4m" + head + "\x1b[0m\n" + "\n".join(body) + "\n" + LEGEND


def test_every_pair_joined_by_nvlink_is_in_line(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "topo.txt", matrix([["NV18"] * 4] * 4, ["PIX", "PIX", "SYS", "SYS"]))
    assert said.state == "healthy"
    for words in (
        "4 GPUs, every pair NV18",
        "1 NICs, nearest at PIX for 2 GPUs, SYS for 2 GPUs",
        "NUMA node 0 has 2 GPUs",
    ):
        assert words in said.text
    assert "nvlink -s" in said.text and "topo -m >" not in said.text


def test_the_legend_is_no_evidence(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "topo.txt", matrix([["SYS"] * 2] * 2))
    assert said.state == "unclear" and "every pair SYS (no NVLink)" in said.text and "nvlink -s" not in said.text


def test_one_gpu_that_no_nvlink_reaches_is_said(tmp_path: Path) -> None:
    kinds = [["SYS" if 3 in (i, j) else "NV12" for j in range(4)] for i in range(4)]
    said = stated_of(tmp_path, "topo.txt", matrix(kinds))
    assert said.state == "unclear" and "GPU3 reaches the others over no NVLinks where they have 12" in said.text


def test_a_matrix_that_is_cut_is_no_proof(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "topo.txt", matrix([["NV18"] * 4] * 4, rows=2).split("\nLegend")[0])
    assert said.state == "unclear" and "no row of GPU2, GPU3" in said.text


def links(errors: int = 0, down: int = 0, cards: int = 2) -> str:
    text = ""
    for gpu in range(cards):
        text += f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n"
        text += "".join(f"\t Link {i}: {'<inactive>' if gpu == 1 and i < down else '26.562 GB/s'}\n" for i in range(4))
    for gpu in range(cards):
        text += f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n"
        text += "".join(
            f"\t Link {i}: Replay Errors: {errors if i == 2 else 0}\n\t Link {i}: CRC Errors: 0\n" for i in range(4)
        )
    return text


def test_links_that_are_up_without_errors_are_in_line(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "nvlink.txt", links())
    assert said.state == "healthy"
    assert "8 NVLinks of 2 GPUs, 8 up at 26.562 GB/s, 0 down, 0 errors counted (crc errors, replay errors)" in said.text


def test_a_link_that_is_down_on_one_card_alone_is_a_fault(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "nvlink.txt", links(down=1))
    assert said.state == "sick" and said.first == "nvlink-fault"


def test_many_replays_are_never_health(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "nvlink.txt", links(errors=5000))
    assert said.state == "sick" and said.first == "nvlink-fault" and "replay errors of link 2" in said.text


def test_links_that_are_all_down_are_said(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "nvlink.txt", links(down=4).replace("26.562 GB/s", "<inactive>"))
    assert said.state == "unclear" and "no NVLink is up" in said.text
