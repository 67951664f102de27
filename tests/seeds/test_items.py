"""Every item of the five documents has its command, and none of those walked is answered wrongly."""

from __future__ import annotations

import os

from tests.questions.asking import questions
from tests.seeds.items import HEAD, TABLE, command_of, items, walked

LEAST_ITEMS = 326
LEAST_FULL = 0.95


def test_the_table_holds_every_item_of_the_matrix() -> None:
    rows = items()
    assert TABLE.read_text(encoding="utf-8").startswith("\t".join(HEAD))
    assert len(rows) >= LEAST_ITEMS
    assert {row.id: (row.seed, row.command) for row in rows} == {q.id: (q.seed, command_of(q)) for q in questions()}


def test_no_item_is_answered_wrongly() -> None:
    every = 1 if os.environ.get("STALLWISE_FULL") else 12
    found = walked(questions()[::every])
    assert not [name for name, how in found.items() if how == "wrong"]
    assert sum(how == "full" for how in found.values()) >= LEAST_FULL * len(found), found
