"""Every kind of text is read at about the pace of a loop over its words: as ratios to one taken in the same run."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from log_speed import KINDS, text_of

SMALL, LARGE = (
    300_000,
    1_500_000,
)  # bytes: what a process loads once, and what a question costs whatever its length, falls out
WORSE = 3.0  # times what is usual
# What each kind usually costs in such loops. Lines that are unlike must each be looked at; of others most is done once.
USUAL = {
    "megatron": 1.1, "vllm": 0.6, "nccl": 1.1, "torchrun": 1.0, "hugging_face": 2.3, "requests": 0.8, "sglang": 0.8,
    "containers": 4.0, "answers": 13.0, "json_lines": 6.9, "steps_csv": 4.2, "cards_csv": 1.4, "dmon": 1.5, "smi_report": 2.3,
    "metrics": 4.3, "stacks": 2.8,
}  # fmt: skip


def _least_s(call: Callable[[], object]) -> float:
    """Of three, in processor time: other jobs on the machine only ever add to it."""
    spent = []
    for _ in range(3):
        before = time.process_time()
        call()
        spent.append(time.process_time() - before)
    return min(spent)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_long_text_costs_little_more_than_looking_at_its_words(kind: Callable[[int], str], tmp_path: Path) -> None:
    path, spent, looped = tmp_path / "run.log", [], []
    for size in (SMALL, LARGE):
        text = text_of(kind, size)
        path.write_text(text)
        spent.append(_least_s(lambda: diagnose(str(path), workers=1, cache=False)))
        looped.append(_least_s(lambda text=text: [word.lower() for word in re.findall(r"[\w.]+", text)]))
    times = (spent[1] - spent[0]) / (looped[1] - looped[0])
    assert times < WORSE * USUAL[kind.__name__], f"{times:.1f} times the loop"
