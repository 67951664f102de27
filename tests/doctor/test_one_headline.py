"""One answer shows one order: what leads the verdict leads the table and the ranking, with the same number."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.gather import gather
from stallwise.render.verdict import leading_hypothesis, verdict

VLLM = (
    "INFO 03-02 14:{m:02d}:{s:02d} [loggers.py:116] Engine 000: Avg prompt throughput: {p} tokens/s, Avg generation throughput: {g} "
    "tokens/s, Running: {r} reqs, Waiting: 0 reqs, GPU KV cache usage: {k}%, Prefix cache hit rate: 0.0%"
)
SGLANG = (
    "[2026-03-02 14:{m:02d}:{s:02d} TP0] Decode batch. #running-req: {r}, #token: 900, token usage: 0.0{k}, gen throughput (token/s): "
    "{g}, #queue-req: 0"
)


@pytest.mark.parametrize("line", [VLLM, SGLANG], ids=["vllm", "sglang"])
def test_what_is_only_offered_leads_everywhere_or_nowhere(tmp_path: Path, line: str) -> None:
    lines = [line.format(m=i // 6, s=i % 6 * 10, p=12.5 + i % 3, g=61.0 + i % 4, r=1, k=1) for i in range(12)]
    (tmp_path / "engine.log").write_text("\n".join(lines) + "\nwhy is decode slow with prefill and new requests?\n")
    diagnosis = examine(gather([str(tmp_path)], cache=False, workers=1))
    causes = [h for h in diagnosis.hypotheses if h.cause != "something-else"]
    leading = leading_hypothesis(diagnosis)
    assert diagnosis.ranked[0] == causes[0].cause
    if diagnosis.state is State.UNCLEAR and leading is not None:
        assert leading.cause == causes[0].cause == diagnosis.ranked[0]
        assert f"{causes[0].cause} ({causes[0].probability:.0%})" in verdict(diagnosis).what


def test_where_words_and_numbers_disagree_the_headline_says_both(tmp_path: Path) -> None:
    (tmp_path / "kernel.json").write_text(
        '{"kernel": "fused_rope_bwd", "registers_per_thread": 255, "local_memory_spill_bytes": 412876800, '
        '"local_load_sectors_pct_of_l1": 61.2, "achieved_occupancy_pct": 11.8}'
    )
    diagnosis = examine(gather([str(tmp_path)], cache=False, workers=1))
    likeliest = next(h for h in diagnosis.hypotheses if h.cause != "something-else")
    assert diagnosis.state is State.UNCLEAR
    assert f"{likeliest.cause} ({likeliest.probability:.0%})" in verdict(diagnosis).what
