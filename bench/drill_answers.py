"""How well free-text accounts of the classic incidents are graded: totals by kind, and the misses of a file that may be looked at.

    python bench/drill_answers.py answers.jsonl [--show]

A line has `scenario` (1 to 8), `kind`, `text`, and what a person says of it: `cause_right`, `first_fix_right`, `number_right`
(null: says none) and `trap_as_fix`. A text passes when its claims pass both the cause and the remedies, and is strong when both are.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from stallwise.drill.claims.generic import account
from stallwise.drill.claims.weigh import PASS, STRONG, weigh
from stallwise.drill.generate import incident


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if line.strip()]
    total: Counter[tuple[str, str]] = Counter()
    for row in rows:
        done = weigh(row["text"], account(incident(row["scenario"])))
        marks = {"cause_right": done.cause, "first_fix_right": done.fixes, "number_right": done.numbers}
        passed = min(done.cause.level, done.fixes.level) >= PASS
        strong = min(done.cause.level, done.fixes.level) >= STRONG
        trap = row["trap_as_fix"] and done.fixes.level >= PASS
        wrong = [name for name, mark in marks.items() if row[name] is not None and (mark.level >= PASS) != row[name]]
        counted = {"n": True, "pass": passed, "strong": strong, "trap passes": trap}
        counted |= {f"{'missed' if row[name] else 'invented'} {name}": True for name in wrong}
        for name, met in counted.items():
            total[row["kind"], name] += met
        if "--show" in sys.argv and (wrong or trap):
            print(f"{row['id']} S{row['scenario']} {row['kind']}: {wrong} {'trap passes' * trap}")
            print("   ", "; ".join(f"{name} {mark.level} {mark.why}" for name, mark in marks.items()))
            print("   ", "; ".join(done.understood), "\n   ", row["text"], "\n")
    for kind in sorted({k for k, _ in total}):
        print(f"{kind:10}", "  ".join(f"{name} {n}" for (k, name), n in total.items() if k == kind))


if __name__ == "__main__":
    main()
