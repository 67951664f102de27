"""A live round: artifacts for minutes, an account in the player's own words, how sure, and a follow-up with an exact answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stallwise.drill.calculator import calculate, shown
from stallwise.drill.candidates import candidates
from stallwise.drill.claims.account import Account, Challenge, challenge_for
from stallwise.drill.claims.generic import account
from stallwise.drill.claims.weigh import MISSING, PASS, Mark, Weighed, weigh
from stallwise.drill.generate import incident
from stallwise.drill.incident import Exhibit, Incident
from stallwise.drill.journal import Event, Journal, folder
from stallwise.drill.lines_chosen import NOTHING, how_sure
from stallwise.drill.quantity import typed
from stallwise.drill.requests import artifacts, meant
from stallwise.drill.rubric import Result, result
from stallwise.errors import BadRequest, UnreadableInput

TARGET_S = 15 * 60.0
HARD_STOP_S = 20 * 60.0
STAGES = (
    "tell",
    "again",
    "sure",
    "challenge",
)  # what is asked after the exhibits; `again` only where something was not read
ABSENT_MIN = 1  # minutes to find out that something does not exist
_CLOCKLESS = ("start", "pause", "resume", "score", "examiner")


@dataclass(frozen=True, slots=True)
class Handed:
    """What a request brought: exhibits with their price, kinds that do not exist here, words that nobody understood."""

    exhibits: tuple[Exhibit, ...] = ()
    minutes: int = 0
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


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
        """Until the hard stop, after which only commitments are taken."""
        return max(0.0, HARD_STOP_S - self.elapsed_s)

    @property
    def paused(self) -> bool:
        """The clock stands."""
        return self._since is None

    @property
    def stage(self) -> str:
        """What is asked next; "" when all is answered."""
        return next((s for s in STAGES if s not in self._given and (s != "again" or self.unread)), "")

    @property
    def _given(self) -> dict[str, Any]:
        return {e.kind: json.loads(e.text) for e in self.events if e.kind in STAGES}

    @property
    def over(self) -> bool:
        """Everything is answered."""
        return not self.stage

    @property
    def committing(self) -> bool:
        """No more exhibits: what is typed answers the questions."""
        return bool({e.kind for e in self.events} & {"committing", *STAGES})

    @property
    def account(self) -> Account:
        """What accounts of this incident are weighed against."""
        return account(self.incident)

    @property
    def full_account(self) -> str:
        """The account, with what was added when asked back."""
        given = self._given
        return "\n".join(str(given[s]) for s in ("tell", "again") if given.get(s))

    @property
    def unread(self) -> tuple[str, ...]:
        """What could not be read from the account: asked back once."""
        first = self._given.get("tell")
        return weigh(first, self.account).unread if first else ()

    @property
    def weighed(self) -> Weighed:
        """The account as it was understood; a suspect that was picked by its number gives the class, not the mechanism."""
        done = weigh(self.full_account, self.account)
        picked = re.match(r"\s*(\d)(?![\w%])", self._given.get("again") or "")
        lines = dict(enumerate(self.candidates, start=1))
        if done.cause.level == MISSING and picked and lines.get(int(picked[1])) in self.incident.accepted:
            return replace(done, cause=Mark(PASS, "the class was picked from the list; say the mechanism yourself"))
        return done

    @property
    def candidates(self) -> tuple[str, ...]:
        """The list that is shown where no cause could be read."""
        return candidates(self.incident)

    @property
    def challenge(self) -> Challenge:
        """The follow-up to the account."""
        return challenge_for(self.account, self.full_account)

    @property
    def first_s(self) -> float | None:
        """When the first hypothesis was stated; None where none was."""
        stated = (e for e in self.events if e.kind == "think" or (e.kind == "tell" and json.loads(e.text)))
        return next((e.at_s for e in stated), None)

    @property
    def hinted(self) -> int:
        """Hints that were taken."""
        return sum(e.kind == "hint" for e in self.events)

    @property
    def menu(self) -> tuple[str, ...]:
        """Kinds that can be had here, in the order of their prices."""
        return tuple(sorted(self.incident.kinds, key=lambda k: (artifacts()[k].minutes, artifacts()[k].what)))

    @property
    def asked(self) -> tuple[str, ...]:
        """Kinds that were handed out."""
        return tuple(dict.fromkeys(k for e in self.events if e.kind == "ask" for k in json.loads(e.text)["kinds"]))

    @property
    def minutes(self) -> int:
        """Spent on exhibits so far, and on what does not exist here."""
        lost = sum(ABSENT_MIN * bool(json.loads(e.text)["absent"]) for e in self.events if e.kind == "ask")
        return sum(artifacts()[k].minutes for k in self.asked) + lost

    def think(self, text: str) -> None:
        """A hypothesis, for the record: it is not graded, its time is shown."""
        self._note("think", _wanted(text, "what you think"))

    def ask(self, text: str) -> Handed:
        """Exhibits that the request means, by the number of the menu or in words; a second look costs nothing."""
        if self.committing:
            raise BadRequest("you have committed: no more artifacts", hint="answer what is asked")
        request = _wanted(text, "what you want to see")
        kinds, absent, unknown = self._meant(request)
        fresh = [k for k in kinds if k not in self.asked]
        if kinds or absent:
            self._note("ask", json.dumps({"said": request, "kinds": fresh, "absent": absent if not kinds else []}))
        price = sum(artifacts()[k].minutes for k in fresh) + (ABSENT_MIN if absent and not kinds else 0)
        exhibits = tuple(p for k in kinds for p in self.incident.of(k))
        return Handed(exhibits, price, tuple(absent) if not kinds else (), tuple(unknown))

    def _meant(self, request: str) -> tuple[list[str], list[str], list[str]]:
        numbers = re.fullmatch(r"\s*\d+(?:[\s,;]+(?:and\s+)?\d+)*\s*", request)
        if numbers:
            places = [int(n) - 1 for n in re.findall(r"\d+", request)]
            if any(not 0 <= p < len(self.menu) for p in places):
                raise BadRequest("that is not on the menu", hint=f"1 to {len(self.menu)}, or say it in words")
            return [self.menu[p] for p in places], [], []
        found: dict[str, list[str]] = {"here": [], "absent": [], "unknown": []}
        parts = [p for p in re.split(r"[;,]|\band\b|\bplus\b|\bas well as\b", request) if p.strip()]
        for part in (parts, [request]):
            if not found["here"] and not found["absent"]:
                self._sorted(part, found)
        return list(dict.fromkeys(found["here"])), list(dict.fromkeys(found["absent"])), found["unknown"]

    def _sorted(self, parts: list[str], found: dict[str, list[str]]) -> None:
        """Each part of a request: what it means here, what it means that is not here, or its words."""
        for part in parts:
            kinds = meant(part)
            here = next((k for k in kinds if k in self.incident.kinds), None)
            found["here" if here else "absent" if kinds else "unknown"].append(
                here or (kinds[0] if kinds else part.strip())
            )

    def hand_out(self, exhibits: tuple[Exhibit, ...]) -> Path:
        """Lays whole files beside the journal, for the player's own tools; says where."""
        place = self.journal.path.with_suffix("")
        place.mkdir(parents=True, exist_ok=True)
        for exhibit in exhibits:
            (place / exhibit.file).write_bytes(exhibit.content)
        return place

    def calc(self, text: str) -> str:
        """Works it out and keeps it."""
        value = calculate(_wanted(text, "arithmetic"))
        self._note("calc", f"{text} = {value!r}")
        return f"{text} = {shown(value)}"

    def note(self, text: str) -> None:
        """For the player's own eyes."""
        self._note("note", _wanted(text, "what to note"))

    def hint(self) -> str:
        """The next hint; each costs a point."""
        if self.hinted >= len(self.account.hints):
            raise BadRequest("there are no more hints", hint="open a paper, or commit")
        chosen = self.account.hints[self.hinted]
        self._note("hint", chosen)
        return chosen

    def keep_committing(self) -> None:
        """The player has seen enough: what is typed from now on answers the questions."""
        self._note("committing", "")

    def commit(self, text: str) -> str:
        """The answer to what is asked now; what cannot be understood is refused and costs nothing."""
        stage = self.stage
        if not stage:
            raise BadRequest("this round is over", hint="start another: stallwise drill round")
        nothing = _wanted(text, "an answer, or: skip").lower() in NOTHING
        self._note(stage, json.dumps(None if nothing else self._understood(stage, text.strip())))
        return stage

    def _understood(self, stage: str, text: str) -> object:
        if stage == "sure":
            return how_sure(text)
        if stage == "challenge":
            return typed(text, self.challenge.number.unit)
        return text

    @property
    def sure(self) -> float | None:
        """The probability that was given."""
        given: float | None = self._given.get("sure")
        return given

    @property
    def answered(self) -> bool | None:
        """Whether the follow-up was answered rightly; None where it was left out."""
        value = self._given.get("challenge")
        return None if value is None else self.challenge.number.accepts(value)

    def result(self) -> Result:
        """The marks as things stand."""
        done, asked = self.weighed, self.challenge
        return result(self.incident, self.asked, self.first_s, done, self.answered, asked.why, self.hinted, self.sure)

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

    def keep(self, kind: str, document: object) -> None:
        """The score, or an examiner's comment, beside what earned it."""
        self._note(kind, json.dumps(document))

    def texts(self, *kinds: str) -> list[str]:
        """The texts of these kinds of events."""
        return [e.text for e in self.events if e.kind in kinds]

    def _note(self, kind: str, text: str) -> None:
        if kind not in _CLOCKLESS:
            if self.over:
                raise BadRequest("this round is over", hint="start another: stallwise drill round")
            if self.paused:
                self.resume()
            if self.left_s <= 0 and kind not in STAGES:
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
