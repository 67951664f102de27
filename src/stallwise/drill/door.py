"""The drill as the local page plays it: sessions by name, one text in, one text out."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any

from stallwise.drill.desk import handle, opening
from stallwise.drill.generate import CLASSICS, incident
from stallwise.drill.journal import folder
from stallwise.drill.round import Round, load
from stallwise.drill.round import start as begin
from stallwise.errors import BadRequest

NEW = "new"
MOST_OPEN = 64  # rounds whose clock runs on while the page thinks; older ones are read back from their journal
_OPEN: dict[str, Round] = {}


def scenarios() -> list[dict[str, Any]]:
    """The eight classics and a fresh incident."""
    listed = [{"name": str(n), "title": f"{n}. {incident(n).title}"} for n in range(1, CLASSICS + 1)]
    return [*listed, {"name": NEW, "title": "A new incident"}]


def start(name: str) -> dict[str, Any]:
    """Begins a round; the session is the name of its journal."""
    if name != NEW and not re.fullmatch(r"\d{1,9}", name):
        raise BadRequest(f"there is no incident '{name}'", hint="a number, or 'new'")
    seed = random.randrange(CLASSICS + 1, 1 << 30) if name == NEW else int(name)
    played = _open(begin(seed, time.time))
    return {"session": played.journal.path.stem, "says": opening(played), "choices": ["help", "time"], "over": False}


def reply(session: str, text: str) -> dict[str, Any]:
    """One line of the player's in this session."""
    played = _OPEN.get(session) or _open(load(_path(session), time.time))
    answer = handle(played, text)
    return {"session": session, "says": answer.says, "over": answer.over}


def _open(played: Round) -> Round:
    """Keeps a round in mind between two requests, so that its clock goes on."""
    while len(_OPEN) >= MOST_OPEN:
        _OPEN.pop(next(iter(_OPEN)))
    _OPEN[played.journal.path.stem] = played
    return played


def _path(session: str) -> Path:
    if not re.fullmatch(r"\d+-\d+", session):
        raise BadRequest("there is no such session", hint="start a new one")
    path = folder() / f"{session}.jsonl"
    if not path.exists():
        raise BadRequest("there is no such session", hint="start a new one")
    return path
