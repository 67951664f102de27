"""The verdict on the job's first steps: asked of the command that started the job, which diagnoses the bundle so far.

The job's own process has the standard library alone; the diagnosis is made beside it, from files, while the job rests at a step
boundary. So the first trials are those of the causes that `stallwise diagnose` finds in the same steps.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, List, Optional

ASKED, ANSWERED = "first_steps.json", "verdict.json"
POLL_S = 0.02


class Verdict:
    """Causes, first the one to prove, each with the share of a step that its fix is expected to save."""

    def __init__(self, state: str = "", causes: Optional[List[Dict[str, Any]]] = None) -> None:
        self.state = state
        self.shares: Dict[str, float] = {}
        for one in causes or []:
            self.shares.setdefault(str(one.get("cause", "")), float(one.get("share") or 0.0))

    @property
    def known(self) -> bool:
        """A diagnosis was made and names something."""
        return bool(self.shares)

    def to_dict(self) -> Dict[str, Any]:
        """Plain containers."""
        return {"state": self.state, "causes": [{"cause": c, "share": s} for c, s in self.shares.items()]}


def ask(
    folder: str,
    wait_s: float,
    steps: int,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Verdict:
    """What is found in the steps so far; nothing where nobody answers in time."""
    _write(os.path.join(folder, ASKED), {"steps": steps})
    until_s = now() + wait_s
    while now() < until_s:
        found = _read(os.path.join(folder, ANSWERED))
        if found is not None:
            return Verdict(str(found.get("state", "")), found.get("causes"))
        sleep(POLL_S)
    return Verdict()


def asked(folder: str) -> bool:
    """The job waits for an answer."""
    return os.path.exists(os.path.join(folder, ASKED)) and not os.path.exists(os.path.join(folder, ANSWERED))


def answer(folder: str, verdict: Verdict) -> None:
    """Lets the job go on."""
    _write(os.path.join(folder, ANSWERED), verdict.to_dict())


def forget(folder: str) -> None:
    """Of an earlier job in the same folder."""
    for name in (ASKED, ANSWERED):
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            continue


def _write(path: str, value: Any) -> None:
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(path + ".part", path)


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else {}
