"""Whether runs and pair tests ended, and on which GPUs: pair-test logs, and NCCL logs of runs with and without P2P.

One row per run: the devices, the settings that matter (peer-to-peer off, shared memory off), and how it went.
"""
# ruff: noqa: E501  (patterns stay on one line)

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table

FORMAT = "run outcomes"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter

COMMAND = re.compile(
    r"^(?:\$|#|\+|>)\s+(.*\b(?:CUDA_VISIBLE_DEVICES|NCCL_\w+)=.*|.*(?:torchrun|python|all_reduce|mpirun|_perf)\b.*)"
)
DEVICES = re.compile(
    r"(?:CUDA|HIP)_VISIBLE_DEVICES=([\d,]+)|\bgpus?[ =:]+(\d+(?:,\d+)+)|devices?[ =:]+(\d+(?:,\d+)+)|\bGPU(\d+) ?(?:<->|->|-|,) ?GPU(\d+)"
)
PAIR = re.compile(
    # Neither a year nor a date before a clock: those are two numbers with a dash between them, too.
    r"^(?:gpus?|pair|devices?|ranks?)?[ :#(]{0,4}(\d{1,3})(?: ?[,-] ?| ?<?-> ?)(\d{1,3}(?:,\d{1,3})*)(?![\d-]|[ T]\d\d:\d\d)\)?(.{0,120}?): ?(.+)$",
    re.IGNORECASE,
)
SETTING = re.compile(r"(NCCL_\w+_DISABLE|NCCL_P2P_LEVEL)(?:=| set (?:by environment )?to )(\w+)")
OK = re.compile(r"\bok\b|\bpass(?:ed)?\b|success|exit status 0\b|Avg bus bandwidth|\bdone\b", re.IGNORECASE)
HUNG = re.compile(
    r"no (?:answer|output) (?:after|for)|timeout: sending signal|exit status 124|\bhangs?\b|\bhung\b|timed? ?out|\bstuck\b|"
    r"did not (?:return|finish)|collective operation timeout", re.IGNORECASE
)  # fmt: skip
STEP = re.compile(
    r"\b(?:iter\w*|step|epoch)\b.{0,200}?\bloss\b|\bloss\b.{0,200}?\b(?:step|iter\w*|epoch)\b|samples_per_second|\ds/it\b|\dit/s\b",
    re.IGNORECASE,
)
NCCL = re.compile(r"NCCL (?:INFO|WARN)")
VIA = re.compile(r"via (P2P|SHM|NET|direct shared memory)")


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
        or sum(bool(PAIR.match(x.strip()[:300]) and (OK.search(x) or HUNG.search(x))) for x in lines) >= 2
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """The table of runs."""
    runs: list[_Run] = []
    current = _Run(1)
    text = artifact.skeletons
    chatter = text.where(_is_chatter)  # what NCCL says beside its settings: only counted
    direct = text.where(lambda x: (via := VIA.search(x)) and via[1] == "P2P") & chatter
    for at in text.lines_of(text.where(_tells)):
        if text.of[at] in chatter:
            current.nccl += 1
            current.p2p_used = current.p2p_used or text.of[at] in direct
            continue
        number, line = at + 1, text.lines[at][:LONGEST]
        pair = PAIR.match(line.strip()[:300])
        if pair and (OK.search(pair[4]) or HUNG.search(pair[4])):
            run = _Run(number, devices=f"{pair[1]},{pair[2]}")
            _settings(line, run)
            run.ok, run.hung = int(OK.search(pair[4]) is not None), int(HUNG.search(pair[4]) is not None)
            runs.append(run)
            continue
        if COMMAND.match(line):
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
    return bool(NCCL.search(line)) and not any(p.search(line) for p in (SETTING, DEVICES, COMMAND))


def _tells(line: str) -> bool:
    """Anything that a run is known by; exit codes are told by their digits, so they are always looked at."""
    short = line.strip()[:300]
    return "exit status" in line or any(
        p.search(short) for p in (PAIR, COMMAND, SETTING, DEVICES, NCCL, OK, HUNG, STEP)
    )


def _follow(line: str, run: _Run) -> None:
    _settings(line, run)
    run.devices = run.devices or _devices(line)
    if NCCL.search(line):
        run.nccl += 1
        via = VIA.search(line)
        run.p2p_used = run.p2p_used or bool(via and via[1] == "P2P")
        return
    run.ok += bool(OK.search(line)) and not HUNG.search(line)
    run.hung += bool(HUNG.search(line))
    run.steps += bool(STEP.search(line))


def _devices(line: str) -> str:
    match = DEVICES.search(line)
    return (match[1] or match[2] or match[3] or f"{match[4]},{match[5]}") if match else ""


def _settings(line: str, run: _Run) -> None:
    for name, value in SETTING.findall(line):
        if (name == "NCCL_P2P_DISABLE" and value == "1") or (name == "NCCL_P2P_LEVEL" and value in ("0", "LOC")):
            run.p2p_off = True
        elif name == "NCCL_SHM_DISABLE" and value == "1":
            run.shm_off = True
