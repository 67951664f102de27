"""A dashboard's table of engine metrics says what the pages themselves would."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import serving
from stallwise.readers import serving_metrics

RUNNING = (12, 48, 64, 64, 64, 64, 64, 64)
WAITING = (0, 0, 3, 44, 120, 190, 260, 330)


def wide(running: str, waiting: str, use: str) -> str:
    rows = (f"2026-11-10 10:{at:02}:00,{r},{w},0.2{at}" for at, (r, w) in enumerate(zip(RUNNING, WAITING, strict=True)))
    return "\n".join([f'"Time","{running}","{waiting}","{use}"', *rows])


def long() -> str:
    rows = ["timestamp,metric,value"]
    for at, (r, w) in enumerate(zip(RUNNING, WAITING, strict=True)):
        for name, value in (("num_requests_running", r), ("num_requests_waiting", w), ("kv_cache_usage_perc", 0.2)):
            rows.append(f"{1762765200 + 60 * at},vllm:{name},{value}")
    return "\n".join(rows)


NAMES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
LABELS = '{pod=""a"", instance=""10.0.0.1:8000""}'
TABLES = {
    "plain": wide(*(f"vllm:{n}" for n in NAMES)),
    "labelled": wide(*(f"vllm:{n}{LABELS}" for n in NAMES)),
    "exported": wide(*(f"ray_vllm_{n}" for n in NAMES)),
    "long": long(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_queue_at_a_cap_is_seen_in_every_form(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "panel.csv"
    file.write_text(TABLES[kind])
    found = diagnose(str(file), workers=1, cache=False)
    assert found.ranked[0] in ("batch-cap-too-low", "queue-saturated"), (found.ranked, found.why_unclear)
    assert found.evidence.value(serving.WAITING) == 295  # median of the last quarter


def test_a_table_of_other_numbers_is_not_taken() -> None:
    assert not serving_metrics.recognises("a.csv", b"step,loss\n1,2.0\n2,1.9\n3,1.8\n")
