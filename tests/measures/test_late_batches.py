"""Waits that fall into a few steps belong to bursts; waits of every step to a loader that is too slow."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose


@pytest.mark.parametrize(
    ("wait_s", "cause"),
    [
        (lambda i: 9.0 if i % 17 == 11 else 0.01 + 0.001 * (i % 3), "input-bursty"),
        (lambda i: 1.4 + 0.05 * (i % 5), "input-starved"),
    ],
)
def test_who_owns_the_wait_depends_on_how_it_is_spread(tmp_path, wait_s, cause):
    rows = [f"{i},{0.9 + 0.01 * (i % 4) + wait_s(i):.3f},{wait_s(i):.3f}" for i in range(80)]
    (tmp_path / "steps.csv").write_text("step,step_time_s,data_time_s\n" + "\n".join(rows) + "\n")
    assert diagnose(str(tmp_path / "steps.csv")).ranked[0] == cause
