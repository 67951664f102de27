"""What you know: one SQLite file with every review, scheduled by FSRS."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fsrs import Card as Memory
from fsrs import Rating, Scheduler

from stallwise.errors import UnreadableInput

RATINGS = {"again": Rating.Again, "pass": Rating.Good, "strong": Rating.Easy}
# Each entry brings the file from its index to the next version; never edited, only appended to.
MIGRATIONS = (
    """
    CREATE TABLE memory (item TEXT PRIMARY KEY, topic TEXT NOT NULL, state TEXT NOT NULL, due TEXT NOT NULL);
    CREATE TABLE review (id INTEGER PRIMARY KEY, item TEXT NOT NULL, topic TEXT NOT NULL, verdict TEXT NOT NULL,
                         share REAL NOT NULL, at TEXT NOT NULL);
    """,
)


def default_path() -> Path:
    """Where progress is kept; XDG_DATA_HOME is honoured."""
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return home / "stallwise" / "drill.sqlite"


class Progress:
    """Reviews and what is due. Open it, use it, close it (or use it as a context manager)."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._scheduler = Scheduler(enable_fuzzing=False)  # the same reviews give the same days
        try:
            self._db = sqlite3.connect(self.path)
            self._migrate()
        except sqlite3.DatabaseError as error:
            raise UnreadableInput(
                f"{self.path} is not a progress file: {error}", hint="move it away; a new one is made"
            ) from error

    def _migrate(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            self._db.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes and closes."""
        self._db.commit()
        self._db.close()

    def review(self, item: str, topic: str, verdict: str, share: float, now: datetime | None = None) -> datetime:
        """Books one answer and returns when the item is due again."""
        now = now or datetime.now(UTC)
        row = self._db.execute("SELECT state FROM memory WHERE item = ?", (item,)).fetchone()
        memory = Memory.from_json(row[0]) if row else Memory()
        memory, _ = self._scheduler.review_card(memory, RATINGS[verdict], now)
        self._db.execute(
            "INSERT INTO memory VALUES (?, ?, ?, ?) ON CONFLICT(item) DO UPDATE SET state = excluded.state, due = excluded.due",
            (item, topic, memory.to_json(), memory.due.isoformat()),
        )
        self._db.execute(
            "INSERT INTO review (item, topic, verdict, share, at) VALUES (?, ?, ?, ?, ?)",
            (item, topic, verdict, share, now.isoformat()),
        )
        self._db.commit()
        return memory.due

    def due(self, items: Iterable[str], now: datetime | None = None) -> list[str]:
        """Items to ask next: overdue first, then ones never seen."""
        now = now or datetime.now(UTC)
        known = dict(self._db.execute("SELECT item, due FROM memory"))
        wanted = list(items)
        overdue = sorted((i for i in wanted if i in known and known[i] <= now.isoformat()), key=lambda i: known[i])
        return overdue + [i for i in wanted if i not in known]

    def times(self, item: str) -> int:
        """How often an item was answered."""
        return int(self._db.execute("SELECT COUNT(*) FROM review WHERE item = ?", (item,)).fetchone()[0])

    def passed(self, item: str) -> bool:
        """Whether it was answered right the last time."""
        row = self._db.execute("SELECT verdict FROM review WHERE item = ? ORDER BY id DESC LIMIT 1", (item,)).fetchone()
        return row is not None and row[0] != "again"

    def by_topic(self) -> dict[str, dict[str, float]]:
        """Items seen, reviews, and the share of right answers at the last time each was asked."""
        rows = self._db.execute(
            "SELECT topic, COUNT(DISTINCT item), COUNT(*) FROM review GROUP BY topic ORDER BY topic"
        ).fetchall()
        last = dict(
            self._db.execute(
                "SELECT topic, AVG(verdict != 'again') FROM review "
                "WHERE id IN (SELECT MAX(id) FROM review GROUP BY item) GROUP BY topic"
            )
        )
        return {t: {"items": float(n), "reviews": float(r), "known_share": float(last[t])} for t, n, r in rows}

    def known(self, items: Iterable[str] | None = None) -> int:
        """Items answered right the last time; of these, where they are given."""
        query = "SELECT item FROM review WHERE verdict != 'again' AND id IN (SELECT MAX(id) FROM review GROUP BY item)"
        right = {row[0] for row in self._db.execute(query)}
        return len(right if items is None else right & set(items))

    def export(self) -> dict[str, Any]:
        """Everything, as plain containers."""
        names = ("item", "topic", "verdict", "share", "at")
        rows = self._db.execute("SELECT item, topic, verdict, share, at FROM review ORDER BY id").fetchall()
        return {"stallwise_drill": 1, "reviews": [dict(zip(names, row, strict=True)) for row in rows]}

    def take_in(self, document: dict[str, Any]) -> int:
        """Books the reviews of an export; those already here are left out."""
        with closing(self._db.cursor()) as cursor:
            here = set(cursor.execute("SELECT item, at FROM review").fetchall())
        try:
            rows = [r for r in document["reviews"] if (r["item"], r["at"]) not in here]
            for r in rows:
                when = datetime.fromisoformat(r["at"])
                self.review(str(r["item"]), str(r["topic"]), str(r["verdict"]), float(r["share"]), when)
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableInput(
                f"this is no export of drill progress: {error}", hint="make one: stallwise drill export"
            ) from error
        return len(rows)


def load_export(path: Path) -> dict[str, Any]:
    """Reads an export file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableInput(f"cannot read {path.name}: {error}", hint="make one: stallwise drill export") from error
    if not isinstance(document, dict):
        raise UnreadableInput(f"{path.name} is no export of drill progress", hint="make one: stallwise drill export")
    return document
