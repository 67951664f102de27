# ruff: noqa: E501  (lines as the tools print them)
"""Exhibits that every world has and that settle nothing: the change log, a colleague's note, the topology, the host."""

from __future__ import annotations

from stallwise.drill.artifacts.rng import Rng

_COMMITS = (
    "docs: say how to resume a run", "ci: newer linter", "tests: fixture for the tokenizer", "refactor: rename a helper of the sampler",
    "README: new figure", "chore: update the licence header", "docs: fix a typo in the config reference", "ci: cache the wheel",
)  # fmt: skip
_SURE = (
    "I have seen exactly this before: {blamed}. No need to look further.",
    "It is always the same: {blamed}. I would just fix that.",
    "Talked to two people, both say it must be this: {blamed}.",
    "Not looked at the data yet, but I bet on this: {blamed}.",
)


def changes(rng: Rng) -> str:
    """A quiet week of commits."""
    day = rng.whole(3, 20)
    rows = [
        f"{rng.whole(0x1000000, 0xFFFFFFF):07x} 2025-10-{day + i:02d} {text}\n"
        for i, text in enumerate(rng.some(_COMMITS, 4))
    ]
    return "".join(rows) + "(nothing else was merged or deployed)\n"


def note(rng: Rng, blamed: str) -> str:
    """Somebody is sure, without grounds."""
    return f"from the on-call channel, {rng.whole(1, 12)} hours ago\n{rng.pick(*_SURE).format(blamed=blamed)}\n"


def topology(link: str = "NV18", gpus: int = 8) -> str:
    """`nvidia-smi topo -m` of a node whose cards are all joined the same way."""
    head = "\t" + "\t".join(f"GPU{i}" for i in range(gpus)) + "\tCPU Affinity\tNUMA Affinity\n"
    rows = "".join(
        f"GPU{i}\t"
        + "\t".join("X" if i == j else link for j in range(gpus))
        + f"\t{'0-47' if i < gpus // 2 else '48-95'}\t{int(i >= gpus // 2)}\n"
        for i in range(gpus)
    )
    return head + rows


def host(rng: Rng) -> str:
    """`top` on a host with cores to spare."""
    idle = rng.between(70, 90)
    return (
        f"top - 10:{rng.whole(10, 59)}:00 up {rng.whole(3, 90)} days,  1 user,  load average: {rng.between(8, 14):.2f}, {rng.between(8, 14):.2f}, {rng.between(8, 14):.2f}\n"
        f"%Cpu(s): {96 - idle:.1f} us,  2.0 sy,  0.0 ni, {idle:.1f} id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st\n"
        f"MiB Mem : 2063866.0 total, {rng.between(1.2e6, 1.6e6):.1f} free\n"
    )
