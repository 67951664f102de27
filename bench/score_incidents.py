"""Scores incidents of several files: first fault, order, consequences, owner, hosts to drain. Prints totals.

    python bench/score_incidents.py FOLDER [--each] [--program 'stallwise']

FOLDER has a folder an incident with `files/` (what a user hands over) and `truth.json`: `first_fault {file, line}`,
`first_fault_also`, `first_fault_accept` (expressions on the sentence), `owner`, `owner_accept`, `hosts_to_drain`, `caused`,
`separate`, `before_pairs` (orders that follow from the clocks), `unorderable` (pairs whose order does not), `last_good_step`,
`end`, `accept` (causes). A place is [file, line]. A wrong "before" is a stated pair that is the reverse of one that follows, or
whose order does not follow.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Place = tuple[str, int]
SHARES = ("caused", "ordered", "separate named")


def main() -> None:
    """Diagnoses every folder and prints how many answers were right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--program", default="stallwise")
    given = parser.parse_args()
    right: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for path in sorted(given.folder.glob("*/truth.json")):
        want = json.loads(path.read_text())
        got = _diagnosed(given.program, path.parent / "files")
        marks, shares = judged(want, got)
        right.update(name for name, good in marks.items() if good)
        of.update(marks.keys())
        for name, (have, whole) in shares.items():
            right[name] += have
            of[name] += whole
        if given.each:
            wrong = [name for name, good in marks.items() if not good]
            told = ", ".join(f"{name} {have}/{whole}" for name, (have, whole) in shares.items())
            print(
                path.parent.name,
                "wrong: " + ", ".join(wrong) if wrong else "right",
                f"({told})",
                got.get("ranked", [])[:1],
            )
    for name, whole in of.items():
        print(f"{name:18} {right[name]:3} of {whole}")


def _diagnosed(program: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*shlex.split(program), "diagnose", ".", "--json", "--no-history", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return found


def judged(want: dict[str, Any], got: dict[str, Any]) -> tuple[dict[str, bool], dict[str, tuple[int, int]]]:
    """Each aspect of one incident, and shares of its lines."""
    about, rows = got.get("incident_about") or {}, got.get("incident") or []
    first = next((row for row in rows if row.get("first")), None)
    place = _of_row(first) if first else ("", 0)
    separate = _places(want["separate"])
    wanted = _places(
        [(want["first_fault"]["file"], want["first_fault"]["line"]), *(want.get("first_fault_also") or ())]
    )
    says = str(first["sentence"]) if first else str((got.get("findings") or [{}])[0].get("headline", ""))
    worded = any(re.search(pattern, says, re.IGNORECASE) for pattern in want["first_fault_accept"])
    linked = {_of_row(row) for row in rows if row.get("first") or row.get("caused_by") is not None}
    ordered = _closed({(_place(a), _place(b)) for a, b in want["before_pairs"]})
    open_pairs = {(_place(a), _place(b)) for a, b in want["unorderable"]}
    claimed = {(_split(a), _split(b)) for a, b, *_ in about.get("before", ())}
    wrong = {(a, b) for a, b in claimed if (b, a) in ordered or (a, b) in open_pairs or (b, a) in open_pairs}
    caused, shown = _places(want["caused"]), {_of_row(row) for row in rows}
    ends = [_of_row(row) for row in rows if row.get("role") == "end"]
    owner = about.get("owner") or ((got.get("findings") or [{}])[0].get("owner") or "none")
    marks = {
        "first fault": place in wanted or (worded and place not in separate),
        "first line": place in wanted,
        "cause": (got.get("ranked") or [""])[0] in want["accept"],
        "owner": owner in (want["owner"], *(want.get("owner_accept") or ())),
        "drain": sorted(got.get("drain") or []) == sorted(want["hosts_to_drain"]),
        "no wrong before": not wrong,
        "separate kept apart": not linked & separate,
        "last good step": about.get("last_good_step") == want["last_good_step"],
        "end": _place((want["end"]["file"], want["end"]["line"])) in (ends or linked),
    }
    shares = {
        "caused": (len(linked & caused), len(caused)),
        "ordered": (len(_closed(claimed) & ordered), len(ordered)),
        "separate named": (len(shown & separate), len(separate)),
    }
    return marks, shares


def _closed(pairs: set[tuple[Place, Place]]) -> set[tuple[Place, Place]]:
    """With what follows from two pairs."""
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs = pairs | more
    return pairs


def _places(pairs: Iterable[Any]) -> set[Place]:
    return {_place(pair) for pair in pairs}


def _place(pair: Any) -> Place:
    return Path(str(pair[0])).name, int(pair[1])


def _of_row(row: dict[str, Any]) -> Place:
    return Path(str(row["file"])).name, int(row["line"] or 0)


def _split(text: str) -> Place:
    file, _, line = text.rpartition(":")
    digits = line.partition("-")[0]
    return Path(file).name, int(digits) if digits.isdigit() else 0


if __name__ == "__main__":
    main()
