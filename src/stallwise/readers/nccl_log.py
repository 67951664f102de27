"""NCCL_DEBUG=INFO logs of NCCL and RCCL, all versions: one host, many hosts, ranks interleaved, other lines between.

Yields who is which rank (Table nccl.ranks), who talks to whom over what (Table nccl.channels), and a fact for every
line that says something about network, interface, versions or failure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import fabric, quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.skeletons import Skeletons
from stallwise.readers._cells import columns_of
from stallwise.readers._collective_waits import Wait, waits_table
from stallwise.readers._patterns import entries, patterns
from stallwise.readers.shapes.lines import Peeler

FORMAT = "NCCL log"
CAPTURE = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV NCCL_DEBUG_FILE=nccl.%h.%p.log python train.py"
LONGEST = 2000  # characters of a line that are looked at: what it reads is shorter

WORDS = (b"NCCL INFO ", b"NCCL WARN ", b"NCCL version ", b"NCCL TRACE ")
_P = patterns("nccl_log")
TELLING = [_P[name] for name, entry in entries("nccl_log").items() if entry.get("tells")]
LONGEST_VALUE = 160  # characters
KEPT_CALLS = 5000  # of one file: the last ones, which is where it hangs


@dataclass(slots=True)
class _State:
    """What has been gathered from one file."""

    ranks: dict[tuple[str, str, str], tuple[int, int, str, str, int]] = field(default_factory=dict)
    channels: Counter[tuple[str, int, int, str, str, int]] = field(default_factory=Counter)
    first_line: dict[tuple[str, int, int, str, str, int], int] = field(default_factory=dict)
    seen: set[tuple[str, str, str]] = field(default_factory=set)
    comms: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)  # host and pointer: rank and id
    calls: list[tuple[str, str, Wait]] = field(default_factory=list)
    sections: list[int] = field(default_factory=list)  # several runs in one file: where a command starts a new one


def recognises(name: str, head: bytes) -> bool:
    """NCCL's own prefix, or its version line."""
    return any(word in head for word in WORDS)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts line by line, tables at the end."""
    state, said, peeler = _State(), artifact.skeletons, Peeler({})
    links = said.where(lambda x: "NCCL" in x and _P["channel"].search(x) and not _P["comm"].search(x))
    state.sections = said.lines_of(said.where(lambda x: x.startswith("$ ")))
    for skeleton in links:
        _links(state, said, skeleton)
    calls = said.where(lambda x: " opCount " in x and not _P["comm"].search(x))
    kept = said.lines_of(calls)[-KEPT_CALLS:]
    heard: set[tuple[str, str]] = set()
    for at in sorted([*said.lines_of(said.where(_tells) - links - calls), *kept]):
        line = said.lines[at][:LONGEST]
        before, _, message = line.partition("NCCL ")
        speaker, marked, _ = before.rpartition("[")  # "host:pid:thread [device]", or labels of a collector
        if (who := (speaker.rsplit(":", 2)[0] if marked else before, message)) in heard:
            continue  # the same words of another thread
        heard.add(who)
        match = _P["line"].search(line)
        process = f"{match['host']}:{match['pid']}" if match else ""
        if match is not None and (comm := _P["comm"].search(match["text"])):
            rank, ranks, device, bus_id, comm_id = int(comm[2]), int(comm[3]), *(comm[i] or "" for i in (4, 5, 6))
            state.ranks[match["host"], match["pid"], device] = rank, ranks, bus_id, comm_id, at + 1
            state.comms[process, comm[1]] = rank, comm_id
            heard.discard(who)  # of another process it is another communicator
        elif match is not None and (call := _P["call"].match(match["text"])):
            wait = Wait(
                -1, sequence=int(call[2], 16), op=call[1], state="called", elements_in=int(call[3]), dtype=call[4],
                via="NCCL log", line=at + 1,
            )  # fmt: skip
            state.calls.append((process, call[7], wait))
            heard.discard(who)
        else:
            for quantity, value, node in _said(state, line, match, peeler):
                yield Fact(quantity, value, Source(artifact.name, f"line {at + 1}"), Scope(node=node))
    yield from _tables(state, artifact.name)
    if known := list(_known_calls(state)):
        yield waits_table(known, artifact.name)


def _said(
    state: _State, line: str, match: re.Match[str] | None, peeler: Peeler
) -> Iterator[tuple[Quantity, str, str | None]]:
    """Versions, settings and networks, each with its node, the first time that it is said."""
    node = match["host"] if match else None
    if "version" in line and (version := _P["version"].search(line)) and _new(state, "version", node or "", version[1]):
        yield fabric.NCCL_VERSION, version[1], node
    if match is not None:
        yield from ((quantity, value, node) for quantity, value in _info(state, match["text"], node or ""))
    elif (relabelled := _P["relabelled"].search(line)) is not None:
        node = peeler.peel(line)[1].get("node")  # that a collector's prefix names
        yield from ((quantity, value, node) for quantity, value in _info(state, relabelled["text"], node or ""))


def _tells(line: str) -> bool:
    """Lines that are read at all: what NCCL says of its version, ranks, calls, links and networks."""
    return "NCCL" in line and (" opCount " in line or any(p.search(line) for p in TELLING))


def _links(state: _State, said: Skeletons, skeleton: int) -> None:
    """Who talks to whom over what, from lines that differ in digits alone."""
    members = said.members(skeleton)
    lines = [said.lines[at][:LONGEST] for at in members]
    found = _P["link"].findall("\n".join(lines))
    if len(found) != len(lines):
        found = [one for line in lines for one in _P["link"].findall(line)[:1] or [()]]
    for at, one in zip(members, found, strict=True):
        if one:
            host, sender, receiver, direction, via = one
            key = (host, int(sender), int(receiver), via, direction, bisect_right(state.sections, at))
            state.channels[key] += 1
            state.first_line.setdefault(key, at + 1)


def _known_calls(state: _State) -> Iterator[Wait]:
    """Calls of ranks whose communicator was announced."""
    for process, pointer, wait in state.calls:
        if (process, pointer) in state.comms:
            wait.rank, group = state.comms[process, pointer]
            wait.group = group
            yield wait


def _new(state: _State, kind: str, who: str, what: str) -> bool:
    key = (kind, who, what)
    if key in state.seen:
        return False
    state.seen.add(key)
    return True


def _info(state: _State, text: str, node: str) -> Iterator[tuple[Quantity, str]]:
    """By the first expression that fits; some lines name several interfaces."""
    for name, entry in entries("nccl_log").items():
        if "is" not in entry or (found := _P[name].search(text)) is None:
            continue
        every = list(_P[entry["each"]].finditer(text)) if "each" in entry else []
        for one in every or [found]:
            value = entry["says"].format(*(part or "" for part in one.groups()), line=text).strip()[:LONGEST_VALUE]
            if _new(state, name, node, "" if entry.get("once") else value):
                yield quantities()[entry["is"]], value
        return


def _tables(state: _State, file: str) -> Iterator[Table]:
    source = Source(file)
    if state.ranks:
        rows = [(*key, *value) for key, value in state.ranks.items()]
        names = ("host", "pid", "device", "rank", "ranks", "bus_id", "comm_id", "line")
        yield Table("nccl.ranks", columns_of(names, rows), source)
    if state.channels:
        links = [(*key, count, state.first_line[key]) for key, count in state.channels.items()]
        names = ("host", "sender", "receiver", "via", "direction", "section", "count", "line")
        yield Table("nccl.channels", columns_of(names, links), source)
