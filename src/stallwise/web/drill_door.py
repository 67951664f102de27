"""The drill on the page: question cards by topic, and whatever incidents the drill package opens a door to.

`stallwise.drill.door`, where it exists, offers `scenarios() -> list[dict]` (name, title), `start(name) -> dict` and
`reply(session, text) -> dict`; answers carry `session`, `says` and optionally `choices` (texts) and `over` (bool).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from typing import Any

from stallwise.errors import BadRequest

MOST_TEXT = 8000
MOST_SESSIONS = 100
CARDS = "cards:"


class CardTalk:
    """Cards of one topic, asked in order; an answer is graded by the ideas in it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: OrderedDict[str, tuple[str, int]] = OrderedDict()  # topic, place of the card that was asked

    def scenarios(self) -> list[dict[str, Any]]:
        """One entry a topic."""
        from stallwise.drill.deck import all_cards, topics

        count = {t: sum(c.topic == t for c in all_cards()) for t in topics()}
        return [{"name": CARDS + t, "title": f"{t} ({n} cards)"} for t, n in count.items()]

    def start(self, name: str) -> dict[str, Any]:
        """The first question of a topic."""
        topic = name.removeprefix(CARDS)
        cards = self._cards(topic)
        session = CARDS + secrets.token_hex(8)
        with self._lock:
            self._sessions[session] = (topic, 0)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return {"session": session, "says": cards[0].ask, "over": False}

    def reply(self, session: str, text: str) -> dict[str, Any]:
        """The grade, the answer, and the next question."""
        from stallwise.drill.grading import grade

        if session not in self._sessions:
            raise BadRequest("that drill is over", hint="pick a topic again")
        topic, at = self._sessions[session]
        cards = self._cards(topic)
        card = cards[at]
        mark = grade(text, card.must)
        lines = [f"{mark.verdict}: {len(mark.found)} of {len(card.must)} ideas."]
        lines += [f"Missing: {', '.join(mark.missing)}."] if mark.missing else []
        lines += [card.answer] + ([card.corrects] if card.corrects else [])
        over = at + 1 >= len(cards)
        with self._lock:
            self._sessions[session] = (topic, at + 1)
            if over:
                del self._sessions[session]
        lines += ["That was the last card of this topic."] if over else ["", f"Next: {cards[at + 1].ask}"]
        return {"session": session, "says": "\n".join(lines), "over": over, "share": mark.share}

    @staticmethod
    def _cards(topic: str) -> list[Any]:
        from stallwise.drill.deck import all_cards

        found = [c for c in all_cards() if c.topic == topic]
        if not found:
            raise BadRequest(f"there is no topic '{topic[:60]}'", hint="pick one of the list")
        return found


_TALK = CardTalk()


def drill(verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Lists what can be drilled, starts one, or replies in it."""
    try:
        door: Any = import_module("stallwise.drill.door")
    except ImportError:
        door = None
    if verb == "list":
        return {"available": True, "scenarios": [*_TALK.scenarios(), *(door.scenarios() if door else [])]}
    text = body.get("text", "")
    name = body.get("name" if verb == "start" else "session", "")
    if not isinstance(text, str) or not isinstance(name, str) or len(text) > MOST_TEXT:
        raise BadRequest(f"a reply is a text of at most {MOST_TEXT:,} letters", hint="shorten it")
    teller: Any = _TALK if door is None or name.startswith(CARDS) else door
    answer: dict[str, Any] = teller.start(name) if verb == "start" else teller.reply(name, text)
    return answer
