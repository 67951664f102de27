"""A round played and examined by an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.errors import BadRequest
from stallwise.surfaces.mcp.tools import Tools

ACCOUNT = (
    "The stages are unequal, since the last one takes 42 ms against 24 and all others wait for it; the formula assumes equal stages. "
    "I would move layers off the last stage first, then tune the virtual stages, then use more micro-batches. "
    "No rank lags, so a straggler is less likely."
)


def test_a_round_is_played_and_its_transcript_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    tools = Tools(tmp_path)
    assert {"learn", "8", "new", "cards:memory"} <= {s["name"] for s in tools.drill("list", "", "")["incidents"]}
    opened = tools.drill("start", "8", "")
    session = opened["session"]
    shown = tools.drill("reply", session, "per-stage timings")
    assert "opened: stage_times.csv" in shown["says"] and "microbatch_ms" in shown["artifacts"][0]["text"]
    with pytest.raises(BadRequest):
        tools.drill("transcript", session, "")
    tools.drill("reply", session, "commit")
    asked = tools.drill("reply", session, ACCOUNT)
    while not asked["over"]:
        asked = tools.drill("reply", session, "skip")
    told = tools.drill("transcript", session, "")
    assert told["planted"]["cause"] == "pipeline-stage-imbalance" and len(told["rubric"]["fixes"]) == 4
    assert told["grades"]["marks"]["cause"]["mark"] == "strong" and told["grades"]["level"] == "strong pass"
