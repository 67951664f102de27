"""Every event of a round on disk at once, so that nothing is lost when the terminal dies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from stallwise.drill.progress import default_path
from stallwise.errors import UnreadableInput


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `at_s` is time of play, pauses not counted."""

    kind: str  # start, think, ask, calc, note, hint, committing, the stages of a round, pause, resume, score, examiner
    text: str
    at_s: float


def folder() -> Path:
    """Where rounds are kept, beside the progress."""
    return default_path().parent / "rounds"


class Journal:
    """One file a round, one line an event; only ever appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def append(self, event: Event) -> None:
        """Written and flushed to the disk before this returns."""
        self._drop_half_a_line()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(event)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _drop_half_a_line(self) -> None:
        """What a crash cut off must not become the beginning of the next line."""
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            content = file.read()
            if content and not content.endswith(b"\n"):
                file.truncate(content.rfind(b"\n") + 1)

    def events(self) -> list[Event]:
        """All events; a last line cut off by a crash is left out."""
        return list(self._read()) if self.path.exists() else []

    def _read(self) -> Iterator[Event]:
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                yield Event(str(entry["kind"]), str(entry["text"]), float(entry["at_s"]))
            except (ValueError, KeyError, TypeError) as error:
                if number == len(lines):
                    return
                raise UnreadableInput(f"{self.path}:{number} is not an event", hint="start a new round") from error


def unfinished() -> list[Path]:
    """Rounds without a score, newest first."""
    paths = sorted(folder().glob("*.jsonl"), key=lambda p: p.stat().st_mtime, reverse=True)
    return [p for p in paths if not any(e.kind == "score" for e in Journal(p).events())]


@dataclass(frozen=True, slots=True)
class Played:
    """A finished round in one line."""

    seed: int
    level: str
    points: float
    minutes: int
    played_s: float
    dimensions: dict[str, int]  # 0 missing, 1 pass, 2 strong
    sure: float | None
    right: bool


def finished() -> list[Played]:
    """Scored rounds, oldest first; rounds of an older rubric are left out."""
    rounds = []
    for path in sorted(folder().glob("*.jsonl"), key=lambda p: p.stat().st_mtime):
        events = Journal(path).events()
        given = next((json.loads(e.text) for e in reversed(events) if e.kind == "score"), None)
        if given is None or events[0].kind != "start" or "dimensions" not in given:
            continue
        rounds.append(
            Played(
                int(events[0].text),
                given["level"],
                float(given["points"]),
                int(given["minutes"]),
                events[-1].at_s,
                given["dimensions"],
                given["sure"],
                given["right"],
            )
        )
    return rounds
