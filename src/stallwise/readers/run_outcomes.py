"""Whether runs and pair tests ended, and on which GPUs: pair-test logs, and NCCL logs of runs with and without P2P.

One row per run: the devices, the settings that matter (peer-to-peer off, shared memory off), and how it went.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.late import np
from stallwise.readers._patterns import entries, patterns
from stallwise.readers.shapes.lines import uncarried

FORMAT = "run outcomes"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter
LEAST_PAIRS = 2
PEERS_OFF = {("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "0"), ("NCCL_P2P_LEVEL", "LOC")}
COUNTED = ("ok", "hung", "steps")
_P = patterns("run_outcomes")
# Told by their digits: of lines that differ in digits alone each is looked at.
BY_DIGITS = [_P[name] for name, entry in entries("run_outcomes").items() if entry.get("by_digits")]
Run = dict[str, Any]


def recognises(name: str, head: bytes) -> bool:
    """Commands with visible devices, lines per device pair, or an NCCL log."""
    lines = map(uncarried, head.decode("utf-8", errors="replace").splitlines()[:2000])
    return b"NCCL INFO" in head or sum(_pair(line) is not None for line in lines) >= LEAST_PAIRS


def read(artifact: Artifact) -> Iterator[Item]:
    """The table of runs."""
    runs, current, text = list[Run](), _run(1), artifact.skeletons
    known: dict[int, Run] = {}  # what all lines of a skeleton say
    for at in text.lines_of(text.where(_is_outcome)):
        outcome = known.get(text.of[at])
        if outcome is None:
            line = uncarried(text.lines[at][:LONGEST])
            outcome = _settings_in(line)
            if not any(p.search(line.strip()) for p in BY_DIGITS):
                known[text.of[at]] = outcome
            elif pair := _pair(line):
                runs.append(_joined(_run(at + 1, f"{pair[1]},{pair[2]}"), outcome))
                continue
            elif _P["command"].match(line):
                runs.append(current)
                current = _run(at + 1)
        _joined(current, outcome)
    rows = [run for run in (*runs, current) if run.pop("nccl") or any(run[key] for key in COUNTED)]
    if rows:
        yield Table(
            "run.outcomes", {key: np.array([row[key] for row in rows]) for key in rows[0]}, Source(artifact.name)
        )


def _run(line: int, devices: str = "") -> Run:
    return {"line": line, "devices": devices, "p2p_off": False, "shm_off": False, "p2p_used": False, "nccl": False,
            **dict.fromkeys(COUNTED, 0)}  # fmt: skip


def _joined(run: Run, outcome: Run) -> Run:
    """The first devices, every setting, and how often it went well or not."""
    for key, value in outcome.items():
        run[key] = run[key] + value if key in COUNTED else run[key] or value
    return run


def _settings_in(line: str) -> Run:
    """The devices and settings of a line; of lines that are not NCCL's also how it goes."""
    settings = _P["setting"].findall(line)
    outcome: Run = {"p2p_off": not PEERS_OFF.isdisjoint(settings), "shm_off": ("NCCL_SHM_DISABLE", "1") in settings}
    if found := _P["devices"].search(line):
        outcome["devices"] = found[1] or found[2] or found[3] or f"{found[4]},{found[5]}"
    if _P["library"].search(line):
        via = _P["via"].search(line)
        return outcome | {"nccl": True, "p2p_used": via is not None and via[1] == "P2P"}
    if _P["command"].match(line):
        return outcome
    hung = bool(_P["hung"].search(line))
    return outcome | {
        "ok": bool(_P["ok"].search(line)) and not hung,
        "hung": hung,
        "steps": bool(_P["step"].search(line)),
    }


def _pair(line: str) -> re.Match[str] | None:
    """A line that says how two devices got on."""
    pair = _P["pair"].match(line.strip()[:300])
    return pair if pair and (_P["ok"].search(pair[4]) or _P["hung"].search(pair[4])) else None


def _is_outcome(line: str) -> bool:
    """Anything that a run is known by."""
    short = uncarried(line).strip()[:300]
    return "exit status" in line or any(p.search(short) for name, p in _P.items() if name != "via")
