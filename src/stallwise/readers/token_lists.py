"""Lists of tokens, one number an expert or a rank, as routers print them into training logs."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.late import np
from stallwise.readers._patterns import patterns

FORMAT = "tokens by expert"
_HINTS = (b"per_expert", b"per expert", b"by_expert", b"by expert", b"tokens_per_rank", b"tokens per rank")
_P = patterns("keyed")
MANY = 100.0  # tokens an expert
LONGEST = 20_000  # characters of a line: two thousand experts


def recognises(name: str, head: bytes) -> bool:
    """A list of tokens behind such a key."""
    return b"\x00" not in head[:4096] and any(hint in head for hint in _HINTS)


def read(artifact: Artifact) -> Iterator[Item]:
    """Of all lists of one length the one that is as uneven as most: layers have hot experts of their own, which a mean would hide."""
    found: dict[tuple[str, int], list[tuple[int, list[float]]]] = {}
    for number, line in enumerate(artifact.lines(), 1):
        match = _P["token_list"].search(line[:LONGEST]) if "token" in line else None
        if match is None:
            continue
        counts = [float(n) for n in match["numbers"].split(",")]
        if sum(counts) > 0:
            found.setdefault((match["axis"].lower(), len(counts)), []).append((number, counts))
    for (axis, places), lists in found.items():
        first, last = lists[0][0], lists[-1][0]
        where = f"line {first}" if first == last else f"lines {first}-{last}"
        count_matrix = np.array([counts for _, counts in lists])
        # Of few tokens each list is uneven by chance: the largest of 64 counts around 16 is twice the mean.
        uneven = np.argsort(count_matrix.max(axis=1) / count_matrix.mean(axis=1), kind="stable")
        tokens = count_matrix[uneven[len(uneven) // 2]] if count_matrix.mean() >= MANY else count_matrix.mean(axis=0)
        columns = {axis: np.arange(places, dtype=np.float64), "tokens": tokens}
        meta = {"axis": axis, "tokens": ["tokens"], "times": [], "lists": len(lists)}
        yield Table("rank_table", columns, Source(artifact.name, where), meta=meta)
