"""The drill on the page, wherever the drill package is there.

`stallwise.drill.door` offers `scenarios() -> list[dict]`, `start(name) -> dict` and `reply(session, text) -> dict`; the
answers carry `session`, `says` (text) and optionally `choices` (list of texts) and `over` (bool).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from stallwise.errors import BadRequest

MOST_TEXT = 8000


def drill(verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Lists scenarios, starts one, or replies in it."""
    try:
        door = import_module("stallwise.drill.door")
    except ImportError:
        return {"available": False, "says": "Drills are not part of this installation."}
    if verb == "list":
        return {"available": True, "scenarios": door.scenarios()}
    text = body.get("text", "")
    name = body.get("name" if verb == "start" else "session", "")
    if not isinstance(text, str) or not isinstance(name, str) or len(text) > MOST_TEXT:
        raise BadRequest("a reply is a text of at most 8,000 letters", hint="shorten it")
    answer: dict[str, Any] = door.start(name) if verb == "start" else door.reply(name, text)
    return answer
