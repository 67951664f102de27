"""Dumps every fact, series and table of many cases, and their first answers, so that two states of the code can be compared.

    python bench/facts_of_cases.py dump EXPECT.jsonl DATA_ROOT OUT.json [--tell NAME]   one process, no cache
    python bench/facts_of_cases.py diff OLD.json NEW.json                               what came, went or changed
    python bench/facts_of_cases.py retell EXPECT.jsonl DATA_ROOT RETELL.py [--only a,b] kept shares, in this process

`dump` also prints the score: first answers in `accept`, and false all-clears.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")

import numpy as np

from stallwise.doctor.examine import examine
from stallwise.doctor.gather import gather
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Evidence

SHOWN = 12  # cases named in a line


def read_cases(path: str) -> list[dict[str, Any]]:
    """The lines of an expectation file."""
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line.strip()]


def answer(paths: list[str]) -> tuple[Evidence | None, dict[str, int], str, str]:
    """Evidence after the examination, facts as read (before measures), the first cause and the state."""
    try:
        evidence = gather(paths, cache=False, workers=1)
        read = told(evidence)
        diagnosis = examine(evidence)
    except StallwiseError as error:
        return None, {}, f"({error.problem[:80]})", "refused"
    state = getattr(diagnosis, "state", "healthy" if diagnosis.healthy else "sick")
    return evidence, read, (diagnosis.ranked or ("(unclear)",))[0], str(getattr(state, "value", state))


def told(evidence: Evidence) -> dict[str, int]:
    """Every item as one line of text with its count."""
    found: Counter[str] = Counter()
    for name, facts in evidence.facts.items():
        for fact in facts:
            value = f"{fact.value:.6g}" if isinstance(fact.value, float) else str(fact.value)[:80]
            found[f"fact {name} [{_scope(fact.scope)}] = {value}"] += 1
    for series in evidence.all_series:
        body = hashlib.md5(np.round(series.values.astype(float), 9).tobytes()).hexdigest()[:6]
        found[f"series {series.quantity.name} [{_scope(series.scope)}] n={len(series.x)} {body}"] += 1
    for table in evidence.tables:
        found[f"table {table.kind} rows={len(table)} columns={','.join(sorted(table.columns))}"] += 1
    return dict(found)


def _scope(scope: Any) -> str:
    return " ".join(f"{k}={Path(str(v)).name}" for k, v in scope.to_dict().items())


def dump(expect: str, root: str, out: str) -> None:
    """Writes all items and answers; prints the score."""
    cases, result, began = read_cases(expect), {}, time.monotonic()
    right = clear = 0
    for case in cases:
        _, read, first, state = answer([str(Path(root) / p) for p in case["paths"]])
        ok = is_right(case, first, state)
        right += ok
        clear += first == "none" and "none" not in case["accept"]
        result[case["id"]] = {"first": first, "state": state, "right": ok, "items": read}
        if not ok:
            print(f"  {case['id']:34s} said {first[:60]:40s} wanted {'|'.join(case['accept'])}")
    Path(out).write_text(json.dumps(result, indent=0, sort_keys=True))
    print(f"right {right} of {len(cases)}, false all-clear {clear}, {time.monotonic() - began:.1f} s")


def is_right(case: dict[str, Any], first: str, state: str) -> bool:
    """As the score does it."""
    named = first in case["accept"] and first not in case.get("never", [])
    return named or (state == "unclear" and "unclear" in case["accept"])


def diff(old: str, new: str) -> None:
    """Answers that changed, then items by quantity, then every line."""
    a, b = json.loads(Path(old).read_text()), json.loads(Path(new).read_text())
    lost: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    lines: list[str] = []
    for case in a:
        x, y = a[case], b.get(case, {"items": {}, "first": "absent", "right": False})
        if x["right"] != y["right"]:
            lines.append(f"!! {case}: {x['first']} -> {y['first']}")
        for item in x["items"].keys() - y["items"].keys():
            lost[" ".join(item.split()[:2])] += 1
            lines.append(f"{case}: - {item}")
        for item in y["items"].keys() - x["items"].keys():
            gained[" ".join(item.split()[:2])] += 1
            lines.append(f"{case}: + {item}")
    print("\n".join(lines))
    print("lost", sum(lost.values()), lost.most_common(SHOWN))
    print("gained", sum(gained.values()), gained.most_common(SHOWN))


def retell(expect: str, root: str, script: str, only: str) -> None:
    """The shares that the re-telling check prints, without a process per case."""
    spec = importlib.util.spec_from_file_location("retell", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases = read_cases(expect)
    good = []
    for case in cases:
        _, _, first, state = answer([str(Path(root) / p) for p in case["paths"]])
        if is_right(case, first, state):
            good.append(case)
    print(f"as it is     right {len(good)} of {len(cases)}", flush=True)
    for name in [x for x in only.split(",") if x] or list(module.TELLINGS):
        touched, lost, clear = 0, [], 0
        for case in good:
            folder, changed = module.told(case, root, module.TELLINGS[name])
            try:
                if not changed:
                    continue
                _, _, first, state = answer([folder])
            finally:
                shutil.rmtree(folder)
            touched += 1
            if not is_right(case, first, state):
                lost.append((case["id"], first))
                clear += first == "none"
        share = 1 - len(lost) / touched if touched else 1.0
        print(
            f"{name:12s} touched {touched:3d}  kept {share:6.1%}  false all-clear {clear:2d}  lost {lost[:SHOWN]}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("dump", "diff", "retell"))
    parser.add_argument("given", nargs="+")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if args.what == "dump":
        dump(*args.given)
    elif args.what == "diff":
        diff(*args.given)
    else:
        retell(*args.given, args.only)


if __name__ == "__main__":
    sys.exit(main())
