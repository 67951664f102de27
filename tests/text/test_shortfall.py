"""Who measures himself against a published figure and falls short complains, whatever the files prove."""

from __future__ import annotations

import pytest

from stallwise.readers.text.phrases import symptom_in


@pytest.mark.parametrize(
    "said",
    [
        "it decodes at half of the published speed", "a third of the advertised throughput",
        "30% below what the vendor quotes", "we reach a quarter of the speed in the blog post",
    ],
)  # fmt: skip
def test_short_of_what_was_promised(said: str) -> None:
    assert symptom_in(said)


@pytest.mark.parametrize("said", ["half of our users are on phones", "the speed is as published", "all as documented"])
def test_no_comparison_no_complaint(said: str) -> None:
    assert not symptom_in(said)
