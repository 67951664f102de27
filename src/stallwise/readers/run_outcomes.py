"""Whether runs and pair tests ended, and on which GPUs: pair-test logs, and NCCL logs of runs with and without P2P.

One row per run: the devices, the settings that matter (peer-to-peer off, shared memory off), and how it went.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._patterns import patterns

FORMAT = "run outcomes"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter
LEAST_PAIRS = 2
PEERS_OFF = {("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "0"), ("NCCL_P2P_LEVEL", "LOC")}
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

    def hear(self, line: str) -> None:
        """Its devices and settings; of lines that are not NCCL's also how it goes."""
        for name, value in _P["setting"].findall(line):
            self.p2p_off |= (name, value) in PEERS_OFF
            self.shm_off |= (name, value) == ("NCCL_SHM_DISABLE", "1")
        if not self.devices and (found := _P["devices"].search(line)):
            self.devices = found[1] or found[2] or found[3] or f"{found[4]},{found[5]}"
        if _P["command"].match(line):
            return
        if _P["library"].search(line):
            self.nccl += 1
            self.p2p_used |= _is_direct(line)
            return
        self.ok += bool(_P["ok"].search(line)) and not _P["hung"].search(line)
        self.hung += bool(_P["hung"].search(line))
        self.steps += bool(_P["step"].search(line))


def recognises(name: str, head: bytes) -> bool:
    """Commands with visible devices, lines per device pair, or an NCCL log."""
    lines = head.decode("utf-8", errors="replace").splitlines()[:2000]
    return b"NCCL INFO" in head or sum(_pair(line) is not None for line in lines) >= LEAST_PAIRS


def read(artifact: Artifact) -> Iterator[Item]:
    """The table of runs."""
    runs: list[_Run] = []
    current = _Run(1)
    text = artifact.skeletons
    chatter = text.where(_is_chatter)  # what NCCL says beside its settings: only counted
    direct = text.where(_is_direct) & chatter
    for at in text.lines_of(text.where(_tells)):
        line = text.lines[at][:LONGEST]
        if text.of[at] in chatter:
            current.nccl += 1
            current.p2p_used |= text.of[at] in direct
        elif pair := _pair(line):
            runs.append(_Run(at + 1, devices=f"{pair[1]},{pair[2]}"))
            runs[-1].hear(line)
        else:
            if _P["command"].match(line):
                runs.append(current)
                current = _Run(at + 1)
            current.hear(line)
    rows = [run for run in (*runs, current) if run.nccl or run.ok or run.hung or run.steps]
    if rows:
        columns = {f.name: np.array([getattr(run, f.name) for run in rows]) for f in fields(_Run) if f.name != "nccl"}
        yield Table("run.outcomes", columns, Source(artifact.name))


def _pair(line: str) -> re.Match[str] | None:
    """A line that says how two devices got on."""
    pair = _P["pair"].match(line.strip()[:300])
    return pair if pair and (_P["ok"].search(pair[4]) or _P["hung"].search(pair[4])) else None


def _is_direct(line: str) -> bool:
    via = _P["via"].search(line)
    return via is not None and via[1] == "P2P"


def _is_chatter(line: str) -> bool:
    told = (_P[name].search(line) for name in ("setting", "devices", "command"))
    return bool(_P["library"].search(line)) and not any(told)


def _tells(line: str) -> bool:
    """Anything that a run is known by; exit codes are told by their digits, so they are always looked at."""
    short = line.strip()[:300]
    return "exit status" in line or any(p.search(short) for name, p in _P.items() if name != "via")
