"""Kernel messages (dmesg, journalctl, syslog) and NVIDIA's bug report, which holds some beside `nvidia-smi -q`.

Of thousands of lines few concern accelerators, links, memory or a failing machine. `parts` leaves those, and what nvidia-smi said;
what other services of the machine print is no evidence about its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.late import np
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.pasted import only_lines

FORMAT = "kernel log"
LABELLED = True  # a machine's messages: only those with a meaning count, whatever words the others hold
CAPTURE = "sudo dmesg -T > dmesg.txt"
TABLE = "kernel.log"
SAMPLE_LINES = 400
MOSTLY = 0.6  # of the lines of a sample
FEW_KERNEL = 3  # lines of the kernel in a journal: fewer are somebody's quotation
REPORT_HEAD = 4096  # bytes in which the report names itself
_P = patterns("kernel_log")


@dataclass(slots=True)
class _Found:
    """Places of a log, counted from 0."""

    kernel: list[int] = field(default_factory=list)
    others: int = 0  # lines of services that say nothing of accelerators
    boots: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)


def recognises(name: str, head: bytes) -> bool:
    """A bug report, or lines most of which are the kernel's or a journal's with some of the kernel among them."""
    text = head.decode("utf-8", "replace")
    if _P["report"].search(text[:REPORT_HEAD]):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    sample = lines[:SAMPLE_LINES]
    known = [_who(line) for line in sample]
    if not sample or sum(map(bool, known)) < MOSTLY * len(sample):
        return False
    return sum(who == "kernel" for who in known) >= min(FEW_KERNEL, len(sample))


def read(artifact: Artifact) -> Iterator[Item]:
    """How much the kernel said, from when to when, over how many boots."""
    lines = artifact.lines()
    found = _look(lines)
    if not found.kernel:
        return
    first, last = found.kernel[0] + 1, found.kernel[-1] + 1
    meta: dict[str, object] = {
        "driver": any(_P["driver"].search(lines[at]) for at in found.kept) or bool(found.state),
        "first": _stamp(lines[first - 1]),
        "last": _stamp(lines[last - 1]),
        "boots": max(1, len(found.boots)),
        "others": found.others,
        "boot_line": found.boots[-1] + 1 if found.boots and not is_report(artifact) else 0,
    }
    yield Table(TABLE, {"line": np.array(found.kernel) + 1}, Source(artifact.name, f"lines {first}-{last}"), meta=meta)


def parts(artifact: Artifact) -> list[Artifact] | None:
    """What concerns accelerators and what nvidia-smi said, each with its lines in their places; None where that is all there is."""
    lines = artifact.lines()
    found = _look(lines)
    if len(found.kept) + len(found.state) == sum(1 for line in lines if line.strip()) and not (
        found.kept and found.state
    ):
        return None
    return [only_lines(artifact, here) for here in (found.kept, found.state) if here]


def is_report(artifact: Artifact) -> bool:
    """Whether NVIDIA's script collected it: boots stand in it newest first, and twice."""
    return _P["report"].search(artifact.head[:REPORT_HEAD].decode("utf-8", "replace")) is not None


def _look(lines: Sequence[str]) -> _Found:
    found, within_state = _Found(), False
    for at, line in enumerate(lines):
        if _P["state"].match(line):
            within_state = True
        elif within_state and _P["section"].match(line):
            within_state = False
        if within_state:
            if line.strip():
                found.state.append(at)
            continue
        who = _who(line)
        if _P["boot"].search(line):
            found.boots.append(at)
            found.kept.append(at)
            found.kernel += [at] if who == "kernel" else []
            continue
        if who == "kernel":
            found.kernel.append(at)
            if _P["about"].search(line):
                found.kept.append(at)
        elif who and _P["program"].match(who):
            found.kept.append(at)
        elif who:
            found.others += 1
        elif found.kept[-1:] == [at - 1] and _P["about"].search(line):  # a message of several lines has one stamp
            found.kept.append(at)
    return found


def _who(line: str) -> str:
    """The program that a line is of: the kernel, another, or none where it is no line of a log."""
    if _P["ring"].match(line):
        return "kernel"
    journal = _P["journal"].match(line)
    return journal["program"].rsplit("/", 1)[-1] if journal else ""


def _stamp(line: str) -> str:
    found = _P["stamp"].match(line)
    return found[1].strip("[] ") if found else ""
