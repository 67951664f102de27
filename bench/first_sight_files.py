"""Scores real files against their truth: `python bench/first_sight_files.py FOLDER [--cases]`.

FOLDER holds `expect.jsonl`: `file`, `kind`, `accept` (causes, "none", "unclear"), and where known `never`, `healthy`, `must_say`,
`cannot_tell_deserved`. The answer of a file is its first cause where the state is sick, "none" where it is healthy, else "unclear".
Right: accepted. Defensible: unclear, and the first hypothesis is accepted. Wrong: sick or healthy, and not accepted. Without `--cases`
only totals are printed, so that a sealed half stays sealed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.errors import StallwiseError
from stallwise.render.json import to_dict

NEAR = 0.03  # of a number that must be said
OFFERED = 0.3
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")


def answer_of(found: Diagnosis) -> str:
    """What a reader takes home: a cause, "none" or "unclear"."""
    if found.state is State.SICK:
        return found.ranked[0]
    return "none" if found.state is State.HEALTHY else "unclear"


def marks_of(row: dict[str, Any], found: Diagnosis | None) -> Iterator[str]:
    """What counts of one file."""
    accept, never = row["accept"], row.get("never", [])
    said = "unclear" if found is None else answer_of(found)
    first = next((c for c in found.ranked if c != "none"), "") if found is not None else ""
    deserved = row.get("cannot_tell_deserved") or "unclear" in accept
    right = said in accept or (said == "unclear" and bool(deserved))
    if right:
        yield "right"
    elif said == "unclear" and first in accept:
        yield "defensible"
    elif said == "unclear":
        yield "cannot tell, not deserved"
    else:
        yield "wrong"
        if said == "none":
            yield "unfounded healthy"
    if said == "unclear":
        yield "cannot tell"
    if found is None:
        yield "not read"
        return
    if found.state is State.SICK and said in never:
        yield "never-cause said"
    if row.get("healthy") or ("healthy" not in row and accept[:1] == ["none"]):
        yield "healthy subject"
        if said == "none" or any(not p.lacks for p in found.proofs):
            yield "healthy subject: said with its numbers"
        if found.state is State.SICK and said not in accept:
            yield "healthy subject: called sick"
        if said != "none" and any(
            h.probability >= OFFERED and h.cause not in ("something-else", *accept) for h in found.hypotheses
        ):
            yield "healthy subject: offered another cause at 30%"
    wanted = [m["value"] for m in row.get("must_say", []) if isinstance(m["value"], int | float)]
    if wanted:
        shown = [float(n.replace(",", "")) for n in _NUMBER.findall(json.dumps(to_dict(found), default=str))]
        held = sum(_is_among(float(w), shown) for w in wanted)
        yield "numbers asked for"
        if held * 2 >= len(wanted):
            yield "numbers: half of them said"


def _is_among(wanted: float, shown: list[float]) -> bool:
    """The same number in any unit of a thousand or a hundred."""
    scales = (1.0, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9, 2.0**30, 2.0**20)
    return any(abs(n * s - wanted) <= NEAR * abs(wanted) for n in shown for s in scales)


def main() -> None:
    """Prints totals, by kind as well; with --cases every file that is not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", action="store_true")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    rows = [json.loads(line) for line in (args.folder / "expect.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        try:
            found: Diagnosis | None = diagnose(str(args.folder / row["file"]), cache=False, workers=1)
        except StallwiseError:
            found = None
        marks = list(marks_of(row, found))
        counts.update(marks)
        kinds.update((row["kind"], m) for m in ("files", *marks))
        if args.cases and marks[0] != "right":
            first = found.findings[0].headline if found is not None and found.findings else ""
            print(
                f"{row['id']} {row['kind']}: {marks}; {found and answer_of(found)} {first[:90]!r}; accept {row['accept']}"
            )
    print(f"{len(rows)} files")
    for mark, number in sorted(counts.items()):
        print(f"  {mark:48s} {number:3d}")
    for kind in sorted({k for k, _ in kinds}):
        shown = {m: kinds[kind, m] for m in ("files", "right", "defensible", "wrong", "cannot tell, not deserved")}
        print(f"  {kind:22s} {shown}")


if __name__ == "__main__":
    main()
