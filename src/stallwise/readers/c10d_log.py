"""PyTorch's process-group watchdog: which rank waited in which collective, and what it had queued and finished.

The wording changed with almost every release from 1.10 to 2.10; all of them name the operation and the timeout, newer
ones also sequence number, element counts and the group's status.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hang
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.readers._collective_waits import Wait, waits_table
from stallwise.readers._log_lines import Line, lines_of, scope_of

FORMAT = "c10d watchdog"

TIMEOUT = re.compile(
    r"(?:caught|Caught) collective operation timeout: Work(?:NCCL|XCCL|GLOO|HCCL)?\(([^)]*)\).*?ran for (\d+)"
)
FIELD = re.compile(r"(SeqNum|OpType|NumelIn|NumelOut|TensorShape|Timeout\(ms\))=([^,\[\]]+|\[[^\]]*\])")
STATUS = re.compile(r"last enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+)")
AT_WORK = re.compile(r"(?:work sequence id|at work|NCCL work|at NCCL work): (-?\d+)")
GROUP = re.compile(
    r"\[PG (?:ID )?(\d+)(?: PG GUID ([\w()]+))?[^\]]*?Rank (\d+)\]|\[PG (?:GUID )?([\w()]+) Rank (\d+)\]"
)
REMOTE = re.compile(
    r"remote process exited or there was a network error|ncclRemoteError|Connection closed by remote peer|"
    r"socketProgress: Connection closed",
    re.IGNORECASE,
)
# Words that any client of any server may print: they count where the line speaks of a process group.
BROKEN = re.compile(
    r"Connection (?:closed|reset) by peer|Broken pipe|recvValue failed|failed to recv, got 0 bytes", re.IGNORECASE
)
OF_A_GROUP = re.compile(r"gloo|nccl|c10d|TCPStore|ProcessGroup|socket\.cpp|DistBackend|distributed", re.IGNORECASE)
PEER = re.compile(r"(?:remote )?peer ([\w.-]+(?:\.[\w-]+)*)(?:<\d+>)?")
MISMATCH = re.compile(
    r"Detected mismatch between collectives on ranks|Collectives? differ in the following|op\.preamble\.length"
)
BARRIER = re.compile(
    r"Ranks? ([\d, ]+) failed to pass monitoredBarrier|\[Rank \d+\]: Rank (\d+) failed to pass monitoredBarrier"
)
HEARTBEAT = re.compile(r"watchdog got stuck for (\d+) ?(?:seconds|s\b)")
GLOO_TIMEOUT = re.compile(
    r"Timed out waiting (\d+)ms for (recv|send) operation|Wait timeout|wait timeout after (\d+)ms"
)
DUMP_FROM = re.compile(
    r"collective timeout from\s+(?:this local )?rank (\d+)|(?:flight recorder|dump) signal .*from.*rank (\d+)", re.I
)
RECOGNISED = re.compile(
    rb"ProcessGroup(?:NCCL|Gloo|XCCL)|collective operation timeout|monitoredBarrier|CollectiveFingerPrint|"
    rb"gloo/transport|ncclRemoteError|DistBackendError|TCPStore"
)


def recognises(name: str, head: bytes) -> bool:
    """The source file or the words of the process group."""
    return RECOGNISED.search(head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of waits, and facts for what else the process group says."""
    waits: dict[tuple[int, str], Wait] = {}
    for line in lines_of(artifact):
        yield from _timeout(line, waits)
        yield from _words(line)
    if waits:
        yield waits_table(list(waits.values()), artifact.name)


def _timeout(line: Line, waits: dict[tuple[int, str], Wait]) -> Iterator[Fact]:
    found = TIMEOUT.search(line.text)
    status = STATUS.search(line.text)
    if heartbeat := HEARTBEAT.search(line.text):
        yield Fact(hang.HANG_TIMEOUT, float(heartbeat[1]), line.source, Scope(rank=line.rank), note="watchdog stuck")
    if not found and not status:
        return
    group = GROUP.search(line.text)
    rank = int(group[3] or group[5]) if group else line.rank
    key = (-1 if rank is None else rank, (group[1] or group[4]) if group else "")
    if not group and len(mine := [k for k in waits if k[0] == key[0]]) == 1:
        key = mine[0]
    elif group and (key[0], "") in waits:
        waits[key] = waits.pop((key[0], ""))
        waits[key].group = key[1]
    wait = waits.setdefault(key, Wait(rank=key[0], group=key[1], line=line.number, time_s=line.time_s))
    if found:
        fields = dict(FIELD.findall(found[1]))
        wait.op = fields.get("OpType", wait.op)
        wait.sequence = int(fields["SeqNum"]) if "SeqNum" in fields else wait.sequence
        wait.elements_in = _number(fields.get("NumelIn"), wait.elements_in)
        wait.elements_out = _number(fields.get("NumelOut"), wait.elements_out)
        wait.shape = fields.get("TensorShape", wait.shape)
        if wait.elements_in < 0 and wait.shape:  # releases before 2.0 print the shape only
            wait.elements_in = prod(int(n) for n in re.findall(r"\d+", wait.shape))
        wait.state = "timed out"
        yield Fact(hang.HANG_TIMEOUT, float(found[2]) / 1000, line.source, Scope(rank=rank))
    if status:
        wait.enqueued, wait.completed = int(status[1]), int(status[2])
        if wait.sequence < 0 and (at := AT_WORK.search(line.text)):
            wait.sequence = int(at[1])
        if not wait.op and (fields := dict(FIELD.findall(line.text))):
            wait.op = fields.get("OpType", "")


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.strip().lstrip("-").isdigit() else default


def _words(line: Line) -> Iterator[Fact]:
    text, scope = line.text, scope_of(line)
    if MISMATCH.search(text):
        yield Fact(hang.MISMATCH_MESSAGE, text.strip()[:500], line.source, scope)
    elif barrier := BARRIER.search(text):
        yield Fact(
            hang.HANG_MISSING, f"ranks {(barrier[1] or barrier[2]).strip()}", line.source, note="monitoredBarrier"
        )
    elif REMOTE.search(text) or (BROKEN.search(text) and OF_A_GROUP.search(text)):
        peer = PEER.search(text)
        yield Fact(hang.PEER_LOST, text.strip()[:240], line.source, scope, note=peer[1] if peer else "")
    elif gloo := GLOO_TIMEOUT.search(text):
        waited = gloo[1] or gloo[3]
        if waited:
            yield Fact(hang.HANG_TIMEOUT, float(waited) / 1000, line.source, scope)
