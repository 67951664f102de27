"""A live round: hypotheses, artifacts on request, arithmetic, fixes in order, and a commitment, against the clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stallwise.drill.artifact_words import kinds_meant
from stallwise.drill.calculator import calculate, shown
from stallwise.drill.generate import incident
from stallwise.drill.incident import Exhibit, Incident
from stallwise.drill.journal import Event, Journal, folder
from stallwise.errors import BadRequest, UnreadableInput

TARGET_S = 15 * 60.0
HARD_STOP_S = 20 * 60.0
_CLOCKLESS = ("start", "pause", "resume", "dispute", "score")


@dataclass(slots=True)
class Round:
    """The state is what the events say; `now` is injected, so that tests and resumed rounds have their own clock."""

    incident: Incident
    journal: Journal
    now: Callable[[], float]
    events: list[Event] = field(default_factory=list)
    _since: float | None = None  # clock reading from which time counts; None while paused
    _before_s: float = 0.0  # time of play before that

    @property
    def elapsed_s(self) -> float:
        """Time of play."""
        return self._before_s + (0.0 if self._since is None else max(0.0, self.now() - self._since))

    @property
    def left_s(self) -> float:
        """Until the hard stop."""
        return max(0.0, HARD_STOP_S - self.elapsed_s)

    @property
    def paused(self) -> bool:
        """The clock stands."""
        return self._since is None

    @property
    def over(self) -> bool:
        """Committed, or out of time."""
        return self.committed or self.left_s <= 0

    @property
    def committed(self) -> bool:
        """The player has said the answer."""
        return any(e.kind == "commit" for e in self.events)

    def hypothesis(self, text: str) -> None:
        """What the player thinks it is, at this moment."""
        self._note("hypothesis", _wanted(text, "a hypothesis"))

    def ask(self, text: str) -> tuple[tuple[Exhibit, ...], tuple[str, ...]]:
        """Papers that the request means, and recognised kinds that do not exist here."""
        meant = kinds_meant(_wanted(text, "what you want to see"))
        self._note("ask", text)
        here = [k for k in meant if k in self.incident.kinds]
        # Words may fit several kinds: those that exist here are meant, the best of the rest only where none does.
        papers = tuple(paper for kind in here[:2] for paper in self.incident.of(kind))
        return papers, tuple(() if here else meant[:1])

    def hand_out(self, papers: tuple[Exhibit, ...]) -> Path:
        """Lays whole files beside the journal, for the player's own tools; says where."""
        place = self.journal.path.with_suffix("")
        place.mkdir(parents=True, exist_ok=True)
        for paper in papers:
            (place / paper.file).write_bytes(paper.content)
        return place

    def calc(self, text: str) -> str:
        """Works it out and keeps it."""
        value = calculate(_wanted(text, "arithmetic"))
        self._note("calc", f"{text} = {value!r}")
        return f"{text} = {shown(value)}"

    def fixes(self, ordered: list[str]) -> None:
        """What to do, most valuable first; the last list counts."""
        items = [i.strip() for i in ordered if i.strip()]
        self._note("fixes", json.dumps(items if items else [_wanted("", "fixes in order")]))

    def commit(self, text: str) -> None:
        """The answer; nothing counts after it."""
        self._note("commit", _wanted(text, "your diagnosis"))

    def pause(self) -> None:
        """Stops the clock."""
        if not self.paused:
            self._note("pause", "")
            self._before_s, self._since = self.elapsed_s, None

    def resume(self) -> None:
        """Starts it again."""
        if self.paused:
            self._since = self.now()
            self._note("resume", "")

    def dispute(self, text: str) -> None:
        """The player disagrees with a mark; kept beside it."""
        self._note("dispute", _wanted(text, "which mark, and why"))

    def keep_score(self, verdict: str, marks: dict[str, str]) -> None:
        """The score as it was given, beside what earned it."""
        self._note("score", json.dumps({"verdict": verdict, "marks": marks}))

    def texts(self, *kinds: str) -> list[str]:
        """What was said in these kinds of events."""
        return [e.text for e in self.events if e.kind in kinds]

    def _note(self, kind: str, text: str) -> None:
        if kind not in _CLOCKLESS:
            if self.committed:
                raise BadRequest("this round is over", hint="start another: stallwise drill round")
            if self.paused:
                self.resume()
            if self.left_s <= 0 and kind != "commit":
                raise BadRequest("time is up", hint="commit to what you have")
        event = Event(kind, text, self.elapsed_s)
        self.journal.append(event)
        self.events.append(event)


def start(seed: int, now: Callable[[], float], path: Path | None = None) -> Round:
    """A new round on the incident of this seed."""
    chosen = incident(seed)
    place = path or folder() / f"{int(now() * 1000)}-{seed}.jsonl"
    played = Round(chosen, Journal(place), now, _since=now())
    played._note("start", str(seed))
    return played


def load(path: Path, now: Callable[[], float]) -> Round:
    """A round from its journal: the clock stands where the last event left it."""
    events = Journal(path).events()
    if not events or events[0].kind != "start" or not re.fullmatch(r"\d+", events[0].text):
        raise UnreadableInput(f"{path} is not a round", hint="start a new one: stallwise drill round")
    played = Round(incident(int(events[0].text)), Journal(path), now, events)
    played._before_s = max(e.at_s for e in events)
    return played


def _wanted(text: str, what: str) -> str:
    if not text.strip():
        raise BadRequest(f"say {what}", hint="type help for the commands")
    return text.strip()
