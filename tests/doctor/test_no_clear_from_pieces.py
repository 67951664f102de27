"""A piece of a page that lost its complaint, its card or the end of its error proves nothing."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.errors import BadRequest
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import find_model
from stallwise.planner.serving import Question

TF32 = """\
max relative difference cpu vs gpu (tensor_float_32_execution_enabled=True):  2.9477e-04
max relative difference cpu vs numpy with inputs rounded to 10 mantissa bits: 2.89e-04
max relative difference cpu vs gpu (tensor_float_32_execution_enabled=False): 4.4e-07
"""


def test_a_traceback_that_breaks_off_forbids_an_all_clear(tmp_path) -> None:
    (tmp_path / "whole.log").write_text(TF32)
    (tmp_path / "cut.log").write_text('Traceback (most recent call last):\n  File "handler.py", line 16, i\n' + TF32)
    assert diagnose(str(tmp_path / "whole.log")).state is State.HEALTHY
    assert diagnose(str(tmp_path / "cut.log")).state is State.UNCLEAR


@pytest.mark.parametrize(
    ("said", "state"),
    [("pretraining, bf16, mfu 52.6%", State.UNCLEAR), ("pretraining on 8 H100, bf16, mfu 52.6%", State.HEALTHY)],
)
def test_an_mfu_needs_the_card_whose_peak_it_is_part_of(tmp_path, said: str, state: State) -> None:
    (tmp_path / "note.txt").write_text(said + "\n")
    assert diagnose(str(tmp_path / "note.txt")).state is state


@pytest.mark.parametrize("headroom", [-1.0, -0.01, 1e9, float("nan")])
def test_headroom_is_no_negative_capacity(headroom: float) -> None:
    with pytest.raises(BadRequest):
        Question(find_model("llama-3.1-8b"), (gpu("H100"),), 1000, 200, 4.0, 1.0, 0.05, headroom_share=headroom)
