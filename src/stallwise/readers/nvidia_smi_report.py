"""What nvidia-smi tells of each GPU at one moment: the plain table, `-q` as indented text, and `-q -x` as XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.late import np
from stallwise.readers._cells import whole_of
from stallwise.readers._gpu_samples import GpuSamples, number, put, seconds
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.xml import parsed

FORMAT = "nvidia-smi report"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "nvidia-smi -q > q.txt"
MAX_BYTES = 64 << 20  # a thousand GPUs are a few tens of megabytes
_P = patterns("nvidia_smi")


class CardReport(NamedTuple):
    """What a report says of a card: its lines, or texts by their paths."""

    place: int
    bus_id: str
    line: int
    time_s: float
    lines: Sequence[str] = ()
    texts: Mapping[str, str] = {}


def recognises(name: str, head: bytes) -> bool:
    """The root element, a banner, a heading with pairs under it, or the two lines of a card where somebody pasted only those."""
    if b"<nvidia_smi_log" in head[:4096]:
        return True
    text = head.decode("utf-8", "replace")
    if "NVSMI LOG" in text or _P["banner"].search(text):
        return True
    lines = text.splitlines()
    asked = any(map(_P["heading"].match, lines)) and any(map(_P["pair"].match, lines))
    return asked or any(_P["card"].match(a) and _P["state"].match(b) for a, b in pairwise(lines))


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU and report."""
    samples = GpuSamples(artifact.name)
    of_xml = b"<nvidia_smi_log" in artifact.head[:4096]
    cards, notes = _xml(artifact) if of_xml else (_text(artifact, samples), [])
    columns = {"time_s": np.array([card.time_s for card in cards])}
    for path in dict.fromkeys(path for card in cards for path in card.texts):
        put(columns, path, [card.texts.get(path, "") for card in cards])
    numbers = [whole_of(card.texts.get("minor_number")) for card in cards]
    samples.add(
        [(card.place if minor is None else minor, None) for card, minor in zip(cards, numbers, strict=True)],
        columns,
        [card.line for card in cards],
        [card.texts.get("product_name", "").strip() for card in cards],
        [card.bus_id.lower() for card in cards],
    )
    yield from samples.items()
    yield from notes


def _text(artifact: Artifact, samples: GpuSamples) -> list[CardReport]:
    """The cards of -q; those of the plain table are samples as they stand."""
    cards: list[CardReport] = []
    time_s, index = float("nan"), -1
    card_lines: list[str] | None = None  # the lines of a card
    pending: re.Match[str] | None = None
    for at, line in enumerate(artifact.lines(), 1):
        if line[:1] == " ":  # most lines, and none of the others begins so
            if card_lines is not None:
                card_lines.append(line)
        elif "NVSMI LOG" in line:
            card_lines, index = None, -1
        elif heading := _P["heading"].match(line):
            card_lines, index = [], index + 1
            cards.append(CardReport(index, heading[1], at, time_s, card_lines))
        elif stamp := _P["stamp"].match(line):
            time_s = seconds(stamp[1])
        elif first := _P["card"].match(line):
            pending = first
        elif pending and (second := _P["state"].match(line)):
            known = pending.groupdict() | {key: x or "" for key, x in second.groupdict().items()}
            gpu, name, bus_id = (known.pop(key) for key in ("gpu", "name", "bus_id"))
            columns = {"time_s": np.array([time_s]), **{column: np.array([number(x)]) for column, x in known.items()}}
            samples.add([(int(gpu), None)], columns, [at], [name], [bus_id.lower()])
            pending = None
    return [card._replace(texts=dict(_pairs(card.lines))) for card in cards]


def _xml(artifact: Artifact) -> tuple[list[CardReport], list[Note]]:
    text = artifact.text(MAX_BYTES)
    report = parsed(text)
    if report is None:
        hint = "nvidia-smi writes none; do not trust this file"
        raise UnreadableInput(f"{artifact.name} declares XML entities", hint=hint)
    log = report.get("nvidia_smi_log")
    gpus = log.get("gpu", []) if isinstance(log, dict) else []
    time_s = seconds(str(log.get("timestamp", ""))) if isinstance(log, dict) else float("nan")
    whole = text.count("</gpu>")  # a card that the file ends in is left out
    starts = [at for at, line in enumerate(text.splitlines(), 1) if "<gpu id=" in line]
    cards = [
        CardReport(
            index,
            str(gpu.get("id", "")),
            starts[index] if index < len(starts) else 1,
            time_s,
            texts=dict(_leaves(gpu, "")),
        )
        for index, gpu in enumerate((gpus if isinstance(gpus, list) else [gpus])[:whole])
        if isinstance(gpu, dict)
    ]
    if "</nvidia_smi_log>" in text:
        return cards, []
    if not cards:
        raise UnreadableInput(f"{artifact.name} is damaged XML", hint="run nvidia-smi -q -x again")
    return cards, [Note("cut off or damaged", Source(artifact.name), lost=True)]


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Paths and values: sections are told by their indentation, and a value ("HW Slowdown : Active") can be a section too."""
    sections: list[tuple[int, str]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        key, colon, value = line.strip().partition(" : ")
        while sections and sections[-1][0] >= indent:
            sections.pop()
        sections.append((indent, _section(key)))
        if colon:
            yield "/".join(section for _, section in sections), value


@lru_cache(maxsize=1 << 12)
def _section(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")


def _leaves(tree: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield from _leaves(one, f"{path}{key}/")
            elif one:
                yield f"{path}{key}", str(one)
