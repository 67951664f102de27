"""Logs of programs that nobody wrote a reader for: causes and numbers are not lost again, and nothing is called healthy."""

from __future__ import annotations

from tests.program_logs.score import score


def test_logs_of_programs_keep_their_causes_and_numbers() -> None:
    found = score("dev")
    assert found["right"] >= 17 and found["lost"] == 0, dict(found)
    assert found["healthy"] == 0 and found["wrong"] == 0, dict(found)


def test_the_half_that_nobody_looks_at_has_no_false_all_clear() -> None:
    found = score("test")
    assert found["healthy"] == 0 and found["right"] >= 15, dict(found)


def test_formats_that_nobody_had_shown_keep_what_was_gained() -> None:
    found = score("external/dev")
    assert found["right"] >= 5 and found["lost"] <= 5 and found["wrong"] == 0 and found["healthy"] == 0, dict(found)
    kept = score("external/test")
    assert kept["healthy"] == 0 and kept["right"] >= 6, dict(kept)
