"""The drill tab: topics are listed, answers graded, sessions end."""

from __future__ import annotations

import pytest

from stallwise.drill.deck import all_cards
from stallwise.errors import BadRequest
from stallwise.web.drill_door import drill


def test_every_topic_can_be_drilled_to_its_end() -> None:
    listed = drill("list", {})["scenarios"]
    cards = [s for s in listed if s["name"].startswith("cards:")]
    assert {s["name"].removeprefix("cards:") for s in cards} == {c.topic for c in all_cards()}
    first = drill("start", {"name": cards[0]["name"]})
    mine = [c for c in all_cards() if f"cards:{c.topic}" == cards[0]["name"]]
    assert first["says"] == mine[0].ask
    answer = first
    for card in mine:
        assert not answer["over"]
        ideas = " ".join(idea[0] for idea in card.must)
        answer = drill("reply", {"session": first["session"], "text": ideas})
        assert answer["share"] == pytest.approx(1.0)
        assert card.answer in answer["says"]
    assert answer["over"]
    with pytest.raises(BadRequest):
        drill("reply", {"session": first["session"], "text": "more"})


def test_an_empty_answer_names_what_is_missing() -> None:
    name = drill("list", {})["scenarios"][0]["name"]
    started = drill("start", {"name": name})
    answer = drill("reply", {"session": started["session"], "text": "I do not know"})
    assert answer["share"] < 0.5 and "Missing:" in answer["says"]


@pytest.mark.parametrize(
    ("verb", "body"),
    [("start", {"name": "cards:nothing"}), ("start", {"name": 5}), ("reply", {"session": "x", "text": "y"}),
     ("reply", {"session": "cards:x", "text": "y" * 9000}), ("start", {})],
)  # fmt: skip
def test_nonsense_is_a_bad_request(verb: str, body: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        drill(verb, body)
