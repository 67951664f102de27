"""A leak rises all along the log; a maximum over sizes that vary by chance only looks as if it did."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.examine import diagnose


def _log(path, peaks) -> str:  # type: ignore[no-untyped-def]
    lines = (
        f"Epoch: [0] [{20 * i}/9000] loss: 1.5 time: 0.31 data: 0.01 max mem: {m:.0f}" for i, m in enumerate(peaks)
    )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_records_of_varying_sizes_are_no_leak(tmp_path) -> None:  # type: ignore[no-untyped-def]
    sizes = np.random.default_rng(3).uniform(4000, 9000, 60)
    found = diagnose(_log(tmp_path / "train.log", np.maximum.accumulate(sizes)), cache=False)
    assert "memory-leak" not in found.ranked[:1]


def test_what_rises_all_along_is_one(tmp_path) -> None:  # type: ignore[no-untyped-def]
    noise = np.random.default_rng(4).normal(0, 20, 60)
    found = diagnose(_log(tmp_path / "train.log", 4000 + 80 * np.arange(60) + noise), cache=False)
    assert found.ranked[0] == "memory-leak"
