"""Scores affirmed and denied texts of one topic: `python bench/first_sight_pairs.py FILE.jsonl [--cases]`.

Each line holds two texts: `affirmed_text` complains (right first answers: `accept_affirmed`), `denied_text` rules the same condition
out (`denied_slug` must not be said of it; `other_accept`: "none" where nothing else is wrong, else what else it complains of). Every
text is asked as a file and as typed words. Without `--cases` only totals are printed, so that a sealed half stays sealed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("STALLWISE_CACHE", "off")

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Diagnosis, State
from stallwise.doctor.stating import split_words

OFFERED = 0.3  # a cause at this probability is an offer that the reader takes for an answer


def asked(text: str, folder: Path) -> Iterator[tuple[str, Diagnosis]]:
    """The text as a file and as typed words."""
    path = folder / "text.txt"
    path.write_text(text, encoding="utf-8")
    yield "file", diagnose(str(path), cache=False, workers=1)
    places, words = split_words((text,), ())
    yield "typed", diagnose(*places, facts=words, cache=False, workers=1)


def marks_of(row: dict[str, object], affirmed: Diagnosis, denied: Diagnosis) -> Iterator[tuple[str, bool]]:
    """Each question that a pair answers, and whether the answer counts."""
    accept, other = _names(row["accept_affirmed"]), _names(row["other_accept"])
    first = next((c for c in affirmed.ranked if c not in ("none", SOMETHING_ELSE)), "")
    yield "affirmed: found first", first in accept
    yield "affirmed: said aloud and right", affirmed.state is State.SICK and first in accept
    yield "affirmed: called healthy", affirmed.state is State.HEALTHY
    said = denied.ranked[0] if denied.ranked else ""
    sick = denied.state is State.SICK
    yield "denied: answered with it", sick and said == row["denied_slug"]
    offered = {h.cause for h in denied.hypotheses if h.probability >= OFFERED}
    yield "denied: offered at 30%", row["denied_slug"] in offered
    if other == ["none"]:
        yield "nothing wrong: alarm", sick
        yield "nothing wrong: offered a cause at 30%", bool(offered - {"none", SOMETHING_ELSE})
    else:
        yield "other complaint: found first", said in other
        yield "other complaint: called healthy", denied.state is State.HEALTHY


def _names(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list) else []


def main() -> None:
    """Prints totals; with --cases every mark that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--cases", action="store_true")
    args = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    asked_of: Counter[tuple[str, str]] = Counter()
    with TemporaryDirectory() as folder:
        for row in map(json.loads, Path(args.file).read_text(encoding="utf-8").splitlines()):
            texts = (asked(row["affirmed_text"], Path(folder)), asked(row["denied_text"], Path(folder)))
            for (way, affirmed), (_, denied) in zip(*texts, strict=True):
                for mark, counted in marks_of(row, affirmed, denied):
                    asked_of[way, mark] += 1
                    counts[way, mark] += counted
                    good = mark.endswith(("first", "right"))
                    if args.cases and counted is not good:
                        of = affirmed if mark.startswith("affirmed") else denied
                        top = [(h.cause, round(h.probability, 2)) for h in of.hypotheses[:3]]
                        print(f"{way:6s}{row['id']} {mark}: {of.state.value} {top}")
    for way, mark in asked_of:
        print(f"{way:6s} {mark:42s} {counts[way, mark]:3d} of {asked_of[way, mark]}")


if __name__ == "__main__":
    main()
