"""What ranks, launchers and schedulers say when something dies: torchrun, mpirun, Slurm, Kubernetes, Horovod.

Yields facts per line and a Table rank.events with times, so that the first failure can be told from its echoes.
"""
# ruff: noqa: E501  (patterns stay on one line)

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hang
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.readers._log_lines import Line, lines_of, node_of_file

FORMAT = "rank log"

# An exception that only reports that others went away or that a collective failed says nothing about its own rank.
ECHO = re.compile(
    r"NCCL (?:error|watchdog)|DistBackendError|ncclInternalError|ncclUnhandled|ncclSystemError|ncclRemoteError|ChildFailedError|"
    r"timed? ?out|Timeout|Connection (?:closed|reset|refused)|Broken pipe|SIGTERM|SIGABRT|unhandled system error|"
    r"monitoredBarrier|Detected mismatch|op\.preamble|ncclCommInitRank failed|process group|store->get|TCPStore|EngineDeadError|EngineCore|SystemExit|Original exception:",
    re.IGNORECASE,
)
KINDS: tuple[tuple[Quantity, re.Pattern[str]], ...] = (
    (hang.SHM_ERROR, re.compile(r"insufficient shared memory|out of shared memory|unable to (?:open|mmap|resize) shared memory|torch_shm|"
                                r"/dev/shm.*(?:No space|full|too small)|Bus error.*(?:shm|shared memory)|"
                                r"Unable to write to file </torch_|shm_open.*(?:failed|error)", re.I)),
    (hang.MEMLOCK_ERROR, re.compile(r"RLIMIT_MEMLOCK|locked memory limit|memlock.*(?:limit|too (?:small|low))|"
                                    r"(?:ibv_reg_mr|ibv_create_\w+).*Cannot allocate memory|unable to register memory|"
                                    r"UCX.*(?:ibv_reg_mr|failed to register).*(?:Cannot allocate|memory)", re.I)),
    (hang.PROCESS_KILLED, re.compile(r"exited on signal 9|exit ?code:? *(?:-9|137)\b|Signal 9 \(SIGKILL\)|\bSIGKILL\b|oom_?kill|OOMKill|"
                                     r"^\S*\s+\w+\s+(?:Killing|Evicted|OOMKilling|Preempt\w*|NodeNotReady|NodeShutdown)\b|"
                                     r"task \d+: (?:Killed|Out Of Memory)|slurmstepd: error: \*\*\* .*CANCELLED.*(?:NODE FAIL|PREEMPT)|"
                                     r"worker (?:was )?killed|The (?:actor|worker|node).*died unexpectedly|"
                                     r"^Killed\s*$", re.I)),
    (hw.FABRIC_FAULT, re.compile(r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|fabric ?manager.*(?:not running|failed)", re.I)),
    (hw.XID_MEMORY, re.compile(r"uncorrectable ECC error|CUDA_ERROR_ECC_UNCORRECTABLE", re.I)),
    (hw.ILLEGAL_ACCESS, re.compile(r"illegal memory access|device-side assert|misaligned address|illegal instruction was|"
                                   r"CUDA_ERROR_ILLEGAL|HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY)|Memory access fault by GPU", re.I)),
    (hw.GPU_LOST, re.compile(r"Unable to determine the device handle|GPU is lost|GPU has fallen off|CUDA_ERROR_DEVICE_LOST|"
                             r"No devices were found|GPU requires reset", re.I)),
    (hang.INTERFACE_ERROR, re.compile(r"Unable to (?:find address for|resolve hostname to a \(local\))|connectFullMesh failed|"
                                      r"client socket has (?:failed|timed out).*connect.*(?:127\.0\.|errno: 1(?:10|13)|timed out)|"
                                      r"No route to host", re.I)),
    (hang.RANK_ERROR, re.compile(r"out ?of ?memory|OutOfMemory|Segmentation fault|SIGSEGV|exited on signal (?:11|7)\b|MPI_ABORT was invoked|"
                                 r"exitcode *: *(?!0\b|-?6\b|-?9\b|-?15\b)-?\d+|CUDA error: (?!unspecified launch)|"
                                 r"(?:^|[\s:])(?:\w+\.)*\w*(?:Error|Exception): |task \d+: Exited with exit code", re.I)),
)  # fmt: skip
STALLED = re.compile(
    r"submitted to be reduced, gathered or broadcasted by subset of ranks|Stalled (?:ops|ranks|tensor)", re.I
)
MISSING = re.compile(r"missing ranks?:? ?\[?([\d, ]+)", re.IGNORECASE)
STALLED_OPS = re.compile(r"Stalled ops:\s*(.+)")
ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\)")
ROOT_RANK = re.compile(r"^\s*(?:\S+:\s*)?rank\s*:\s*(\d+)")
NAMED_RANK = re.compile(r"process rank (\d+)|task (\d+): |local_rank[:=] ?(\d+)|\bon rank (\d+)|on node (\S+) exited")
EVENT_KINDS = {
    hang.PROCESS_KILLED.name,
    hang.RANK_ERROR.name,
    hw.ILLEGAL_ACCESS.name,
    hw.GPU_LOST.name,
    hw.XID_MEMORY.name,
}
NOT_TEXT = re.compile(rb"\{\s*[\"}]|\[\s*[{\"\[]|<[?\w!]")  # JSON and XML
ENDS = "ends the log"
LAST_LINES = 40  # a fatal error and its traceback are the last thing a rank prints
MANY = 50  # of one kind in one file: the rest repeat
RECOGNISED = re.compile(
    rb"Error\b|Exception\b|Traceback|exitcode|exited on signal|SIGKILL|Killed|\boom|submitted to be reduced|out of memory|"
    rb"illegal memory|device handle|Killing|Evicted|NodeNotReady|RLIMIT_MEMLOCK|shared memory|Root Cause|Segmentation fault|"
    rb"failed to connect|died unexpectedly|MPI_ABORT",
)


def recognises(name: str, head: bytes) -> bool:
    """Text with the words of a failure."""
    return (
        not NOT_TEXT.match(head[:256].lstrip()) and b"\x00" not in head[:4096] and RECOGNISED.search(head) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts by kind, and the events with their times."""
    events: list[tuple[float, int, str, str, int]] = []
    counts: dict[str, int] = {}
    root_until = 0
    root_rank: int | None = None
    lines = list(lines_of(artifact))
    for line in lines:
        if "NCCL WARN" in line.text or "NCCL INFO" in line.text or "NVRM:" in line.text:
            continue
        if ROOT_CAUSE.search(line.text):
            root_until, root_rank = line.number + 12, None
        elif line.number < root_until and (rank := ROOT_RANK.search(line.text)):
            root_rank = int(rank[1])
        if STALLED.search(line.text):
            yield from _stalled(line, counts)
            continue
        kind = _kind(line.text)
        if kind is None:
            continue
        counts[kind.name] = counts.get(kind.name, 0) + 1
        if counts[kind.name] > MANY:
            continue
        named = _named_rank(line) if root_rank is None or line.number >= root_until else root_rank
        is_root = line.number < root_until
        yield Fact(
            kind, line.text.strip()[:240], line.source, Scope(rank=named, node=node_of_file(line.file)),
            note="root cause" if is_root else ENDS if line.number > len(lines) - LAST_LINES else "",
        )  # fmt: skip
        if kind.name in EVENT_KINDS:
            events.append(
                (line.time_s, -1 if named is None else named, kind.name, line.text.strip()[:240], line.number)
            )
    if events:
        names = ("time_s", "rank", "kind", "text", "line")
        columns = {n: np.array(values) for n, values in zip(names, zip(*events, strict=True), strict=True)}
        yield Table("rank.events", columns, Source(artifact.name))


def _kind(text: str) -> Quantity | None:
    for quantity, pattern in KINDS:
        if pattern.search(text):
            if quantity is hang.RANK_ERROR and ECHO.search(text):
                return None
            return quantity
    return None


def _named_rank(line: Line) -> int | None:
    match = NAMED_RANK.search(line.text)
    numbers = [g for g in match.groups()[:4] if g is not None] if match else []
    return int(numbers[0]) if numbers else line.rank


def _stalled(line: Line, counts: dict[str, int]) -> Iterator[Fact]:
    counts["stalled"] = counts.get("stalled", 0) + 1
    if counts["stalled"] > MANY:
        return
    ops = STALLED_OPS.search(line.text)
    text = ops[1] if ops else line.text.strip()
    yield Fact(hang.STALLED_TENSORS, text[:240], line.source, Scope(rank=line.rank))
    missing = MISSING.search(line.text)
    if missing:
        yield Fact(hang.HANG_MISSING, f"ranks {missing[1].strip(' ,')}", line.source, note="Horovod")
