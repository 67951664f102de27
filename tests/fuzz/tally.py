"""What a run of damaged inputs saw, counted, with an example of each failure."""

from __future__ import annotations

import hashlib
import os
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

NEVER = ("escapes", "over_time", "over_memory", "lost_answers", "flips", "bad_pages")  # what must not happen


@dataclass
class Tally:
    """What happened; a few examples of each."""

    cases: int = 0
    answered: int = 0
    refused: int = 0
    escapes: int = 0  # exceptions that would have been exit 4 or 130, and those exits themselves
    over_time: int = 0
    over_memory: int = 0
    lost_answers: int = 0
    flips: int = 0  # sick before, healthy after, and nothing said of a loss
    bad_pages: int = 0
    warned: int = 0
    stopped: int = 0  # files that were given up at their limit, with a note
    contained: int = 0  # failures that became a note
    rendered: int = 0
    beside: int = 0
    fresh: int = 0  # inputs that reached a line or an outcome that no other had, and became seeds
    lines: int = 0  # of the package that were reached
    seconds: float = 0.0
    peak_bytes: int = 0
    targets: Counter[str] = field(default_factory=Counter)
    readers: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    exits: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return sum(getattr(self, kind) for kind in NEVER)

    def add(self, other: Tally) -> None:
        """Another process's share: counts are added, the longest and the largest are kept."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if name in ("seconds", "peak_bytes", "lines"):
                setattr(self, name, max(mine, value))
            elif isinstance(value, Counter):
                mine.update(value)
            elif name == "examples":
                known = {x["what"] for x in mine}
                mine.extend(x for x in value if x["what"] not in known)
            else:
                setattr(self, name, mine + value)

    def as_dict(self) -> dict[str, Any]:
        """For a file; the commonest first."""
        counted = {k: dict(v.most_common()) for k, v in vars(self).items() if isinstance(v, Counter)}
        return {"failures": self.failures, **asdict(self), **counted}

    @classmethod
    def read(cls, report: dict[str, Any]) -> Tally:
        """As it was written."""
        known = {f.name: report[f.name] for f in fields(cls)}
        return cls(**{k: Counter(v) if isinstance(v, dict) else v for k, v in known.items()})


@dataclass
class Told:
    """What is known of one case, and where an example of its failure goes."""

    case: int
    seed: str
    how: str
    target: str
    data: bytes
    tally: Tally
    keep: Path | None

    def fails(self, kind: str, place: str) -> None:
        """One of the things that must never happen."""
        setattr(self.tally, kind, getattr(self.tally, kind) + 1)
        self.seen(f"{kind}: {place}")

    def seen(self, what: str) -> None:
        """Counts it, and keeps the first input that shows it."""
        self.tally.places[what] += 1
        if self.tally.places[what] > 1:
            return
        name = f"{hashlib.sha1(what.encode()).hexdigest()[:10]}-{''.join(c if c.isalnum() else '_' for c in self.seed)[-60:]}"
        self.tally.examples.append(
            {"what": what, "case": self.case, "seed": self.seed, "how": self.how, "target": self.target, "file": name}
        )
        if self.keep is not None:
            (self.keep / name).write_bytes(self.data)


def place_of(error: BaseException) -> str:
    """The last line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f"{os.sep}stallwise{os.sep}" in f.filename] or list(frames)
    where = own[-1] if own else None
    name = f"{Path(where.filename).parent.name}/{Path(where.filename).name}:{where.lineno}" if where else "?"
    return f"{type(error).__name__} @ {name}"
