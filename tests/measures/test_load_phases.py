"""A storm between calm hours is what gets judged, by its own numbers and its clock time."""

from __future__ import annotations

import numpy as np

from stallwise.evidence.load_phases import phases, worst_phase


def log(*stretches: tuple[int, float, float, float]) -> tuple[np.ndarray, ...]:
    """(samples, running, waiting, KV share) one after the other, ten seconds apart, with a little noise."""
    rng = np.random.default_rng(3)
    rows = np.concatenate([np.tile([r, w, k], (n, 1)) for n, r, w, k in stretches]).astype(float)
    rows[:, 0] = np.maximum(0, np.round(rows[:, 0] + rng.normal(0, 0.05 * rows[:, 0])))
    return np.arange(len(rows)) * 10.0, rows[:, 0], rows[:, 1], rows[:, 2]


def test_sixty_four_running_and_sixty_five_waiting_between_calm_hours_is_found_with_its_time() -> None:
    phase = worst_phase(*log((300, 6, 0, 0.02), (40, 64, 65, 0.14), (300, 5, 0, 0.02)))
    assert phase is not None and abs(phase.waiting - 65) < 2 and abs(phase.running - 64) < 5
    assert 38 <= phase.count <= 44 and "65 wait" in phase.named(36_000.0) and "from 10:5" in phase.named(36_000.0)


def test_a_burst_that_drains_and_a_steady_load_have_no_worst_phase() -> None:
    assert worst_phase(*log((200, 6, 0, 0.02), (2, 64, 65, 0.14), (200, 6, 0, 0.02))) is None
    assert worst_phase(*log((300, 30, 0, 0.3))) is None
    assert worst_phase(*log((300, 30, 40, 0.3))) is None  # one phase: the whole is judged


def test_phases_cover_the_log_without_overlap() -> None:
    time_s, running, waiting, kv = log((50, 4, 0, 0.1), (60, 40, 10, 0.5), (70, 4, 0, 0.1))
    found = phases(time_s, running, waiting, kv)
    assert sum(p.count for p in found) == len(running)
    assert all(a.last + 1 == b.first for a, b in zip(found, found[1:], strict=False))
