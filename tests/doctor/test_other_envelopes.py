"""The same facts come out of the same numbers and lines, whatever notation, carrier or file they came in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stallwise.doctor.gather import artifacts_of, gather
from stallwise.evidence.artifact import Artifact
from stallwise.readers.shapes.lines import Peeler, line_of, uncarried
from stallwise.readers.shapes.tree import upright
from stallwise.readers.shapes.unwrap import plain

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from retold import TELLINGS, File

CARD = File(
    "smi.csv",
    "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks.current.sm [MHz]\n"
    + "".join(
        f"2026/03/02 15:10:{s:02d}.000, 0, NVIDIA H100 80GB HBM3, {97 - s} %, 13312 MiB, {650 + s}.50 W, {1700 - s} MHz\n"
        for s in range(8)
    ),
)
LEAK = File("memory.csv", "minute,system_used_gb_list\n" + "".join(f"{2 * m},{9.5 + m * 0.6:.1f}\n" for m in range(12)))
ENGINE = File(
    "engine.csv",
    "t_s,num_requests_running,num_requests_waiting,kv_cache_usage_perc\n"
    + "".join(f"{15 * i},{17 + i},{22 + 9 * i},0.{30 + i}\n" for i in range(8)),
)
PAIRS = File(
    "pairs.log",
    "$ CUDA_VISIBLE_DEVICES=0,1 NCCL_DEBUG=INFO torchrun --nproc_per_node=2 allreduce.py\n"
    "10:00:01 node-01:4100:4140 [0] NCCL INFO Channel 00 : 0[1000] -> 1[2000] via P2P/IPC\n"
    "no output for 300 s\n"
    "$ CUDA_VISIBLE_DEVICES=0,1 NCCL_P2P_DISABLE=1 torchrun --nproc_per_node=2 allreduce.py\n"
    "10:09:07 node-01:4200:4240 [0] NCCL INFO Channel 00 : 0[1000] -> 1[2000] via SHM/direct\n"
    "all_reduce ok\n",
)
STACK = File(
    "stack.txt",
    "Traceback (most recent call last):\n"
    '  File "/work/train.py", line 88, in step\n'
    "    loss = vocab_parallel_cross_entropy(logits, labels)\n"
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB (GPU 0; 79.15 GiB total capacity; "
    "70.19 GiB already allocated; 4.88 GiB free; 70.22 GiB reserved in total by PyTorch)\n",
)
PAGE = File(
    "smi_q.txt",
    "==============NVSMI LOG==============\n\nTimestamp                                 : Mon Sep  1 14:22:05 2025\n"
    "Driver Version                            : 570.172.08\n\nAttached GPUs                             : 1\n"
    "GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"
    "    Temperature\n        GPU Current Temp                  : 63 C\n"
    "    GPU Power Readings\n        Average Power Draw                : 199.60 W\n"
    "        Current Power Limit               : 200.00 W\n",
)


def _facts(files: list[File], folder: Path) -> list[str]:
    folder.mkdir()
    for f in files:
        (folder / f.name).write_bytes(f.text.encode() if f.data is None else f.data)
    found = gather([str(folder)], cache=False, workers=1)
    return sorted(
        [
            f"fact {name} {fact.scope} {fact.value:.6}"
            if isinstance(fact.value, float)
            else f"fact {name} {fact.scope} {fact.value}"
            for name, facts in found.facts.items()
            for fact in facts
        ]
        + [f"series {s.quantity.name} {s.scope} {s.x.tolist()} {s.values.round(9).tolist()}" for s in found.all_series]
        + [f"table {table.kind} {len(table)} {sorted(table.columns)}" for table in found.tables]
    )


NOTATIONS = ("yaml_rows", "json_columns", "json_split", "markdown_table", "column_t", "spreadsheet")
FILES = ("utf16", "one_zip", "tail_heads", "cat_prompts")
CARRIED = ("kubectl_stamps", "syslog", "mpirun_tags", "srun_label", "typescript", "indented_block")


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (CARD, (*NOTATIONS, *FILES, "other_order")),
        (LEAK, (*NOTATIONS, *FILES, "xml_rows", "other_order", "shouted")),
        (ENGINE, (*NOTATIONS[:3], *FILES, "xml_rows", "column_t", "spreadsheet", "dashes", "shouted")),
        (PAIRS, (*CARRIED, *FILES)),
        (STACK, (*FILES, "kubectl_stamps", "indented_block", "doubled_blanks")),
        (PAGE, (*CARRIED, *FILES)),
    ],
    ids=lambda x: x.name if isinstance(x, File) else "",
)
def test_other_clothes_change_no_fact(file: File, names: tuple[str, ...], tmp_path: Path) -> None:
    plainly = _facts([file], tmp_path / "as_it_is")
    assert any(key.startswith(("series", "table", "fact memory")) for key in plainly)
    other = {name: _facts(TELLINGS[name]([file]), tmp_path / name) for name in names}
    assert {name: found for name, found in other.items() if found != plainly} == {}


def test_a_launcher_s_number_yields_to_the_rank_that_a_program_names() -> None:
    peeler = Peeler({})
    assert line_of(1, "0: [16:00:00] [rank 3] batch 50/400", "job.log", peeler).rank == 3
    assert line_of(2, "0: batch 50/400", "rank1.log", peeler, rank=1).rank == 1
    assert line_of(3, "[1,5]<stdout>: batch 50/400", "job.log", peeler).rank == 5


def test_carriers_are_taken_off_one_inside_the_other() -> None:
    line = "$ torchrun --nproc_per_node=2 allreduce.py"
    assert uncarried(f"trainer-1  | 2024-05-06T07:08:09.123456789Z 0: {line}") == line
    assert uncarried(line) == line
    assert len(uncarried("1: " * 5000)) > 14_000  # no line is taken apart without end


@pytest.mark.parametrize(
    "text",
    [
        '{"settings": {"lr": 0.1}, "events": [{"message": "a", "level": "info"}, {"message": "b", "level": "info"}]}',
        '[{"message": "a", "level": "info"}, {"loss": 2.5, "step": 4}]',
        '{"message": "a", "step": 1}\n{"message": "b", "step": 2}\n{"loss": 3}\n',
    ],
    ids=["beside settings", "beside rows", "lines without a level"],
)
def test_messages_beside_other_content_do_not_hide_it(text: str) -> None:
    assert plain(Artifact("x.json", content=text.encode())).text() == text


def test_moments_of_an_export_are_no_numbers_of_the_program() -> None:
    rows = [
        f'{{"timestamp": 17723712{i:02d}000, "message": "loss 2.5", "ingestionTime": 17723712{i:02d}812, "step": {i}}}'
        for i in range(3)
    ]
    told_lines = plain(Artifact("x.json", content="\n".join(rows).encode())).lines()
    assert told_lines[1] == "2026-03-01T13:20:01.0000000Z loss 2.5 step=1"


def test_a_layout_with_indented_parts_is_no_block_of_code() -> None:
    for text in (PAGE.text, "Section\n\n  kernel (1, 1, 1)\n    Metric\n    Value\n", STACK.text):
        assert plain(Artifact("x.txt", content=text.encode())).text() == text


def test_names_of_files_part_a_text_and_prompts_end_what_cat_showed(tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    path.write_text("$ cat a.csv\nx,y\n1,2\n$ nvidia-smi\nno devices\n$ cat train.py\nprint(1)\n")
    assert {a.name.removeprefix(str(path)): a.text() for a in artifacts_of([str(path)])} == {
        "!a.csv": "x,y\n1,2\n",
        "": "$ nvidia-smi\nno devices\n",
    }
    path.write_text("==> a.log <==\n$ python train.py\nstep 1\n\n==> b.log <==\nstep 2\n")
    assert [a.text() for a in artifacts_of([str(path)])] == ["$ python train.py\nstep 1\n", "step 2\n"]


def test_a_deep_tree_is_left_as_it_is() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert isinstance(upright(deep), list)  # and no stack overflows


def test_lists_of_settings_are_no_columns() -> None:
    kept: dict[str, object] = {"betas": [0.9, 0.95], "lr": 0.1}
    assert upright({"optimizer": kept}) == {"optimizer": kept}
    assert upright({"run": {"step": [1, 2], "loss": [3.0, 2.5]}}) == {
        "run": [{"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.5}]
    }


def test_a_page_with_an_empty_line_after_each_is_no_block_of_code() -> None:
    spaced = "".join(line + "\n\n" for line in PAGE.text.splitlines())
    assert plain(Artifact("x.txt", content=spaced.encode())).text() == spaced
