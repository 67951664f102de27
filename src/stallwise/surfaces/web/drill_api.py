"""The drill on the page: incidents, the beginner's path and question cards, all played by the drill package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallwise.errors import BadRequest

MOST_TEXT = 8000
PANE_LINES = 600  # of an artifact in its pane, which scrolls


def drill(verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Lists what can be drilled, starts one, or replies in it."""
    from stallwise.drill import session_api

    if verb == "list":
        return {"scenarios": session_api.scenarios()}
    if verb == "rounds":
        return session_api.rounds()
    text = body.get("text", "")
    name = body.get("name" if verb == "start" else "session", "")
    if not isinstance(text, str) or not isinstance(name, str) or len(text) > MOST_TEXT:
        raise BadRequest(f"a reply is a text of at most {MOST_TEXT:,} characters", hint="shorten it")
    return session_api.start(name) if verb == "start" else session_api.reply(name, text, PANE_LINES)
