"""Tokens by expert, as routers print them into a training log."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words


def log(counts: list[int], form: str, layers: int = 1) -> str:
    """Steps of a mixture-of-experts run; each layer has its own order of the same counts."""
    lines = []
    for step in range(40):
        for layer in range(layers):
            turned = counts[layer:] + counts[:layer]
            row = form.format(", ".join(str(c + (step * 7 + at * 3) % 5) for at, c in enumerate(turned)))
            lines.append(
                f"iteration {step} | elapsed time per iteration (ms): {812 + step % 5}.1 | lm loss: {3.2 - step * 0.01:.3f} | {row}"
            )
    return "\n".join(lines) + "\n"


FORMS = ["tokens_per_expert: [{}]", "'tokens_per_expert': tensor([{}])", "layer 3 tokens per expert = [{}]"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layers", [1, 8])
def test_a_hot_expert_is_found_in_any_list_of_tokens(tmp_path: Path, form: str, layers: int) -> None:
    answer = asked(tmp_path, "train.log", log([2400, 120, 110, 130, 115, 125, 105, 118], form, layers))
    assert answer.ranked[0] == "moe-imbalance" and "the mean number of tokens" in words(answer)


def test_even_experts_are_in_line_with_their_number(tmp_path: Path) -> None:
    answer = asked(tmp_path, "train.log", log([256] * 16, FORMS[0]))
    assert answer.state is State.HEALTHY and "the busiest expert or rank gets 1.0" in words(answer)


def test_few_tokens_are_uneven_by_chance(tmp_path: Path) -> None:
    answer = asked(tmp_path, "train.log", log([0, 1, 3, 0, 2, 1, 0, 4], FORMS[0], layers=8))
    assert "moe-imbalance" not in answer.ranked[:1]
