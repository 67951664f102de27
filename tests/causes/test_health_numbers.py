"""A difference that the format explains is arithmetic; one that it does not is never called well."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State

ON = "maximum relative error against fp64 (TF32 on): {}"
OFF = "maximum relative error against fp64 (TF32 off): {}"


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ((ON.format("3.1e-04"), OFF.format("5e-07")), State.HEALTHY),
        ((ON.format("3.1e-02"), OFF.format("5e-07")), State.UNCLEAR),  # sixty times what rounding can do
        ((ON.format("3.1e-04"), OFF.format("2e-04")), State.UNCLEAR),  # it stays without TF32
        ((ON.format("3.1e-04"),), State.UNCLEAR),
    ],
)
def test_only_what_rounding_explains_is_well(tmp_path: Path, lines: tuple[str, ...], state: State) -> None:
    file = tmp_path / "compare.txt"
    file.write_text("\n".join(("matmul float32 2048 x 2048 on NVIDIA A100", *lines)) + "\n")
    assert diagnose(str(file), workers=1, cache=False).state is state
