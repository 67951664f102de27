"""rocm-smi: its concise table, `GPU[0] : key: value` lines, and `--json`; one sample of every card."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.late import np
from stallwise.readers._gpu_samples import GpuSamples, gpu_words, number
from stallwise.readers._patterns import patterns

FORMAT = "rocm-smi"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "rocm-smi --showuse --showclocks --showpower --showtemp --showmeminfo vram --json > rocm_smi.json"
MAX_BYTES = 16 << 20
_P = patterns("rocm_smi")
Cards = dict[int, tuple[int, dict[str, str]]]  # cards with their line and what is said of each, by key


def recognises(name: str, head: bytes) -> bool:
    """Its banner, its lines of one card, or cards with its keys in JSON."""
    text = head[:262144].decode("utf-8", "replace")
    return (
        _P["banner"].search(text) is not None
        or _P["json"].search(text[:4096]) is not None
        or len(_P["said"].findall(text)) > 1
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample a card."""
    text = artifact.text(MAX_BYTES)
    notes: list[Note] = []
    if text.lstrip().startswith("{"):
        by_card, whole = _json(text)
        if not whole:
            notes.append(Note("cut off or damaged: what could be read was read", Source(artifact.name), lost=True))
    else:
        by_card = _table(artifact.lines())
        for card, (line, texts) in _keyed_lines(artifact.lines()).items():
            by_card.setdefault(card, (line, {}))[1].update(texts)
    samples = GpuSamples(artifact.name)
    for card, (line, texts) in by_card.items():
        columns = _columns(texts)
        name = next((v for k, v in texts.items() if gpu_words()["rocm_names"].get(_key(k)) == "name"), "AMD GPU")
        if columns:
            samples.add(
                [(card, None)], {k: np.array([v]) for k, v in columns.items()} | {"time_s": np.zeros(1)}, [line], [name]
            )
    yield from samples.items()
    yield from notes


def _columns(texts: dict[str, str]) -> dict[str, float]:
    """What the keys mean; the first of several sensors counts, and a share of the memory is one of its total."""
    found: dict[str, float] = {}
    for key, text in texts.items():
        column = gpu_words()["rocm"].get(_key(key))
        if column and (value := _number(text, key)) == value:
            found.setdefault(column, value)
    share = found.get("memory_used_share", float("nan"))
    if share == share and "memory_total_bytes" in found:
        found.setdefault("memory_used_bytes", share * found["memory_total_bytes"])
    return found


def _number(text: str, key: str) -> float:
    """ "(800Mhz)" as hertz, "45.0°C" as degrees, and percents by their key."""
    bare = text.strip().strip("()").replace("°", " ").strip()
    share = "%" in key and "%" not in bare
    return number(bare.replace("c", "") if bare.endswith("c") else bare, "%" if share else "")


def _key(key: str) -> str:
    """In lower case, without units and colons."""
    return re.sub(r"\((?:c|w|b|%|mhz)\)", "", key.lower()).strip(" :")


def _json(text: str) -> tuple[Cards, bool]:
    whole = True
    try:
        tree = json.loads(text)
    except ValueError:
        whole, tree = False, {}
        for found in _P["card_object"].finditer(text):
            try:
                tree[found[1]] = json.loads(found[2])
            except ValueError:
                continue
    lines = {found[1]: text.count("\n", 0, found.start()) + 1 for found in _P["card_key"].finditer(text)}
    cards = tree.items() if isinstance(tree, dict) else ()
    by_card: Cards = {}
    for key, value in cards:
        if isinstance(value, dict) and (named := _P["card_name"].fullmatch(str(key))):
            by_card[int(named[1])] = lines.get(named[1], 1), {str(k): str(v) for k, v in value.items()}
    return by_card, whole


def _keyed_lines(lines: list[str]) -> Cards:
    by_card: Cards = {}
    for at, line in enumerate(lines, 1):
        if found := _P["said"].match(line):
            by_card.setdefault(int(found[1]), (at, {}))[1].setdefault(found[2].strip(), found[3].strip())
    return by_card


def _table(lines: list[str]) -> Cards:
    """Cells under their heads: the heads' places part a row, since cells hold spaces."""
    by_card: Cards = {}
    heads: list[tuple[str, int]] = []
    for at, line in enumerate(lines, 1):
        if _P["heads"].match(line):
            heads = [(found[0].strip(), found.start()) for found in _P["head"].finditer(line)]
        elif heads and (card := _P["row"].match(line)):
            by_card[int(card[1])] = at, _cells(line, heads)
        elif not line.strip():
            heads = heads if not by_card else []
    return by_card


def _cells(line: str, heads: list[tuple[str, int]]) -> dict[str, str]:
    """By place where the cells stand under their heads, else by order from both ends."""
    words = re.split(r"\s{2,}", line.strip())
    if len(words) == len(heads):
        return {head: word for (head, _), word in zip(heads, words, strict=True)}
    ends = [start for _, start in heads[1:]] + [len(line) + 1]
    return {head: line[start:end].strip() for (head, start), end in zip(heads, ends, strict=True)}
