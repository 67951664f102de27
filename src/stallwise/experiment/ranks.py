"""Ranks agree on the schedule through files: rank 0 decides, the others read. No collective of ours ever runs in the job.

All ranks of a synchronous job end the same steps, so the n-th decision of one is the n-th of all.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, List

WAIT_S = 120.0  # a rank that takes longer to reach the same step is not coming
POLL_S = 0.0005


class Disagreement(Exception):
    """A rank did not show up."""


class Alone:
    """One rank: what it says holds."""

    leads = True
    world = 1

    def decide(self, value: Any) -> Any:
        """What rank 0 says."""
        return value

    def gather(self, value: Any) -> List[Any]:
        """What every rank says."""
        return [value]

    def fail(self, text: str) -> None:
        """This rank could not do it."""

    def failures(self) -> List[str]:
        """What other ranks could not do since the last decision."""
        return []


class Ranks(Alone):
    """Several ranks with one folder."""

    def __init__(
        self,
        folder: str,
        rank: int,
        world: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.leads = rank == 0
        self.world = world
        self._folder = os.path.join(folder, "agreed")
        os.makedirs(self._folder, exist_ok=True)
        self._rank = rank
        self._now = now
        self._sleep = sleep
        self._count = 0
        self._known: Dict[str, bool] = {}

    def decide(self, value: Any) -> Any:
        self._count += 1
        name = "%06d" % self._count
        if self.leads:
            self._write(name, value)
            return value
        return self._read(name)

    def gather(self, value: Any) -> List[Any]:
        self._count += 1
        name = "%06d" % self._count
        self._write("%s-%05d" % (name, self._rank), value)
        return [self._read("%s-%05d" % (name, rank)) for rank in range(self.world)]

    def fail(self, text: str) -> None:
        self._write("failed-%05d-%06d" % (self._rank, self._count), text)

    def failures(self) -> List[str]:
        found = []
        for name in sorted(os.listdir(self._folder)):
            if name.startswith("failed-") and name.endswith(".json") and name not in self._known:
                self._known[name] = True
                found.append("rank %d: %s" % (int(name.split("-")[1]), self._read(name[: -len(".json")])))
        return found

    def _write(self, name: str, value: Any) -> None:
        path = os.path.join(self._folder, name + ".json")
        with open("%s.%d.part" % (path, self._rank), "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace("%s.%d.part" % (path, self._rank), path)

    def _read(self, name: str) -> Any:
        path = os.path.join(self._folder, name + ".json")
        until = self._now() + WAIT_S
        while True:
            try:
                with open(path, encoding="utf-8") as file:
                    return json.load(file)
            except FileNotFoundError:
                if self._now() > until:
                    raise Disagreement("no word from the other ranks for %d s (%s)" % (WAIT_S, name)) from None
                self._sleep(POLL_S)
