"""Diagnoses the first steps of a job that is being tried, beside it, and hands the verdict back to its trials."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

from stallwise.experiment.verdict import Verdict, answer, asked, forget

POLL_S = 0.05
WAIT_S = 45.0  # a diagnosis takes two seconds, and more on a machine whose cores are busy


class FirstVerdict:
    """A thread that waits for the job to ask. Used as a context around the job."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> FirstVerdict:
        forget(self._folder)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(POLL_S * 10)

    def _run(self) -> None:
        while not self._over.wait(POLL_S):
            if asked(self._folder):
                answer(self._folder, diagnosed(self._folder))
                return


def diagnosed(folder: str) -> Verdict:
    """What `stallwise diagnose` says of the bundle so far; nothing where it cannot."""
    line = [sys.executable, "-m", "stallwise", "diagnose", folder, "--json", "--no-history", "--no-cache"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=WAIT_S)
        return verdict_of(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return Verdict()


def verdict_of(diagnosis: dict[str, Any]) -> Verdict:
    """Causes in the order of the diagnosis, with the middle of the share of a step that each promises."""
    causes = []
    for finding in diagnosis.get("findings") or []:
        gain = finding.get("gain") or {}
        low, high = (gain.get(key) or 0.0 for key in ("low_share", "high_share"))
        causes.append({"cause": finding.get("cause", ""), "share": 0.5 * (low + high)})
    return Verdict(str(diagnosis.get("state", "")), causes)
