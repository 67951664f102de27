"""What the readers and provers make of every case on record, one JSON line each: the input of the classifier's fit.

python bench/case_features.py OUT.jsonl [--workers N] [--sets public_dev]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import recorded_cases  # type: ignore[import-not-found]

from stallwise.causes import all_rules
from stallwise.doctor.answer import in_numbers
from stallwise.doctor.gather import gather
from stallwise.doctor.measures import measure_evidence
from stallwise.doctor.prove import ANSWERS, prove
from stallwise.doctor.recognise.features import clue_outcomes, parts_of, words_of
from stallwise.doctor.recognise.ranking import clue_key, rule_odds
from stallwise.doctor.stating import state
from stallwise.doctor.symptoms import complaints
from stallwise.doctor.words import bag_of
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Evidence

Case = tuple[str, dict[str, Any], str, str, list[str], tuple[str, ...]]


def features_of(case: Case) -> dict[str, Any]:
    """One line: labels, words, clue outcomes, what rules saw."""
    name, row, project, kind, paths, facts = case
    line = {
        "set": name, "id": str(row["id"]), "project": project.lower(), "kind": kind, "accept": row["accept"],
        "never": row.get("never", []),
    }  # fmt: skip
    try:
        evidence = gather(paths, workers=1, cache=False) if paths else Evidence()
        state(evidence, facts)
        if not evidence.stems:  # what the last fit took for another trade's text teaches the next one
            evidence.add([bag_of(enumerate(p.splitlines(), 1), "typed") for p in paths if not os.path.exists(p)])  # noqa: PTH110
        measure_evidence(evidence)
        rules = all_rules()
        proved = prove(evidence, rules, [v for rule in rules for v in rule.verdicts(evidence)])
    except StallwiseError as error:
        return {**line, "refused": error.problem[:200]}
    stated = complaints(evidence)
    # Not of one kernel among several, for no truth says which is meant.
    single = [r for r in rules if len(parts_of(r, evidence)) <= 1]
    return {
        **line,
        "words": sorted(words_of(evidence, [c.symptom for c in stated])),
        "in_numbers": in_numbers(evidence, stated),
        "clues": [
            [r.cause, clue_key(r.cause, c.says), held, c.rules_out(held)]
            for r in single
            for c, held, _ in clue_outcomes(r, evidence)
        ],
        "rules": rule_odds(proved.findings),
        "measured": proved.measured,
        "compared": [f.cause for f in proved.findings if f.compared and f.confidence >= ANSWERS and not f.optional],
        "found": [f.cause for f in proved.findings if f.confidence >= ANSWERS and not f.optional],
    }


def healthy() -> list[Case]:
    """Runs and services that are well: no cause is right there."""
    from tests.healthy_controls.logs import healthy_logs, healthy_of_rules

    folder = Path(mkdtemp(prefix="stallwise_healthy_"))
    found: list[Case] = []
    for name, texts in {**healthy_logs(), **healthy_of_rules()}.items():
        place = folder / name.replace("/", "_").replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (place / file).write_text(text, encoding="utf-8")
        found.append(("healthy", {"id": name, "accept": ["none"]}, f"healthy:{name}", "composed", [str(place)], ()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sets", default="")
    args = parser.parse_args()
    wanted = set(filter(None, args.sets.split(",")))
    cases = [c for c in [*held(), *healthy()] if not wanted or c[0] in wanted]
    with get_context("fork").Pool(args.workers) as pool, Path(args.out).open("w", encoding="utf-8") as out:
        for done, row in enumerate(pool.imap(features_of, cases, chunksize=8), 1):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            if done % 100 == 0:
                print(f"\r{done} of {len(cases)} cases", end="", file=sys.stderr)
    print(file=sys.stderr)


def held() -> list[Case]:
    """All cases; a text that is only lent by the listing is given as stated words."""
    found = []
    own = (recorded_cases.ROOT, recorded_cases.SHARED, recorded_cases.unpacked())
    for name, row, project, kind, paths, facts in recorded_cases.listed():
        lent = [p for p in paths if os.path.exists(p) and not any(Path(p).is_relative_to(folder) for folder in own)]  # noqa: PTH110 - typed texts are too long for a path
        texts = [Path(p).read_text(encoding="utf-8") for p in lent if Path(p).suffix == ".txt"]
        found.append(
            (name, row, project, kind, [p for p in paths if p not in lent], (*facts, *(f"symptom={t}" for t in texts)))
        )
    return found


if __name__ == "__main__":
    main()
