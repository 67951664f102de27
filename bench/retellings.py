"""Tells cases in other clothes, without changing a fact, and asks whether the first answer stays.

    python bench/retellings.py EXPECT.jsonl DATA_ROOT [--only a,b] [--jobs 2] [--every 1]

A row without `paths` (an incident's index) lies in the folder of its name. A line a re-telling: cases it changes, the
share of first answers that were right and still are, and false all-clears. Half of the re-tellings, drawn by a hash of their
name, are only counted: who reads what they lose has spent them.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")
sys.path.insert(0, str(Path(__file__).parent))

from facts_of_cases import answer, is_right, read_cases
from retold import TELLINGS, File

SHOWN = 8


def is_kept_apart(name: str) -> bool:
    """Whether a re-telling is only counted."""
    return hashlib.blake2b(name.encode()).digest()[0] % 2 == 1


def files_of(paths: list[Path]) -> list[File]:
    """A case's files, by name."""
    found = [f for p in paths for f in ([p] if p.is_file() else sorted(x for x in p.rglob("*") if x.is_file()))]
    return [_read(f) for f in found]


def _read(path: Path) -> File:
    data = path.read_bytes()
    try:
        return File(path.name, data.decode())
    except UnicodeDecodeError:
        return File(path.name, data=data)


def first_answer(files: list[File]) -> tuple[str, str]:
    """First cause and state of these files in a folder of their own."""
    with TemporaryDirectory() as folder:
        for f in files:
            place = Path(folder, f.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(f.text.encode() if f.data is None else f.data)
        _, _, first, state = answer([folder])
    return first, state


def ask(given: tuple[dict[str, Any], str, list[str]]) -> tuple[bool, dict[str, str]]:
    """Whether the case is right as it is, and the first answer of each re-telling that changes it, "" where it is kept."""
    case, root, names = given
    files = files_of([Path(root, p) for p in case.get("paths", [case["id"]])])
    if not is_right(case, *first_answer(files)):
        return False, {}
    told = {}
    for name in names:
        other = TELLINGS[name](files)
        if other != files:
            found = first_answer(other)
            told[name] = "" if is_right(case, *found) else found[0]
    return True, told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expect")
    parser.add_argument("root")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    names = [x for x in args.only.split(",") if x] or list(TELLINGS)
    cases = read_cases(args.expect)[:: args.every]
    with multiprocessing.Pool(args.jobs) as pool:
        found = pool.map(ask, [(c, args.root, names) for c in cases], chunksize=1)
    lost: dict[str, dict[str, str]] = defaultdict(dict)
    for case, (_, told) in zip(cases, found, strict=True):
        for name, first in told.items():
            lost[name][case["id"]] = first
    print(f"{'as it is':18s} right {sum(right for right, _ in found)} of {len(cases)}")
    for name in names:
        gone = {k: v for k, v in lost[name].items() if v}
        shown = "" if is_kept_apart(name) else "  ".join(f"{k}: {v}" for k, v in list(gone.items())[:SHOWN])
        share = 1 - len(gone) / len(lost[name]) if lost[name] else 1.0
        clear = sum(v == "none" for v in gone.values())
        print(
            f"{name:18s} told {len(lost[name]):3d}  kept {share:6.1%}  false all-clear {clear:2d}  {shown}", flush=True
        )


if __name__ == "__main__":
    main()
