"""The drill as pages and agents play it: sessions by name, one text in, what to show and what to choose from out."""

from __future__ import annotations

import random
import re
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.digest import digest
from stallwise.drill.examiner import transcript
from stallwise.drill.generate import incident
from stallwise.drill.incident import CLASSICS
from stallwise.drill.journal import finished, folder
from stallwise.drill.leaderboard import leaderboard
from stallwise.drill.repl import Answer, handle, opening, question
from stallwise.drill.requests import artifacts
from stallwise.drill.round import HARD_STOP_S, TARGET_S, Round, load
from stallwise.drill.round import start as begin
from stallwise.drill.rubric import DIMENSIONS, WORDS
from stallwise.errors import BadRequest
from stallwise.units import example

NEW = "new"
MOST_OPEN = 64  # rounds whose clock runs on while the page thinks; older ones are read back from their journal
_OPEN: dict[str, Round] = {}


def scenarios() -> list[dict[str, Any]]:
    """The eight classics and a fresh incident."""
    listed = [{"name": str(n), "title": f"{n}. {incident(n).title}"} for n in range(1, CLASSICS + 1)]
    return [*listed, {"name": NEW, "title": "A new incident"}]


def start(name: str) -> dict[str, Any]:
    """Begins a round; the session is the name of its journal."""
    if name != NEW and not re.fullmatch(r"[1-9]\d{0,8}", name):
        raise BadRequest(f"there is no incident '{name[:40]}'", hint="a number, or 'new'")
    seed = random.randrange(CLASSICS + 1, 1 << 30) if name == NEW else int(name)
    played = _open(begin(seed, time.time))
    return _shown(played, Answer(opening(played)))


def reply(session: str, text: str) -> dict[str, Any]:
    """One line of the player's in this session."""
    played = _round(session)
    before = played.asked
    answer = handle(played, text)
    fresh = [e.file for kind in played.asked if kind not in before for e in played.incident.of(kind)]
    # The exhibits themselves come beside the talk.
    return _shown(played, replace(answer, says=f"opened: {', '.join(fresh)}") if fresh else answer)


def rounds() -> dict[str, Any]:
    """What the finished rounds add up to."""
    return asdict(leaderboard(finished()))


def examined(session: str) -> dict[str, Any]:
    """The transcript with rubric and grades of a round that is over: what an examiner gets."""
    played = _round(session)
    if not played.over:
        raise BadRequest("this round is not over", hint="answer what is asked; skip leaves a question out")
    return transcript(played)


def _shown(played: Round, answer: Answer) -> dict[str, Any]:
    """What to show, and the form of what is asked now."""
    return {
        "session": played.journal.path.stem,
        "says": answer.beside_sheet or answer.says,
        "over": answer.over,
        "minutes": played.minutes,
        "clock_s": round(played.elapsed_s),
        "target_s": round(TARGET_S),
        "stop_s": round(HARD_STOP_S),
        "artifacts": _opened(played),
        "notes": played.texts("think", "note"),
        "sheet": _sheet(played),
        "form": None if answer.over else form(played),
    }


def form(played: Round) -> dict[str, Any]:
    """What can be answered now: artifacts to buy, candidates to pick from, a probability or a number to type."""
    if not played.committing:
        menu = [
            {"what": artifacts()[k].what, "minutes": artifacts()[k].minutes, "have": k in played.asked}
            for k in played.menu
        ]
        return {"stage": "artifacts", "menu": menu}
    stage = played.stage
    pick = stage == "again" and "cause" in played.unread
    lines = [cause_profiles()[c].says for c in played.candidates] if pick else []
    like = example(played.challenge.number.unit) if stage == "challenge" else ""
    return {"stage": stage, "ask": question(played).split("\n", 1)[0], "lines": lines, "like": like}


def _opened(played: Round) -> list[dict[str, str]]:
    """What was handed out so far, as it is shown; whole files lie in the folder of the round."""
    return [{"file": e.file, "text": digest(e)} for kind in played.asked for e in played.incident.of(kind)]


def _sheet(played: Round) -> dict[str, Any] | None:
    """The result by dimension, once the round is over."""
    if not played.over:
        return None
    done = played.result()
    rows = [{"dimension": DIMENSIONS[name], "mark": WORDS[m.level], "why": m.why} for name, m in done.marks.items()]
    return {"level": done.word, "points": done.points, "of": 12, "rows": rows}


def _round(session: str) -> Round:
    return _OPEN.get(session) or _open(load(_path(session), time.time))


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
