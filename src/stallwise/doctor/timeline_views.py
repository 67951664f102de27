"""Which steps of which ranks a report shows, and which boxes of theirs prove which finding.

A finding is proved by what it speaks of: the time of the account it claims from, what the host did in that time, and events that
its reasons name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.scene import TIMELINE, Scene
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Table
from stallwise.evidence.ledger import Category
from stallwise.late import np

MOST_SCENES = 4  # what one page holds
MOST_BOXES = 60  # of a finding: nobody looks at more
SHORTEST_NAME = 8  # letters: shorter names occur in sentences by chance
_WORD = re.compile(r"[\w:]+")
MOSTLY = 0.5  # of a host event: what holds more other time than this proves nothing
MAIN_VERSION = (-1, 0)  # boxes of every telling, and of the first


def scenes_of(evidence: Evidence, findings: Sequence[Finding]) -> tuple[Scene, ...]:
    """The first is where the first finding shows best; then the slowest and the fastest rank, and steps that stand out."""
    scenes = [Scene(t, {i: p for i, f in enumerate(findings) if (p := _proof(t, f))}) for t in evidence.table(TIMELINE)]
    if not scenes:
        return ()
    first = max(scenes, key=lambda s: (_is_of(s, findings), _shows(s), s.table.meta["which"] == "usual"))
    usual = sorted((s for s in scenes if s.table.meta["which"] == "usual"), key=lambda s: -s.table.meta["length_s"])
    same_rank = [s for s in scenes if s.table.scope == first.table.scope]
    wanted = [first, *same_rank, *usual[:1], *usual[-1:], *usual]
    return tuple(dict.fromkeys(wanted))[:MOST_SCENES]


def _is_of(scene: Scene, findings: Sequence[Finding]) -> bool:
    rank = findings[0].scope.rank if findings else None
    return rank is not None and scene.table.scope.rank == rank


def _shows(scene: Scene) -> bool:
    return 0 in scene.proves


def _proof(table: Table, finding: Finding) -> tuple[int, ...]:
    """Rows of the table: what its reasons name, then the account along time and what the host did in it, longest first."""
    c = table.columns
    if finding.scope.rank is not None and table.scope.rank is not None and finding.scope.rank != table.scope.rank:
        return ()
    main = np.isin(c["version"], MAIN_VERSION)
    event = main & (c["track"] > 0)
    reasons_text = " ".join(reason.text for reason in finding.because)
    words = [w for w in _WORD.findall(reasons_text) if len(w) >= SHORTEST_NAME and ("_" in w or "::" in w)]
    by_name = np.array([_names(reasons_text, words, name) for name in table.meta["names"]], bool)
    named = event & by_name[c["name"]] if len(by_name) else np.zeros(len(table), bool)
    if not named.any():
        kinds = np.array(
            [re.search(rf"\b{re.escape(word)}\b", reasons_text) is not None for word in table.meta["works"]], bool
        )
        named = event & (c["work"] >= 0) & kinds[np.maximum(c["work"], 0)]
    mine = np.zeros(len(table), bool)
    # All of the computing is no proof of one sort of it.
    if finding.category not in (None, Category.COMPUTE) and finding.category.value in table.meta["accounts"]:
        mine = main & (c["account"] == table.meta["accounts"].index(finding.category.value))
    on_ledger = mine & (c["track"] == 0)
    on_host = mine & event & (c["idle_s"] > MOSTLY * (c["end_s"] - c["start_s"]))
    if mine.any():  # the same name may occur where it costs nothing
        named &= mine
    weight = np.where(event & (c["idle_s"] > 0), c["idle_s"], c["busy_s"])
    found: list[int] = []
    for which in (named, on_ledger, on_host):
        rows = np.flatnonzero(which)
        found += rows[np.argsort(-weight[rows], kind="stable")][: MOST_BOXES // 3].tolist()
    return tuple(dict.fromkeys(found))


def _names(reasons_text: str, words: list[str], name: str) -> bool:
    """The whole name, or a part of it that only a program would write."""
    return (len(name) >= SHORTEST_NAME and name in reasons_text) or any(word in name for word in words)
