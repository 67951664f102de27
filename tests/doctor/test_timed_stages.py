"""A part of the step that somebody timed names its owner, whichever way it was told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State

PARTS = [
    ("stage.batch_wait", "batch_wait_ms", 200, 545, "input-starved"),
    ("stage.h2d", "h2d_ms", 210, 560, "h2d-copy-exposed"),
    ("stage.gradient_sync", "gradient_sync_ms", 250, 545, "exposed-communication"),
    ("stage.checkpoint", "checkpoint_stage_ms", 300, 800, "checkpoint-stall"),
    ("comm.all_to_all_exposed", "all_to_all_ms", 300, 600, "all-to-all-bound"),
]


@pytest.mark.parametrize(("fact", "key", "part", "step", "cause"), PARTS)
def test_a_timed_part_names_its_owner(tmp_path: Path, fact: str, key: str, part: int, step: int, cause: str) -> None:
    """As facts, as JSON and as lines of text: the same cause first, and a gain that is no more than the part."""
    (tmp_path / "a.json").write_text(json.dumps({"step_time_ms": step, key: part}))
    (tmp_path / "b.txt").write_text(f"step time: {step} ms\n{key.removesuffix('_ms').replace('_', ' ')}: {part} ms\n")
    answers = [
        diagnose(facts=[f"{fact}={part}ms", f"step_time={step}ms"]),
        diagnose(str(tmp_path / "a.json"), workers=1, cache=False),
        diagnose(str(tmp_path / "b.txt"), workers=1, cache=False),
    ]
    for answer in answers:
        assert answer.ranked[0] == cause
        assert answer.state is State.SICK
        gain = answer.findings[0].gain
        assert gain is not None and gain.high_s <= part / 1e3 * 1.001


def test_a_share_is_as_good_as_seconds() -> None:
    """45% of the step in communication needs no step time to be judged."""
    for word in ("exposed_communication=45%", "comm_share=45%"):
        answer = diagnose(facts=[word])
        assert answer.ranked[0] == "exposed-communication"
        assert answer.state is State.SICK


def test_a_small_part_names_nobody() -> None:
    """Less than a tenth of the step is no finding."""
    answer = diagnose(facts=["stage.batch_wait=20ms", "step_time=545ms"])
    assert answer.state is State.UNCLEAR
