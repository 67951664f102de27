"""A wait is named by what is waited for, and "it was" speaks of the number before."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.gather import gather
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope
from stallwise.readers.text.entries import entries
from stallwise.readers.text.scopes import BEFORE


def told(folder: Path, text: str) -> Evidence:
    (folder / "mail.txt").write_text(f"serving a 70B with vLLM\n{text}\n")
    return gather([str(folder / "mail.txt")], cache=False, workers=1)


@pytest.mark.parametrize(
    ("text", "quantity", "seconds"),
    [
        ("users wait 4.2 seconds for the first token", "serve.ttft", 4.2),
        ("people wait 4.2 s until anything appears", "serve.ttft", 4.2),
        ("requests wait 4.2 s in the queue", "serve.queue_time", 4.2),
        ("each GPU waits 200 ms for the next batch", "run.data_time", 0.2),
        ("each step waits 340 ms for the all-reduce", "allreduce_time", 0.34),
        ("the job waits 12 s for the checkpoint to be written", "run.save_time", 12.0),
    ],
)
def test_a_wait_is_named_by_its_end(tmp_path: Path, text: str, quantity: str, seconds: float) -> None:
    evidence = told(tmp_path, text)
    assert evidence.value(entries()[quantity].quantity) == pytest.approx(seconds)
    others = {"serve.ttft", "serve.queue_time"} - {quantity}
    assert not any(evidence.all(entries()[name].quantity) for name in others)


def test_it_was_speaks_of_the_number_before(tmp_path: Path) -> None:
    evidence = told(tmp_path, "we wait 4.2 s for the first token, before it was 0.12 s")
    found = {(f.scope.run, round(f.number, 3)) for f in evidence.all(entries()["serve.ttft"].quantity)}
    assert found == {(Scope().run, 4.2), (BEFORE, 0.12)}


def test_a_rank_that_waits_for_another_is_no_queue_of_requests(tmp_path: Path) -> None:
    evidence = told(tmp_path, "ranks wait 340 ms for rank 7 in every step")
    assert not evidence.all(entries()["serve.queue_time"].quantity)
