"""The drill as pages and agents play it: sessions by name, one text in, what to show and what to choose from out."""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stallwise.drill.card_review import CardReview
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.deck import Card, all_cards, topics
from stallwise.drill.digest import MOST_LINES, digest
from stallwise.drill.examiner import transcript
from stallwise.drill.generate import incident
from stallwise.drill.incident import CLASSICS
from stallwise.drill.journal import finished, folder
from stallwise.drill.leaderboard import leaderboard
from stallwise.drill.learn import path as learning_path
from stallwise.drill.progress import Progress
from stallwise.drill.repl import Answer, handle, opening, question
from stallwise.drill.requests import artifacts
from stallwise.drill.round import HARD_STOP_S, TARGET_S, Round, load
from stallwise.drill.round import start as begin
from stallwise.drill.rubric import DIMENSIONS, WORDS
from stallwise.errors import BadRequest
from stallwise.units import example

NEW, LEARN, CARDS = "new", "learn", "cards:"
MOST_OPEN = 64  # sessions in memory; an older round is read back from its journal
STAGES = {"choice": "one", "several": "ticks", "order": "order"}  # of a check, as forms


@dataclass(slots=True)
class CardSession:
    """Cards that are asked one after another: how each is kept, its topic in the record, what is taught before it."""

    waiting: Iterator[tuple[str, str, Card, str]]
    item: str = ""
    topic: str = ""
    review: CardReview | None = None

    def next(self) -> str:
        """Goes to the next card and returns its question; "" where there is none."""
        self.item, self.topic, card, page = next(self.waiting, ("", "", None, ""))
        if card is None:
            self.review = None
            return ""
        with Progress() as progress:
            self.review = CardReview(card, seed=progress.times(self.item))
        return f"{page}\n\n{self.review.asks()}" if page else self.review.asks()


_OPEN: dict[str, Round | CardSession] = {}


def scenarios() -> list[dict[str, Any]]:
    """The beginner's path, the eight classics and a fresh incident, and the cards of each topic."""
    count = {t: sum(c.topic == t for c in all_cards()) for t in topics()}
    return [
        {"group": "Learn", "name": LEARN, "title": f"From the beginning, step by step ({len(learning_path())} steps)"},
        *({"group": "Incidents", "name": str(n), "title": f"{n}. {incident(n).title}"} for n in range(1, CLASSICS + 1)),
        {"group": "Incidents", "name": NEW, "title": "A new incident"},
        *({"group": "Cards", "name": CARDS + t, "title": f"{t} ({n} cards)"} for t, n in count.items()),
    ]


def start(name: str) -> dict[str, Any]:
    """Begins a round, the path or the cards of a topic."""
    if name == LEARN or name.startswith(CARDS):
        asked = CardSession(iter(_steps() if name == LEARN else _cards(name.removeprefix(CARDS))))
        return _card_shown(_keep(CARDS + secrets.token_hex(8), asked), asked, asked.next() or "Every step is done.")
    if name != NEW and not re.fullmatch(r"[1-9]\d{0,8}", name):
        raise BadRequest(f"there is no incident '{name[:40]}'", hint="a number, or 'new'")
    seed = random.randrange(CLASSICS + 1, 1 << 30) if name == NEW else int(name)
    played = begin(seed, time.time)
    _keep(played.journal.path.stem, played)
    return _shown(played, Answer(opening(played, listed=False)))


def _steps() -> list[tuple[str, str, Card, str]]:
    """The steps of the path that are not passed yet."""
    with Progress() as progress:
        return [(s.item, LEARN, s.card, s.page()) for s in learning_path() if not progress.passed(s.item)]


def _cards(topic: str) -> list[tuple[str, str, Card, str]]:
    """The cards of a topic that are due; all of them where none is."""
    mine = {c.id: c for c in all_cards() if c.topic == topic}
    if not mine:
        raise BadRequest(f"there is no topic '{topic[:60]}'", hint="pick one of the list")
    with Progress() as progress:
        return [(i, topic, mine[i], "") for i in progress.due(mine) or mine]


def reply(session: str, text: str, most_lines: int = MOST_LINES) -> dict[str, Any]:
    """One line of the player's in this session; of each artifact so many lines are shown."""
    if session.startswith(CARDS):
        return _card_answered(session, text)
    played = _round(session)
    before = played.asked
    answer = handle(played, text)
    fresh = [e.file for kind in played.asked if kind not in before for e in played.incident.of(kind)]
    # The exhibits themselves come beside the talk.
    return _shown(played, replace(answer, says=f"opened: {', '.join(fresh)}") if fresh else answer, most_lines)


def _card_answered(session: str, text: str) -> dict[str, Any]:
    """How an answer to a card was taken, its mark in the record, and the next question."""
    asked = _OPEN.get(session)
    if not isinstance(asked, CardSession) or asked.review is None:
        raise BadRequest("that drill is over", hint="pick a topic again")
    review = asked.review
    try:
        lines = [review.answer(text)]
    except BadRequest as problem:
        lines = [f"{problem.problem}; {problem.hint}"]
    verdict = ""
    if review.stage == "over":
        verdict = review.verdict
        with Progress() as progress:
            progress.review(asked.item, asked.topic, verdict, review.share)
        lines += [f"{verdict}.", review.card.corrects, "", asked.next() or "That was the last one."]
    else:
        lines.append(review.asks())
    return _card_shown(
        session, asked, "\n".join(line for n, line in enumerate(lines) if line or n > 1).strip(), verdict
    )


def _card_shown(session: str, asked: CardSession, says: str, verdict: str = "") -> dict[str, Any]:
    """The form of what a card asks now."""
    shown: dict[str, Any] = {
        "session": session,
        "says": says,
        "over": asked.review is None,
        "verdict": verdict,
        "form": None,
    }
    if asked.review is None:
        _OPEN.pop(session, None)
        return shown
    review, check = asked.review, asked.review.card.check
    if review.stage == "check" and check.kind in STAGES:
        form = {"stage": STAGES[check.kind], "ask": check.ask, "lines": list(check.lines(review.seed)), "like": ""}
    else:
        form = {
            "stage": {"check": "challenge", "sure": "sure"}.get(review.stage, "tell"),
            "ask": "",
            "lines": [],
            "like": "",
        }
    return shown | {"form": form}


def rounds() -> dict[str, Any]:
    """What the finished rounds add up to."""
    return asdict(leaderboard(finished()))


def examined(session: str) -> dict[str, Any]:
    """The transcript with rubric and grades of a round that is over: what an examiner gets."""
    played = _round(session)
    if not played.over:
        raise BadRequest("this round is not over", hint="answer what is asked; skip leaves a question out")
    return transcript(played)


def _shown(played: Round, answer: Answer, most_lines: int = MOST_LINES) -> dict[str, Any]:
    """What to show, and the form of what is asked now."""
    return {
        "session": played.journal.path.stem,
        "says": answer.beside_sheet or answer.says,
        "over": answer.over,
        "minutes": played.minutes,
        "clock_s": round(played.elapsed_s),
        "target_s": round(TARGET_S),
        "stop_s": round(HARD_STOP_S),
        "artifacts": _opened(played, most_lines),
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


def _opened(played: Round, most_lines: int) -> list[dict[str, str]]:
    """What was handed out so far, as it is shown; whole files lie in the folder of the round."""
    return [{"file": e.file, "text": digest(e, most_lines)} for kind in played.asked for e in played.incident.of(kind)]


def _sheet(played: Round) -> dict[str, Any] | None:
    """The result by dimension, once the round is over."""
    if not played.over:
        return None
    done = played.result()
    rows = [{"dimension": DIMENSIONS[name], "mark": WORDS[m.level], "why": m.why} for name, m in done.marks.items()]
    return {"level": done.word, "points": done.points, "of": 12, "rows": rows}


def _round(session: str) -> Round:
    found = _OPEN.get(session)
    if not isinstance(found, Round):
        found = load(_path(session), time.time)
        _keep(session, found)
    return found


def _keep(session: str, opened: Round | CardSession) -> str:
    """Keeps a session in mind between two requests, so that its clock goes on."""
    while len(_OPEN) >= MOST_OPEN:
        _OPEN.pop(next(iter(_OPEN)))
    _OPEN[session] = opened
    return session


def _path(session: str) -> Path:
    if not re.fullmatch(r"\d+-\d+", session):
        raise BadRequest("there is no such session", hint="start a new one")
    path = folder() / f"{session}.jsonl"
    if not path.exists():
        raise BadRequest("there is no such session", hint="start a new one")
    return path
