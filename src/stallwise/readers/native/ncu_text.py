"""Nsight Compute's details page as printed in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source, Table
from stallwise.readers._patterns import patterns
from stallwise.readers.native._ncu import Launch, facts_of
from stallwise.readers.native._ncu_names import displayed

FORMAT = "Nsight Compute text"
CAPTURE = "ncu --set full python script.py > details.txt"
EXCLUSIVE = True
_P = patterns("ncu_text")


def recognises(name: str, head: bytes) -> bool:
    """A kernel line and a section of metrics."""
    text = head[:65536].decode("utf-8", "replace")
    if "==ERROR== " in text and "No kernels were profiled" in text:
        return True
    if "Section: " not in text or ", Context " not in text:
        return False
    named = (line for line in text.splitlines() if ", Context " in line)
    return "Metric Name" in text or any(  # headers may be cut away, and tools before 2023 wrote none
        _P["kernel"].match(line) or _P["kernel_old"].match(line) for line in named
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts per kernel."""
    source = Source(artifact.name)
    launches: list[Launch] = []
    rule: list[str] | None = None
    kind = section = ""
    for at, line in enumerate(artifact.lines(), 1):
        if failed := _P["error"].match(line):
            yield Note(f"ncu says: {failed[1].strip()}", Source(artifact.name, f"line {at}"), lost=True)
            continue
        match = _P["kernel"].match(line) or _P["kernel_old"].match(line)
        if match:
            groups = [*match.groups(), "", "", ""]
            launches.append(Launch(groups[0], f"line {at}", groups[1], groups[2], groups[3]))
            rule = None
        elif not launches:
            continue
        elif match := _P["section"].match(line):
            section, rule = match[1], None
        elif match := _P["rule"].match(line):
            kind, rule = match[1], [match[2].strip()]
            launches[-1].rules.append((section, "", "", ""))
            _close(launches[-1], rule, kind)
        elif rule is not None and line.startswith(" " * 10) and line.strip():
            rule.append(line.strip())
            _close(launches[-1], rule, kind)
        elif not line.strip() or _P["ruler"].match(line):
            rule = None
        else:
            _metric(launches[-1], line)
    if not launches:
        yield Table("kernels without counters", {"name": np.empty(0, np.str_)}, source)
    yield from facts_of(launches, source)


def _close(launch: Launch, lines: list[str], kind: str) -> None:
    """Keeps the rule's text so far; its speedup stands at the start."""
    text = " ".join(lines)
    section = launch.rules[-1][0]
    speedup, local = "", ""
    if match := _P["speedup"].match(text):
        speedup, local = match[2], "local" if match[1] else "global"
        text = text[match.end() :]
    launch.rules[-1] = (section, text, local, speedup if kind == "OPT" else "")


def _metric(launch: Launch, line: str) -> None:
    """A line of three columns of which the middle one may be empty."""
    cells = re.split(r"\s{2,}", line.strip())
    if len(cells) < 2 or cells[0] == "Metric Name":
        return
    name, value = cells[0], cells[-1]
    unit = cells[1] if len(cells) >= 3 else ""
    if not unit:
        # "Duration us 364.77" when columns are narrow, or "cycle 40,961,363.15" when the value is wide.
        words = value.split(" ")
        if len(words) == 2 and _P["units"].match(words[0]):
            unit, value = words
        elif not _known(name) and len(parts := name.rsplit(" ", 1)) == 2 and _P["units"].match(parts[1]):
            name, unit = parts
    launch.add_metric(name, value, unit)


def _known(name: str) -> bool:
    """A name that ends in a word which is also a unit: "Waves Per SM"."""
    return any(name == title for title, _ in displayed())
