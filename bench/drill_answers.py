"""How well free-text accounts of the classic incidents are graded: totals by kind, and the misses of a file that may be looked at.

    python bench/drill_answers.py answers.jsonl [--show]

A line has `scenario` (1 to 8), `kind`, `text` and `expect` (pass, partial, fail). A text passes when the claims read from it pass both
the cause and the remedies; it is strong when both are strong.
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
    show = "--show" in sys.argv
    total: Counter[tuple[str, str]] = Counter()
    for row in rows:
        done = weigh(row["text"], account(incident(row["scenario"])))
        passed = min(done.cause.level, done.fixes.level) >= PASS
        strong = min(done.cause.level, done.fixes.level) >= STRONG
        trap = row["kind"] == "seed_trap" and done.fixes.level >= PASS
        for name, met in (("n", True), ("pass", passed), ("strong", strong), ("trap passes", trap)):
            total[row["kind"], name] += met
        wanted = {"pass": True, "fail": False}.get(row["expect"])
        missed = (wanted is not None and passed != wanted) or (row["kind"] == "seed_target" and not strong) or trap
        if show and missed:
            understood = "; ".join(done.understood)
            print(f"{row['id']} S{row['scenario']} {row['kind']}: {done.cause} {done.fixes}")
            print(f"   {understood}\n   {row['text']}")
    for kind in sorted({k for k, _ in total}):
        print(f"{kind:22} n {total[kind, 'n']:3}  pass {total[kind, 'pass']:3}  strong {total[kind, 'strong']:3}")
    print(f"traps that pass the remedies: {sum(n for (_, name), n in total.items() if name == 'trap passes')}")


if __name__ == "__main__":
    main()
