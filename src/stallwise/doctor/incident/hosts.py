"""Whose lines a file holds: the host that its lines name, or its name where it is a machine's log; and the hosts of the job."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath

from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence

# Words of file names that say what a log is; those of MACHINE only fit a machine's own.
MACHINE = frozenset(
    """dmesg kern kernel messages syslog journal journalctl nvidia smi bmc sel ipmi ipmitool df mem ibstat dcgm lspci free
    sensors""".split()
)
OTHERS = frozenset("log txt csv json jsonl out err stdout stderr capture query events top nccl bug report".split())
_PARTS = re.compile(r"[_.\s-]+")
_WORDS = re.compile(r"[A-Za-z0-9][\w-]*")


def hosts_of(evidence: Evidence) -> dict[str, str]:
    """Host by file, as far as known."""
    named: dict[str, Counter[str]] = {}
    for event in evidence.events:
        named.setdefault(event.source.file, Counter())
        if event.scope.node and not any(slot.rstrip("_") == "node" for slot in event.slots):  # of whom the line speaks
            named[event.source.file][event.scope.node] += 1
    lines = Counter(e.source.file for e in evidence.events)
    files = {*named, *evidence.inputs, *(t.source.file for t in evidence.tables)}
    found = {file: host for file in files if (host := _host(file, named.get(file, Counter()), lines[file]))}
    every = {node for nodes in named.values() for node in nodes} | set(found.values())
    if len(every) == 1:  # one host is named at all: machine logs without a name are its
        only = next(iter(every))
        found |= {file: only for file in files if file not in found and is_machines(file)}
    return found


def hosts_of_job(evidence: Evidence, by_file: Mapping[str, str]) -> set[str]:
    """Hosts with a log of their own, and those that the lines of programs name."""
    own = set(by_file.values())
    programs = {e.source.file for e in evidence.events if e.scope.rank is not None} | {
        t.source.file for t in evidence.table("log.steps")
    }
    return own | {e.scope.node for e in evidence.events if e.scope.node and e.source.file in programs}


def host_of(event: Event, by_file: Mapping[str, str]) -> str:
    """Whom a line is about: as it is marked, else a known host that it names, else its file's."""
    own = by_file.get(event.source.file, "")
    if event.scope.node:
        return own if event.scope.node in own else event.scope.node
    words = set(_WORDS.findall(event.text)) if not own else set()
    return own or next((host for host in by_file.values() if host in words), "")


def _host(file: str, nodes: Counter[str], lines: int) -> str:
    """The name that most of its lines have in front, else the one in the file's name."""
    if len(nodes) == 1 and nodes.total() * 2 >= lines:
        return next(iter(nodes))
    return _in_name(file) if not nodes else ""


def _in_name(file: str) -> str:
    """A machine's log without the words that say of what: `l40s-rack2-n7_dmesg.txt`, `nvidia-smi_a100-11.txt`, `dmesg-hgx-04.txt`."""
    name = _name(file)
    if not is_machines(file):
        return ""
    words = [w for w in _PARTS.split(name) if w]
    left = [w for w in words if w.lower() not in MACHINE | OTHERS]
    if not left or not any(c.isdigit() for c in "".join(left)):
        return ""
    host = name[name.index(left[0]) : name.rindex(left[-1]) + len(left[-1])]  # with the dashes that stand between
    return host if len(_PARTS.split(host)) == len(left) and not host[0].isdigit() else ""


def is_machines(file: str) -> bool:
    """A log of a machine, by its name."""
    return any(w.lower() in MACHINE for w in _PARTS.split(_name(file)))


def _name(file: str) -> str:
    return PurePath(file.split("!")[-1]).name
