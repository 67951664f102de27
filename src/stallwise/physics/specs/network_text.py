"""The network of a cluster from words: cards a node times their rate, a rate per node or per GPU, InfiniBand's generations.

Bits and bytes are told apart by the case of their b, as people write them: 400 Gb/s is 50 GB/s. A rate without the number
of cards that share it says nothing about one GPU and is left open.
"""

from __future__ import annotations

import re

NODE_GPUS = 8  # where a node's size is not said
GENERATIONS = {
    "fdr": 56.0,
    "edr": 100.0,
    "hdr100": 100.0,
    "hdr200": 200.0,
    "hdr": 200.0,
    "ndr200": 200.0,
    "ndr": 400.0,
    "xdr": 800.0,
}
# Bytes need their "per second": 80 GB a GPU is memory.
RATE = r"(?P<rate>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>[GT]b(?:it)?(?:/s|ps)?|[GT]B(?:/s|ps))(?![a-zA-Z/])"
CARDS_RATE = re.compile(rf"(?P<cards>\d{{1,9}}) ?[x\u00d7] ?{RATE}")
CARDS_GENERATION = re.compile(
    rf"(?P<cards>\d{{1,9}}) ?[x\u00d7] ?(?P<name>{'|'.join(sorted(GENERATIONS, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
PER_GPU = re.compile(rf"{RATE} (?:per|a|each) (?:GPU|gpu|card|accelerator)\b")
PER_NODE = re.compile(rf"{RATE}[^,;.]{{0,30}}? (?:per|a|each) node\b")
NODE_SIZE = re.compile(r"nodes? of (?P<gpus>\d{1,9})|(?P<each>\d{1,9}) ?(?:gpus|cards) (?:per|a) node", re.IGNORECASE)


def node_size(text: str) -> int | None:
    """GPUs of one node, where the words say it."""
    found = NODE_SIZE.search(text)
    return int(found["gpus"] or found["each"]) if found else None


def network_rate(text: str) -> float | None:
    """Bytes a second per GPU and direction, or None where the words do not give it."""
    if found := PER_GPU.search(text):
        return _byte_per_s(found)
    gpus = node_size(text) or NODE_GPUS
    if found := CARDS_RATE.search(text):
        return int(found["cards"]) * _byte_per_s(found) / max(gpus, 1)
    if found := CARDS_GENERATION.search(text):
        return int(found["cards"]) * GENERATIONS[found["name"].lower()] / 8 * 1e9 / max(gpus, 1)
    if found := PER_NODE.search(text):
        return _byte_per_s(found) / max(gpus, 1)
    return None


def _byte_per_s(found: re.Match[str]) -> float:
    rate = float(found["rate"]) * (1e12 if found["unit"][0] == "T" else 1e9)
    return rate if found["unit"][1] == "B" else rate / 8
