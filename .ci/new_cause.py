"""Writes the two files of a new cause: make new-cause NAME=late-gather FAMILY=distributed.

Both hold TODO marks, and tests/meta/test_causes.py fails until the last of them is filled in.
"""

import re
import sys
from pathlib import Path

RULES = Path(__file__).parents[1] / "src" / "stallwise" / "causes"
MODULE = '''"""TODO one sentence that says what stalls.

## What it means
TODO

## Why it costs
TODO

## What else looks so
TODO

## Fix
TODO

## How the gain is found
TODO
"""

from __future__ import annotations

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.rule import rule

NOTICEABLE = 0.05  # TODO of what, and why from there on

CLUES = (above(run.DATA_SHARE, NOTICEABLE, "strong", "TODO what is seen"),)


@rule(run.DATA_SHARE)  # TODO the quantities without which nothing can be said
def {name}(evidence: Evidence) -> Finding | None:
    """TODO what it looks for."""
    share = evidence.get(run.DATA_SHARE)
    if share is None or share.number < NOTICEABLE:
        return None
    return Finding(headline="TODO.", confidence=0.8, because=(Reason.of(f"TODO {{share}}", share),))
'''
TABLE = """title = "TODO what happens, in a dozen words"
owner = "your code"  # TODO or: framework, node, network, storage, serving settings
preview = true  # until tests/cases/ holds a captured case with it and one without
seen = "TODO what a person sees of it, in one line"
phrases = ["TODO what people write who have it"]

[explains]  # symptoms that it can be behind, and how often it is: mostly, often, at times, seldom
slow_step = "at times"  # TODO

[drill]
words = ["TODO"]
fix = "TODO"
refuted = "TODO what would show that it is not this"
trap = "TODO what people try first, in vain"
near = []
"""


def main(cause: str, family: str) -> None:
    folders = sorted(p.name for p in RULES.iterdir() if (p / "__init__.py").exists() and p.name != "health")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", cause):
        sys.exit(f"'{cause}' is no name of a cause: small letters and dashes, as in straggler-rank")
    if family not in folders:
        sys.exit(f"'{family}' is no family: {', '.join(folders)}")
    if any(p.stem == cause.replace("-", "_") for p in RULES.glob("*/*.toml")):
        sys.exit(f"{cause} is there already")
    name = cause.replace("-", "_")
    for suffix, text in ((".py", MODULE.format(name=name)), (".toml", TABLE)):
        path = RULES / family / f"{name}{suffix}"
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(RULES.parents[2])}")


if __name__ == "__main__":
    main(*sys.argv[1:])
