"""Prints of servers, load tests and profilers in forms that strangers bring: none is refused, none is misread."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.ledger import Category
from stallwise.readers.shapes.unwrap import plain

MAIL = """From: a@example.org
Date: Thu, 12 Nov 2026 11:21:09 +0100
Subject: slow steps
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

GPU utilisation is 31 % and a step takes 2.5 s with 4 workers, before =
it took 0.8 s.
"""
GROUPS = """Kind     Route             # calls   # lost |   Avg     Max |  per_s
--------|------------------|--------|--------|-------|-------|------
GET      /embed               8123       61 | 18211   60012 |  13.40
PUT      /store                412        3 |   211     912 |   1.20
"""
CALLS = """ Time (%)  Total Time (ns)  Num Calls   Avg (ns)   Name
 --------  ---------------  ---------  ---------  ----------------
     60.0    6,000,000,000     {pairs}  200,000.0  cudaMalloc
     25.0    2,500,000,000     {freed}  100,000.0  cudaFree
     15.0    1,500,000,000    300,000    5,000.0  cudaLaunchKernel
"""


def _put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    "name, text",
    [
        ("widths.csv", "alpha,beta,gamma\n1.5,2,3\n2.5,3,4\n"),
        ("widths.tsv", "alpha\tbeta\tgamma\n1.5\t2\t3\n2.5\t3\t4\n"),
        ("load.txt", GROUPS),
    ],
)
def test_a_table_of_unknown_columns_is_answered_and_not_refused(tmp_path: Path, name: str, text: str) -> None:
    told = diagnose(_put(tmp_path, name, text))
    assert told.state is State.UNCLEAR
    assert told.evidence is not None and told.evidence.unread[0].numbers_seen >= 6


def test_bars_between_groups_of_columns_leave_the_columns_apart() -> None:
    from stallwise.readers.shapes.aligned import barred

    rows = barred(list(enumerate(GROUPS.splitlines(), 1)))
    assert rows is not None
    assert rows.columns == ("Kind", "Route", "# calls", "# lost", "Avg", "Max", "per_s")
    assert rows.cells[4] == [18211.0, 211.0]


def test_a_mail_is_read_without_its_envelope(tmp_path: Path) -> None:
    note, said = "Date: today\nthe run is slow\n\nmore\n", plain(Artifact("x.eml", content=MAIL.encode())).text()
    assert plain(Artifact("x.txt", content=note.encode())).text() == note
    assert said.startswith("slow steps\n\n") and "before it took 0.8 s" in said
    told = diagnose(_put(tmp_path, "mail.eml", MAIL))
    assert told.evidence is not None and "run.gpu_busy" in told.evidence.facts


def test_memory_taken_and_given_back_is_churn_and_a_model_that_is_loaded_is_not(tmp_path: Path) -> None:
    churn = diagnose(_put(tmp_path, "a.txt", CALLS.format(pairs=" 30,000", freed=" 29,998")))
    loaded = diagnose(_put(tmp_path, "b.txt", CALLS.format(pairs=" 30,000", freed="      4")))
    assert churn.state is State.SICK and churn.ranked[0] == "allocator-churn"
    assert loaded.state is not State.SICK


def test_a_row_that_slipped_keeps_its_numbers_whole() -> None:
    from stallwise.readers.nsys_stats import summaries

    lines = [
        " Time (%)  Total Time (ns)  Instances   Name",
        " --------  ---------------  ---------  ----",
        "     70.1    1,402,331,001      60,111   k1",
        "     70.1    1,402,331,001       60,111  k2",
    ]
    assert [row.count for table in summaries(lines) for row in table.rows] == [60111.0, 60111.0]


def test_the_first_token_of_a_load_test_is_not_called_prefill(tmp_path: Path) -> None:
    text = (
        '{"backend": "vllm", "model_id": "m", "num_prompts": 100, "completed": 100, "duration": 50.0, '
        '"total_input_tokens": 100000, "total_output_tokens": 20000, "request_throughput": 2.0, '
        '"output_throughput": 400.0, "mean_ttft_ms": 9000.0, "mean_tpot_ms": 20.0}'
    )
    told = diagnose(_put(tmp_path, "bench.json", text))
    assert told.ledger is not None
    assert told.ledger.seconds[Category.FIRST_TOKEN] == pytest.approx(9.0)
    assert Category.PREFILL not in told.ledger.seconds


@pytest.mark.parametrize("grows", [True, False])
def test_a_long_request_log_is_read_and_a_queue_that_drains_is_not_saturation(tmp_path: Path, grows: bool) -> None:
    waits = [20 * i if grows else 20 * (i % 1000) for i in range(9000)]
    rows = [f"r{i},{i / 10},{100 + i % 7},{w + 70},{w + 4000},{w}" for i, w in enumerate(waits)]
    text = "id,arrival_s,prompt_tokens,ttft_ms,e2e_ms,queue_ms\n" + "\n".join(rows) + "\n"
    assert len(text) > 1 << 18
    told = diagnose(_put(tmp_path, "requests.csv", text))
    assert told.evidence is not None and "serve.queue_time" in told.evidence.facts
    assert (told.state is State.SICK and told.ranked[0] == "queue-saturated") is grows


def test_a_number_that_is_put_into_the_past_is_what_was(tmp_path: Path) -> None:
    text = "The server gives 1,020 tok/s today. The same server did 9,800 tok/s last week.\n"
    told = diagnose(_put(tmp_path, "note.txt", text))
    assert told.evidence is not None
    facts = {f.number: f.scope.run for f in told.evidence.facts["run.tokens_per_s"]}
    assert facts == {1020.0: None, 9800.0: "before"}
