"""Suspicion: a frequency, not a feeling; and silent about other trades."""

from __future__ import annotations

from stallwise.doctor.differential import SOMETHING_ELSE
from stallwise.doctor.suspicion import of_our_trade, probabilities, statements
from stallwise.evidence.bag import Bag, stems_of
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.knowledge.fitted import fitted

LICENCE = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation "
    "files, to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, "
    "publish, distribute, sublicense, and sell copies of the Software, subject to the following conditions and disclaimers."
)
COMPLAINT = "The GPU is idle while the dataloader decodes JPEG images, more num_workers do not help and the CPU cores are at 100%"


def _marks(text: str) -> frozenset[str]:
    return stems_of(text)


def test_probabilities_are_shares() -> None:
    marks = _marks(COMPLAINT)
    chances = probabilities(statements(marks, {}, {}), len(marks), fitted())
    assert all(0.0 <= p <= 1.0 for p in chances.values())
    assert sum(chances.values()) <= 1.0 + 1e-9


def test_words_name_their_cause() -> None:
    marks = _marks(COMPLAINT)
    chances = probabilities(statements(marks, {}, {}), len(marks), fitted())
    chances.pop(SOMETHING_ELSE)
    assert max(chances, key=lambda c: chances[c]) == "input-starved"


def test_a_rule_that_speaks_makes_its_cause_likelier() -> None:
    marks = _marks(COMPLAINT)
    without = probabilities(statements(marks, {}, {}), len(marks), fitted())["host-sync"]
    with_rule = probabilities(statements(marks, {}, {"host-sync": 3.0}), len(marks), fitted())["host-sync"]
    assert with_rule > without


def test_a_licence_is_not_of_our_trade() -> None:
    page, complaint = Evidence(), Evidence()
    page.add([Bag(stems_of(LICENCE), Source("LICENSE"))])
    complaint.add([Bag(stems_of(COMPLAINT), Source("mail.txt"))])
    assert of_our_trade(complaint)
    assert not of_our_trade(page)
