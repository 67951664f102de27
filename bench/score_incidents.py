"""Scores incidents of several files: first fault, order, hosts to drain, owner. Prints totals; `--each` names the incidents.

    python bench/score_incidents.py FOLDER [--each] [--program 'stallwise']

FOLDER holds `expect.jsonl`, an object an incident: `first_fault {file, line, accept}`, `also_first`, `separate`, `owner_accept`,
`drain`, `before_must_not`, `last_good_step`. A tree without the key `incident` is scored by its first cause alone.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

ASPECTS = ("line", "cause", "first fault", "before", "links", "drain", "owner", "last good step")


def main() -> None:
    """Diagnoses every folder and prints how many answers were right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--program", default="stallwise")
    given = parser.parse_args()
    lines = (given.folder / "expect.jsonl").read_text().splitlines()
    right: Counter[str] = Counter()
    expected = [json.loads(line) for line in lines if line.strip()]
    for want in expected:
        got = _diagnosed(given.program, given.folder / want["folder"])
        marks = judged(want, got)
        right.update(name for name, good in marks.items() if good)
        if given.each:
            wrong = [name for name, good in marks.items() if not good]
            print(want["id"], "wrong: " + ", ".join(wrong) if wrong else "right", f"({got.get('ranked', [])[:1]})")
    for name in ASPECTS:
        print(f"{name:15} {right[name]:3} of {len(expected)}")


def _diagnosed(program: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*shlex.split(program), "diagnose", str(folder), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return found


def judged(want: dict[str, Any], got: dict[str, Any]) -> dict[str, bool]:
    """Each aspect of one incident: right or wrong."""
    about = got.get("incident_about") or {}
    rows = got.get("incident") or []
    place = next((_place(row) for row in rows if row.get("first")), "")
    text = next((row["sentence"] for row in rows if row.get("first")), "")
    fault = want["first_fault"]
    line = place == f"{fault['file']}:{fault['line']}" or any(_is_also(a, place, text) for a in want["also_first"])
    cause = (got.get("ranked") or [""])[0] in fault["accept"]
    named = place not in want["separate"] and (not rows or line or not place)
    claimed = {tuple(pair[:2]) for pair in about.get("before", ())}
    pairs = [tuple(pair) for pair in want["before_must_not"]]
    linked = {_place(row) for row in rows if row.get("first") or row.get("caused_by") is not None}
    owner = about.get("owner") or ((got.get("findings") or [{}])[0].get("owner") or "none")
    return {
        "line": line,
        "cause": cause,
        "first fault": line or (cause and named),
        "before": not any(p in claimed or p[::-1] in claimed for p in pairs),
        "links": not linked & set(want["separate"]),
        "drain": sorted(got.get("drain") or []) == sorted(want["drain"]),
        "owner": owner in (want.get("owner_accept") or [want["owner"]]),
        "last good step": about.get("last_good_step") == want["last_good_step"],
    }


def _place(row: dict[str, Any]) -> str:
    return f"{Path(str(row['file'])).name}:{row['line']}"


def _is_also(also: str, place: str, text: str) -> bool:
    file, _, words = also.partition(" ")
    return place == also or (
        bool(words) and place.split(":")[0] == file.split(":")[0] and words.lower() in text.lower()
    )


if __name__ == "__main__":
    main()
