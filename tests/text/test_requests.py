"""Records of single requests are understood whoever wrote them, and steps are not taken for seconds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import run, serving

Request = dict[str, int]


def requests() -> list[Request]:
    dice = random.Random(3)
    return [
        {"id": n, "queue_ms": dice.randint(7500, 8500), "prefill_ms": dice.randint(200, 220), "decode_ms": dice.randint(3900, 4100)}
        for n in range(30)
    ]  # fmt: skip


def as_log(all_: list[Request]) -> str:
    return "".join(
        f"2026-11-10T09:00:{r['id']:02}Z INFO gateway: request done "
        + " ".join(f"{k}={v}" for k, v in r.items())
        + "\n"
        for r in all_
    )


def as_spans(all_: list[Request]) -> str:
    """Seconds in quotes, as tracing libraries print spans; the whole has a name of its own."""
    found = []
    for r in all_:
        whole, queue = sum(v for k, v in r.items() if k != "id") / 1e3, r["queue_ms"] / 1e3
        span = f'total_time="{whole}s" queue_time="{queue}s"'
        found.append(f"2026-11-10T09:00:{r['id']:02}.114Z  INFO generate{{n=Some(512)}} {span}: router: Success\n")
    return "".join(found)


def as_csv(all_: list[Request]) -> str:
    return "\n".join([",".join(all_[0]), *(",".join(str(v) for v in r.values()) for r in all_)])


def as_lines(all_: list[Request]) -> str:
    return "".join(json.dumps(r) + "\n" for r in all_)


def told(text: str, name: str, folder: Path) -> Diagnosis:
    (folder / name).write_text(text)
    return diagnose(str(folder / name), workers=1, cache=False)


@pytest.mark.parametrize(
    ("write", "name"), [(as_log, "a.log"), (as_spans, "b.log"), (as_csv, "c.csv"), (as_lines, "d.jsonl")]
)
def test_the_queue_is_found_in_every_form(write: Callable[[list[Request]], str], name: str, tmp_path: Path) -> None:
    found = told(write(requests()), name, tmp_path)
    assert found.ranked[0] == "queue-saturated" and found.state.value == "sick"
    assert found.evidence.value(serving.QUEUE_TIME) == pytest.approx(8.0, rel=0.05)


def test_requests_that_never_wait_are_not_called_queued(tmp_path: Path) -> None:
    calm = [{**r, "queue_ms": 2} for r in requests()]
    answer = told(as_csv(calm), "c.csv", tmp_path)
    assert not any(f.cause == "queue-saturated" for f in answer.findings)


def test_a_column_that_counts_steps_is_no_time(tmp_path: Path) -> None:
    rows = "\n".join(f"{100 * n},{3 - n / 10},0.8" for n in range(1, 8))
    found = told(f"_step,train/loss,train/grad_norm\n{rows}\n", "history.csv", tmp_path)
    assert not found.evidence.all(run.STEP_TIME)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_a_gradient_that_explodes_in_a_short_table_is_seen(scale: float, tmp_path: Path) -> None:
    norms, losses = (0.8, 0.7, 0.9, 14.2, 88.1, 312.0, 1250.0), (3.41, 3.11, 2.98, 2.91, 4.88, 7.31, 9.8)
    rows = "\n".join(
        f"{100 * n},{loss},{norm * scale}" for n, (norm, loss) in enumerate(zip(norms, losses, strict=True), 1)
    )
    assert told(f"step,loss,grad_norm\n{rows}\n", "h.csv", tmp_path).ranked[0] == "grad-explosion"


def test_a_short_noisy_table_is_not_called_so(tmp_path: Path) -> None:
    norms, losses = (0.8, 1.7, 0.9, 2.2, 1.1, 2.4, 1.3), (3.41, 3.11, 3.3, 2.91, 3.2, 2.8, 3.0)
    rows = "\n".join(f"{100 * n},{loss},{norm}" for n, (norm, loss) in enumerate(zip(norms, losses, strict=True), 1))
    assert told(f"step,loss,grad_norm\n{rows}\n", "h.csv", tmp_path).state.value == "unclear"
