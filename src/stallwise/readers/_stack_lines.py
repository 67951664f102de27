"""Lines of code by how many samples of a profiler of stacks lie in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stallwise.evidence.fact import WHOLE, Scope, Source, Table
from stallwise.evidence.profile import Spent, profile_table
from stallwise.evidence.top import MOST_ROWS, top_table
from stallwise.late import np
from stallwise.readers._profile_kinds import seconds_by_kind


def lines_table(stacks: Iterable[tuple[Sequence[str], float]], source: Source, scope: Scope = WHOLE) -> Iterator[Table]:
    """From stacks, innermost line first, each with its weight: a line's own share, and that of all it calls."""
    own: dict[str, float] = {}
    held: dict[str, float] = {}
    for stack, weight in stacks:
        if not stack:
            continue
        own[stack[0]] = own.get(stack[0], 0.0) + weight
        for line in set(stack):
            held[line] = held.get(line, 0.0) + weight
    whole = sum(own.values())
    if whole <= 0:
        return
    lines = sorted(held, key=lambda line: (-own.get(line, 0.0), -held[line], line))[:MOST_ROWS]
    columns = {
        "name": np.array(lines, dtype=object),
        "share": np.array([own.get(line, 0.0) / whole for line in lines]),
        "held_share": np.array([held[line] / whole for line in lines]),
    }
    yield top_table("python lines", columns, source, scope, left_out=len(held) - len(lines))


def stacks_profile(
    stacks: Sequence[tuple[Sequence[str], float]], source: Source, *, thread: str, second: float, threads: int
) -> Table:
    """One thread's samples as a profile. `second` turns weights into seconds; 0 where they only count samples."""
    own: dict[str, float] = {}
    held: dict[str, float] = {}
    for stack, weight in stacks:
        if stack:
            own[stack[0]] = own.get(stack[0], 0.0) + weight * (second or 1.0)
        for line in set(stack):
            held[line] = held.get(line, 0.0) + weight * (second or 1.0)
    rows = [Spent(line, own.get(line, 0.0), 0.0, seconds) for line, seconds in held.items()]
    beside = f", one of {threads} threads" if threads > 1 else ""
    return profile_table(
        rows, source, of=f"{thread or 'the sampled thread'}{beside}", host_s=sum(own.values()), doing=seconds_by_kind(rows),
        unit="" if second else "samples",
    )  # fmt: skip
