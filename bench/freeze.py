"""Freezes what the product makes of every case on record, so that a change of the code shows what it changes.

    python bench/freeze.py OUT.jsonl [--every 5] [--workers 2] [--sets public_dev] [--shared FOLDER] [--against OLD.jsonl]
    python bench/freeze.py NEW.jsonl --against OLD.jsonl --compare-only

One line a case: facts as read (before measures), events, ranked causes, state, probability of the first hypothesis. `--against`
prints first answers that became right or wrong by the case's accept list, cases that became healthy, and facts lost by quantity.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import recorded_cases  # type: ignore[import-not-found]
from case_features import Case, healthy, held  # type: ignore[import-not-found]
from facts_of_cases import is_right, told  # type: ignore[import-not-found]

from stallwise.doctor.examine import examine
from stallwise.doctor.gather import gather
from stallwise.doctor.stating import state
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Evidence

SHOWN = 15  # quantities and cases named
LARGEST_BYTES = 32 << 20  # of a file without a truth: its reader's own benchmarks read larger ones


def answer_of(case: Case) -> dict[str, Any]:
    """One line: what was read, and what is answered."""
    name, row, _, kind, paths, facts = case
    line = {
        "set": name, "id": str(row["id"]), "kind": kind, "accept": row["accept"], "never": row.get("never", []),
    }  # fmt: skip
    began = time.process_time()
    try:
        evidence = gather(paths, workers=1, cache=False) if paths else Evidence()
        state(evidence, facts)
        items = sorted(told(evidence))
        events = Counter(e.kind for e in evidence.events)
        found = examine(evidence)
    except StallwiseError as error:
        return {**line, "state": "refused", "ranked": [], "items": [], "events": {}, "problem": error.problem[:200]}
    first = found.hypotheses[0] if found.hypotheses else None
    return {
        **line,
        "state": found.state.value,
        "ranked": list(found.ranked),
        "basis": str(found.findings[0].basis) if found.findings else "",
        "chance": round(first.probability, 3) if first else None,
        "events": dict(events),
        "items": items,
        "cpu_s": round(time.process_time() - began, 3),
    }


def without_truth() -> list[Case]:
    """Every file of the shared data that no case names: their facts and states may not change unseen."""
    root = recorded_cases.SHARED / "data"
    files = [p for p in sorted(root.rglob("*")) if p.is_file() and p.stat().st_size <= LARGEST_BYTES]
    return [("files", {"id": str(p.relative_to(root)), "accept": []}, "", "file", [str(p)], ()) for p in files]


def right(row: dict[str, Any]) -> bool:
    """As the score does it; a healthy run is right when it is not called sick."""
    if row["accept"] == ["none"]:
        return row["state"] != "sick"
    return is_right(row, (row["ranked"] or ["(unclear)"])[0], row["state"])


def compare(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> int:
    """Prints the differences; how many became healthy that were not."""
    before = {(r["set"], r["id"]): r for r in old}
    lost: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    cases_lost: Counter[str] = Counter()
    pairs = [(before[key], r) for r in new if (key := (r["set"], r["id"])) in before]
    judged = [(a, b) for a, b in pairs if a["accept"]]
    worse = [(a, b) for a, b in judged if right(a) and not right(b)]
    better = [(a, b) for a, b in judged if not right(a) and right(b)]
    cleared = [(a, b) for a, b in pairs if b["state"] == "healthy" and a["state"] != "healthy"]
    for title, found in (("worse", worse), ("better", better), ("became healthy", cleared)):
        for a, b in found:
            print(f"  {title:14s} {b['set']:15s} {b['id'][:70]!r:72} {said(a)} -> {said(b)} wanted {b['accept']}")
    for a, b in pairs:
        gone = {i.split(" = ")[0].split(" n=")[0].split(" rows")[0] for i in set(a["items"]) - set(b["items"])}
        lost.update(i.split()[1] for i in set(a["items"]) - set(b["items"]))
        gained.update(i.split()[1] for i in set(b["items"]) - set(a["items"]))
        cases_lost.update({i.split()[1] for i in gone})
    events = sum((Counter(a["events"]) - Counter(b["events"]) for a, b in pairs), Counter())
    more = sum((Counter(b["events"]) - Counter(a["events"]) for a, b in pairs), Counter())
    was, now = (sum(right(p[at]) for p in judged) for at in (0, 1))
    states = Counter(f"{a['state']}>{b['state']}" for a, b in pairs if a["state"] != b["state"])
    same = sum(a["ranked"][:1] != b["ranked"][:1] for a, b in pairs)
    cpu = [sum(p[at].get("cpu_s", 0) for p in pairs) for at in (0, 1)]
    print(f"cases {len(pairs)}, judged {len(judged)}: right {was} -> {now} ({len(worse)} worse, {len(better)} better)")
    print(f"first answers changed {same}; states {dict(states)}")
    print(f"facts lost {sum(lost.values())} in quantities {lost.most_common(SHOWN)}")
    print(f"facts gained {sum(gained.values())} in quantities {gained.most_common(SHOWN)}")
    print(f"events lost {events.most_common(SHOWN)}, gained {more.most_common(SHOWN)}")
    print(f"CPU {cpu[0]:.0f} -> {cpu[1]:.0f} s; became healthy {len(cleared)}")
    return len([1 for _, b in cleared if b["accept"] and "none" not in b["accept"]])


def said(row: dict[str, Any]) -> str:
    return f"{row['state']}:{(row['ranked'] or ['-'])[0]}"


def read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--every", type=int, default=1, help="one case of so many, the same ones each time")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sets", default="", help="by commas")
    parser.add_argument("--shared", type=Path, default=recorded_cases.SHARED)
    parser.add_argument("--against", default="")
    parser.add_argument("--compare-only", action="store_true")
    args = parser.parse_args()
    if not args.compare_only:
        recorded_cases.SHARED = args.shared
        wanted = set(filter(None, args.sets.split(",")))
        cases = [c for c in [*held(), *healthy(), *without_truth()] if not wanted or c[0] in wanted][:: args.every]
        with get_context("fork").Pool(args.workers) as pool, Path(args.out).open("w", encoding="utf-8") as out:
            for done, row in enumerate(pool.imap(answer_of, cases, chunksize=4), 1):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                if done % 100 == 0:
                    print(f"\r{done} of {len(cases)} cases", end="", file=sys.stderr)
        print(file=sys.stderr)
    new = read(args.out)
    if args.against:
        return int(compare(read(args.against), new) > 0)
    judged = [r for r in new if r["accept"]]
    print(
        f"cases {len(new)}, judged {len(judged)}, right {sum(map(right, judged))}, states {Counter(r['state'] for r in new)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
