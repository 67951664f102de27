"""Whether runs and pair tests ended, and on which GPUs: pair-test logs, and NCCL logs of runs with and without P2P.

One row per run: the devices, the settings that matter (peer-to-peer off, shared memory off), and how it went.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._patterns import patterns

FORMAT = "run outcomes"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter
_P = patterns("run_outcomes")


@dataclass(slots=True)
class _Run:
    line: int
    devices: str = ""
    p2p_off: bool = False
    shm_off: bool = False
    p2p_used: bool = False
    ok: int = 0
    hung: int = 0
    steps: int = 0
    nccl: int = 0


def recognises(name: str, head: bytes) -> bool:
    """Commands with visible devices, lines per device pair, or an NCCL log."""
    text = head.decode("utf-8", errors="replace")
    lines = text.splitlines()[:2000]
    return (
        b"NCCL INFO" in head
        or sum(bool(_P["pair"].match(x.strip()[:300]) and (_P["ok"].search(x) or _P["hung"].search(x))) for x in lines)
        >= 2
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """The table of runs."""
    runs: list[_Run] = []
    current = _Run(1)
    text = artifact.skeletons
    chatter = text.where(_is_chatter)  # what NCCL says beside its settings: only counted
    direct = text.where(lambda x: (via := _P["via"].search(x)) and via[1] == "P2P") & chatter
    for at in text.lines_of(text.where(_tells)):
        if text.of[at] in chatter:
            current.nccl += 1
            current.p2p_used = current.p2p_used or text.of[at] in direct
            continue
        number, line = at + 1, text.lines[at][:LONGEST]
        pair = _P["pair"].match(line.strip()[:300])
        if pair and (_P["ok"].search(pair[4]) or _P["hung"].search(pair[4])):
            run = _Run(number, devices=f"{pair[1]},{pair[2]}")
            _settings(line, run)
            run.ok, run.hung = int(_P["ok"].search(pair[4]) is not None), int(_P["hung"].search(pair[4]) is not None)
            runs.append(run)
            continue
        if _P["command"].match(line):
            if current.nccl or current.ok or current.hung or current.steps:
                runs.append(current)
            current = _Run(number)
            _settings(line, current)
            current.devices = _devices(line)
            continue
        _follow(line, current)
    if current.nccl or current.ok or current.hung:
        runs.append(current)
    if runs:
        names = ("line", "devices", "p2p_off", "shm_off", "p2p_used", "ok", "hung", "steps")
        columns = {n: np.array([getattr(r, n) for r in runs]) for n in names}
        yield Table("run.outcomes", columns, Source(artifact.name))


def _is_chatter(line: str) -> bool:
    return bool(_P["library"].search(line)) and not any(
        _P[name].search(line) for name in ("setting", "devices", "command")
    )


def _tells(line: str) -> bool:
    """Anything that a run is known by; exit codes are told by their digits, so they are always looked at."""
    short = line.strip()[:300]
    return "exit status" in line or any(p.search(short) for name, p in _P.items() if name != "via")


def _follow(line: str, run: _Run) -> None:
    _settings(line, run)
    run.devices = run.devices or _devices(line)
    if _P["library"].search(line):
        run.nccl += 1
        via = _P["via"].search(line)
        run.p2p_used = run.p2p_used or bool(via and via[1] == "P2P")
        return
    run.ok += bool(_P["ok"].search(line)) and not _P["hung"].search(line)
    run.hung += bool(_P["hung"].search(line))
    run.steps += bool(_P["step"].search(line))


def _devices(line: str) -> str:
    match = _P["devices"].search(line)
    return (match[1] or match[2] or match[3] or f"{match[4]},{match[5]}") if match else ""


def _settings(line: str, run: _Run) -> None:
    for name, value in _P["setting"].findall(line):
        if (name == "NCCL_P2P_DISABLE" and value == "1") or (name == "NCCL_P2P_LEVEL" and value in ("0", "LOC")):
            run.p2p_off = True
        elif name == "NCCL_SHM_DISABLE" and value == "1":
            run.shm_off = True
