"""Counts how often each answer is given under each cause, for the choice of questions (doctor/ask/answers.json): `make questions`.

    python bench/fit_questions.py FEATURES.jsonl [--write]

A fixed choice is the answer of a recorded case that has one of its features. What is to be seen of a cause is the answer as often as
cases of a cause look like it to a classifier that saw nothing of their project. No text of a case is kept. The curve in the file
stays: bench/ask_masked.py shows whether it holds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from fit_recognise import (  # type: ignore[import-not-found]
    Cases,
    Floats,
    first_label,
    fit,
    read,
    rows_of,
)

from stallwise.causes import all_rules
from stallwise.doctor.ask.bank import encoded, fixed_questions, seen_choices
from stallwise.doctor.findings.symptom import Symptom
from stallwise.evidence.bag import DENIED, stems_of

FOLDER = Path(__file__).parents[1] / "src" / "stallwise" / "doctor" / "ask"
WHAT_IS_WRONG = next(f.text for f in fixed_questions() if f.complaint)
LEAN = 4.0  # cases of all causes together that every cause borrows
OFTEN = {
    "mostly": 6.0,
    "often": 3.0,
    "at times": 1.0,
    "seldom": 0.3,
}  # cases that the word of a rule's author counts for
UNHEARD = 0.02  # of a case, where no rule connects the two
NAMED = 0.9  # of the cases: somebody knows what is wrong, if not why


def features_of(words: list[str]) -> set[str]:
    """As the classifier names them: `q:` and `s:` as they stand, of words the longest stem or pair."""
    found = set()
    for word in words:
        if word.startswith(("q:", "s:")):
            found.add(word)
        else:
            plain = word.removeprefix(DENIED)
            longest = max(stems_of(plain), key=lambda s: (s.count(" "), len(s)))
            if " " in plain and " " not in longest:
                raise SystemExit(f"asked.toml: '{plain}' is one word to the classifier; choose another")
            found.add(f"{DENIED}{longest}" if word.startswith(DENIED) else longest)
    return found


def choice_features() -> dict[str, set[str]]:
    """Key of a choice -> features of which one is enough."""
    rows: list[dict[str, Any]] = tomllib.loads((FOLDER / "asked.toml").read_text(encoding="utf-8"))["question"]
    return {f"{row['text']} {c['text']}": features_of(c["counts"]) for row in rows for c in row["choices"]}


def shares(cases: Cases, chances: Floats, chosen: NDArray[np.bool_]) -> dict[str, Floats]:
    """Key of a choice -> how often it is the answer, by cause."""
    weight = first_label(cases) * (cases.weight * chosen)[:, None]
    count = weight.sum(axis=0)
    found, symptoms = {}, _symptoms(cases, weight)
    for key, features in choice_features().items():
        if all(f.startswith("s:") for f in features) and key.startswith(WHAT_IS_WRONG):
            found[key] = np.sum([symptoms[f] for f in features], axis=0)
        else:
            held = np.array([not features.isdisjoint(row["words"]) for row in cases.rows], dtype=float)
            found[key] = _smoothed(held @ weight, count)
    alike = chances.T @ weight  # seen cause x cause of the case
    for cause, choice in seen_choices().items():
        if cause in cases.causes:
            found[choice.key] = _smoothed(alike[cases.causes.index(cause)], count)
    return found


def _symptoms(cases: Cases, weight: Floats) -> dict[str, Floats]:
    """Which complaint a cause shows as: counted, and as its rule explains."""
    explains = {r.cause: r.explains for r in all_rules()}
    found = {}
    for symptom in Symptom:
        key = f"s:{symptom.name}"
        held = np.array([key in row["words"] for row in cases.rows], dtype=float) @ weight
        found[key] = held + [OFTEN.get(explains[c].get(symptom, ""), UNHEARD) for c in cases.causes]
    total = np.sum(list(found.values()), axis=0)
    return {key: NAMED * row / total for key, row in found.items()}


def _smoothed(held: Floats, count: Floats) -> Floats:
    usual = held.sum() / max(count.sum(), 1.0)
    return np.asarray((held + LEAN * usual) / (count + LEAN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    cases = read(rows_of(args.features))
    table = shares(cases, fit(cases).chances, np.ones(len(cases.rows), dtype=bool))
    for key in sorted(table):
        top = np.argsort(-table[key])[:3]
        print(
            f"{key[:70]:70s} {table[key].mean():.2f}  "
            + " ".join(f"{cases.causes[i]} {table[key][i]:.2f}" for i in top)
        )
    if args.write:
        curve = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))["curve"]
        meta = {
            "causes": cases.causes,
            "curve": curve,
            "shares": {key: encoded(row) for key, row in sorted(table.items())},
        }
        (FOLDER / "answers.json").write_text(json.dumps(meta, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
