"""A round played and examined by an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.errors import BadRequest
from stallwise.surfaces.mcp.tools import Tools


def test_a_round_is_played_and_its_transcript_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    tools = Tools(tmp_path)
    assert len(tools.drill("list", "", "")["incidents"]) == 9
    opened = tools.drill("start", "8", "")
    session = opened["session"]
    assert "stage_time" in tools.drill("reply", session, "per-stage timings")["says"]
    with pytest.raises(BadRequest):
        tools.drill("transcript", session, "")
    asked = tools.drill("reply", session, "commit")
    line = 1 + asked["form"]["lines"].index("one pipeline stage is slower than the rest")
    asked = tools.drill("reply", session, f"{line} 90%")
    while not asked["over"]:
        asked = tools.drill("reply", session, "skip")
    told = tools.drill("transcript", session, "")
    assert told["planted"]["cause"] == "pipeline-stage-imbalance" and len(told["rubric"]) == 5
    assert told["grades"]["parts"][1]["points"] > 25 and told["grades"]["level"] == "pass"
