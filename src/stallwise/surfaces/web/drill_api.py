"""The drill on the page: question cards by topic, and the incidents that the drill package opens a door to.

Both offer `scenarios()`, `start(name)` and `reply(session, text)`; answers carry `session`, `says`, `over` and `form`: the stage
and the lines to choose from, so that the page can offer them to click. Whatever is clicked is sent as the text one would type.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from stallwise.errors import BadRequest

MOST_TEXT = 8000
MOST_SESSIONS = 100
CARDS = "cards:"


class CardTalk:
    """Cards of one topic, asked in order: prose, the exact check, how sure."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: OrderedDict[str, tuple[list[Any], int, Any]] = OrderedDict()  # cards, place, the card at hand

    def scenarios(self) -> list[dict[str, Any]]:
        """One entry a topic."""
        from stallwise.drill.deck import all_cards, topics

        count = {t: sum(c.topic == t for c in all_cards()) for t in topics()}
        return [{"name": CARDS + t, "title": f"{t} ({n} cards)"} for t, n in count.items()]

    def start(self, name: str) -> dict[str, Any]:
        """The first question of a topic."""
        from stallwise.drill.card_review import CardReview

        cards = self._cards(name.removeprefix(CARDS))
        session, review = CARDS + secrets.token_hex(8), CardReview(cards[0])
        with self._lock:
            self._sessions[session] = (cards, 0, review)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return {"session": session, "says": review.asks(), "over": False, "form": _form(review)}

    def reply(self, session: str, text: str) -> dict[str, Any]:
        """What the answer was taken for, and what is asked next."""
        from stallwise.drill.card_review import CardReview

        if session not in self._sessions:
            raise BadRequest("that drill is over", hint="pick a topic again")
        cards, at, review = self._sessions[session]
        try:
            lines = [review.answer(text)]
        except BadRequest as problem:
            lines = [f"{problem.problem}; {problem.hint}"]
        verdict, over = "", False
        if review.stage == "over":
            verdict = review.verdict
            lines += [f"{verdict}.", *([review.card.corrects] if review.card.corrects else [])]
            at, over = at + 1, at + 1 >= len(cards)
            review = review if over else CardReview(cards[at])
            lines += ["That was the last card of this topic."] if over else [""]
        with self._lock:
            self._sessions[session] = (cards, at, review)
            if over:
                del self._sessions[session]
        says = "\n".join([*lines, *([] if over else [review.asks()])]).strip()
        form = None if over else _form(review)
        return {"session": session, "says": says, "over": over, "verdict": verdict, "form": form}

    @staticmethod
    def _cards(topic: str) -> list[Any]:
        from stallwise.drill.deck import all_cards

        found = [c for c in all_cards() if c.topic == topic]
        if not found:
            raise BadRequest(f"there is no topic '{topic[:60]}'", hint="pick one of the list")
        return found


def _form(review: Any) -> dict[str, Any]:
    """The form of what is asked now, for a page that offers lines to click."""
    check = review.card.check
    if review.stage == "check" and check.kind != "number":
        stage = {"choice": "one", "several": "ticks", "order": "order"}[check.kind]
        return {"stage": stage, "ask": check.ask, "lines": list(check.lines(review.seed)), "like": ""}
    return {
        "stage": {"check": "challenge", "sure": "sure"}.get(review.stage, "tell"),
        "ask": "",
        "lines": [],
        "like": "",
    }


_TALK = CardTalk()


def drill(verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Lists what can be drilled, starts one, or replies in it."""
    from stallwise.drill import session_api

    if verb == "list":
        return {"scenarios": [*_TALK.scenarios(), *session_api.scenarios()]}
    if verb == "rounds":
        return session_api.rounds()
    text = body.get("text", "")
    name = body.get("name" if verb == "start" else "session", "")
    if not isinstance(text, str) or not isinstance(name, str) or len(text) > MOST_TEXT:
        raise BadRequest(f"a reply is a text of at most {MOST_TEXT:,} letters", hint="shorten it")
    teller: Any = _TALK if name.startswith(CARDS) else session_api
    answer: dict[str, Any] = teller.start(name) if verb == "start" else teller.reply(name, text)
    return answer
