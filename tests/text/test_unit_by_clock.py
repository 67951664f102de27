"""Durations without a unit are of the unit that the stamps of the log leave room for."""

from __future__ import annotations

import pytest

from stallwise.doctor.gather import gather

PARTS = {"forward": 0.55, "backward": 1.25}


@pytest.mark.parametrize("factor", [1.0, 1e3, 1e6])
def test_a_part_of_a_step_is_no_longer_than_the_step(factor: float, tmp_path) -> None:  # type: ignore[no-untyped-def]
    lines = []
    for i in range(12):
        told = ", ".join(f"'time/{part}': {took * factor + i % 3:.1f}" for part, took in PARTS.items())
        lines.append(
            f"[2026-01-05 10:{i // 3:02d}:{20 * (i % 3):02d},120] INFO: {{'global_step': {10 * (i + 1)}, 'loss': 2.1, {told}}}"
        )
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    evidence = gather([str(tmp_path)], cache=False, workers=1)
    assert evidence.facts["stage.backward"][0].number == pytest.approx(1.25, abs=1.5)
