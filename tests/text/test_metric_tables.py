"""What books of gauges hold besides single numbers: rows of tables, lines that belong together, numbers made of two."""

from __future__ import annotations

import numpy as np
import pytest

from stallwise.doctor.messages import log_metrics_of
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.fact import Fact, Table
from stallwise.readers.text.metric_catalogue import TableForm
from stallwise.readers.text.metric_tables import TableRows, cell_of

NCCL = "n1:41:52 [0] NCCL INFO "
OLD_TORCH = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.00 GiB total capacity; 8.00 GiB already allocated; "
    "1.00 GiB free; 12.00 GiB reserved in total by PyTorch)"
)


def read(text: str) -> tuple[dict[str, list[float | str]], dict[str, Table]]:
    items = [item for _, found in log_metrics_of(Artifact("x.log", content=text.encode())) for item in found]
    facts: dict[str, list[float | str]] = {}
    for fact in (i for i in items if isinstance(i, Fact)):
        facts.setdefault(fact.quantity.name, []).append(fact.value)
    return facts, {i.kind: i for i in items if isinstance(i, Table)}


def test_calls_belong_to_the_communicator_that_was_announced() -> None:
    call = "AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root 0 comm {} [nranks=2] stream 0x1"
    text = [f"comm 0x{n}a rank {n} nranks 2 cudaDev {n} busId 4e000 commId 0x9{n}" for n in (0, 1)]
    text += [call.format(pointer) for pointer in ("0x1a", "0x77", "0x0a")]
    _, tables = read("\n".join(NCCL + line for line in text))
    waits = tables["collective.waits"].columns
    assert waits["rank"].tolist() == [1, 0] and waits["group"].tolist() == ["0x91", "0x90"]
    assert waits["sequence"].tolist() == [0x1F, 0x1F] and waits["line"].tolist() == [3, 5]
    assert tables["nccl.ranks"].columns["rank"].tolist() == [0, 1]


def test_lines_that_say_the_same_are_one_row() -> None:
    lines = [f"{NCCL}Channel {n:02d}/0 : {n % 2}[0] -> 1[1] via P2P/CUMEM" for n in range(40)]
    (table,) = [t for kind, t in read("\n".join(lines))[1].items() if kind == "nccl.channels"]
    assert table.columns["count"].tolist() == [20, 20] and table.columns["sender"].tolist() == [0, 1]


def test_every_interface_of_a_line_is_told_with_its_node() -> None:
    found = log_metrics_of(
        Artifact("x", content=f"{NCCL}NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.1.0.1<0>\n".encode())
    )
    told = [(i.value, i.scope.node) for _, items in found for i in items if isinstance(i, Fact)]
    assert told == [("eth0:10.0.0.1", "n1"), ("eth1:10.1.0.1", "n1")]


def test_what_is_reserved_beyond_what_is_allocated_holds_no_tensor() -> None:
    facts, _ = read(OLD_TORCH)
    assert facts["memory.reserved_unallocated"] == [4 * 2.0**30] and facts["memory.request"] == [2 * 2.0**30]


def test_a_shape_is_as_many_bytes_as_its_elements() -> None:
    facts, _ = read("OOM when allocating tensor with shape[64,2,10] and type half on /job:localhost")
    assert facts["memory.request"] == [64 * 2 * 10 * 2] and facts["memory.shape"] == ["64,2,10"]
    assert read("OOM when allocating tensor with shape[3] and type qint32")[0]["memory.request"] == [12.0]


def test_a_setting_is_told_only_beside_the_failure_that_it_explains() -> None:
    setting = "gpu_memory_utilization=0.9, max_model_len=4096\n"
    assert "memory.fraction" not in read(f"{setting}out of memory\n")[0]
    facts, _ = read(f"{setting}ValueError: No available memory for the cache blocks.\n")
    assert facts["memory.fraction"] == [0.9] and facts["memory.kv_no_room"] == [1.0]


@pytest.mark.parametrize(("keep", "told"), [("first", 1.0), ("last", 2.0), ("rate", 3.0)])
def test_what_is_kept_of_rows_that_are_one(keep: str, told: float) -> None:
    form = TableForm(
        columns={"who": ("who", ""), "rate": ("rate", np.nan), "n": ("@count", 0)}, alike=("who",), keep=keep
    )
    rows = TableRows("k", form)
    for line, rate in enumerate((1.0, 3.0, 2.0)):
        rows.add({"who": "a", "rate": rate}, line)
    (table,) = rows.table("f")
    assert table.columns["rate"].tolist() == [told] and table.columns["n"].tolist() == [3]


def test_cells_are_of_their_columns_kind() -> None:
    assert cell_of(None, -1) == -1 and cell_of(7.0, -1) == 7 and cell_of(1e30, -1) == -1
    assert cell_of("x", 0.0) == 0.0 and cell_of(7.0, "") == "7" and cell_of("x", "") == "x"
