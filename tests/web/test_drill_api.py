"""The drill tab: topics are listed, checks graded exactly, sessions end."""

from __future__ import annotations

import pytest

from stallwise.drill.deck import all_cards
from stallwise.drill.learn import path
from stallwise.drill.progress import Progress
from stallwise.errors import BadRequest
from stallwise.surfaces.web.drill_api import drill


def test_every_topic_can_be_drilled_to_its_end() -> None:
    listed = drill("list", {})["scenarios"]
    cards = [s for s in listed if s["name"].startswith("cards:")]
    assert {s["name"].removeprefix("cards:") for s in cards} == {c.topic for c in all_cards()}
    answer = drill("start", {"name": cards[0]["name"]})
    session = answer["session"]
    mine = [c for c in all_cards() if f"cards:{c.topic}" == cards[0]["name"]]
    assert answer["says"] == mine[0].ask
    for place, card in enumerate(mine):
        assert not answer["over"] and card.ask in answer["says"]
        asked = drill("reply", {"session": session, "text": "skip"})
        assert card.check.ask in asked["says"] or asked["form"]["stage"] == "challenge"
        if card.check.kind == "choice":
            assert asked["form"]["lines"] == list(card.check.lines(0))
            sure = drill("reply", {"session": session, "text": card.check.right[0]})
            assert sure["form"]["stage"] == "sure" and card.answer not in sure["says"]
            answer = drill("reply", {"session": session, "text": "90%"})
            assert "right:" in answer["says"] and answer["verdict"] == "pass"  # no sentence of one's own
        else:
            answer = drill("reply", {"session": session, "text": "skip"})
            assert answer["verdict"] == "again" and card.check.answer in answer["says"]
        assert answer["over"] == (place == len(mine) - 1)
    with pytest.raises(BadRequest):
        drill("reply", {"session": session, "text": "more"})


def test_the_path_goes_on_where_it_was_left_and_is_in_the_record() -> None:
    first = path()[0]
    begun = drill("start", {"name": "learn"})
    assert begun["says"].startswith(first.page()) and begun["says"].endswith(first.card.ask)
    for text in ("It has many simple lanes and a lot of bandwidth to feed them.", first.card.check.right[0], "95%"):
        answer = drill("reply", {"session": begun["session"], "text": text})
    assert answer["verdict"] == "strong" and path()[1].card.ask in answer["says"]
    assert drill("start", {"name": "learn"})["says"].endswith(path()[1].card.ask)
    with Progress() as progress:
        assert progress.passed(first.item)


def test_what_is_not_understood_is_asked_again() -> None:
    started = drill("start", {"name": "cards:serving"})
    drill("reply", {"session": started["session"], "text": "skip"})
    answer = drill("reply", {"session": started["session"], "text": "banana"})
    assert "is not a line" in answer["says"] and not answer["verdict"]


@pytest.mark.parametrize(
    ("verb", "body"),
    [("start", {"name": "cards:nothing"}), ("start", {"name": 5}), ("reply", {"session": "x", "text": "y"}),
     ("reply", {"session": "cards:x", "text": "y" * 9000}), ("start", {})],
)  # fmt: skip
def test_nonsense_is_a_bad_request(verb: str, body: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        drill(verb, body)
