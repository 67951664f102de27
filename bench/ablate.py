"""What each part of the classifier is worth: parts switched off one at a time, every score out of fold by project.

    python bench/ablate.py FEATURES.jsonl [--only words,clues] [--markdown]

A part that changes fewer than two of 500 first answers and no log loss proves nothing and can go.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fit_recognise import fit, read, report, rows_of  # type: ignore[import-not-found]

Row = dict[str, Any]
KINDS = ("not:", "q:", "e:", "s:", "how:", "~")  # features that are no plain words


def without(*kinds: str) -> Callable[[Row], Row]:
    """Features of these kinds removed; "" stands for plain words and pairs."""

    def cut(row: Row) -> Row:
        return {**row, "words": [w for w in row["words"] if _kind(w) not in kinds]}

    return cut


def _kind(word: str) -> str:
    return next((kind for kind in KINDS if word.startswith(kind)), "")


def without_written(row: Row) -> Row:
    """Texts written for the fit teach nothing; of what is well nobody else writes, so those stay."""
    return {**row, "words": []} if row["kind"] == "written" and set(row["accept"]) - {"none"} else row


def as_it_is(row: Row) -> Row:
    """Everything on."""
    return row


# Part -> what is done to each row, and which of the fit's own parts are left out.
PARTS: dict[str, tuple[Callable[[Row], Row], tuple[str, ...]]] = {
    "words": (without(""), ()),
    "not: words": (without("not:"), ()),
    "trigrams": (without("~"), ()),
    "manner": (without("how:"), ()),
    "q: quantities": (without("q:"), ()),
    "events": (without("e:"), ()),
    "symptoms": (without("s:"), ()),
    "written texts": (without_written, ()),
    "clues": (as_it_is, ("clues",)),
    "provers' odds": (as_it_is, ("rule",)),
    "pages": (as_it_is, ("page",)),
    "family": (as_it_is, ("family",)),
}


def scored(rows: list[Row], change: Callable[[Row], Row], left_out: Sequence[str]) -> tuple[float, float, float]:
    """First answers, among three, log loss."""
    with redirect_stdout(io.StringIO()):  # the report is printed
        cases = read([change(row) for row in rows])
        found = report(cases, fit(cases, without=left_out))
    return found["all"]["first"], found["all"]["three"], found["log_loss"]


def main() -> None:
    """One line a part, the largest loss of first answers first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--only", default="", help="parts, by commas")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    rows = rows_of(args.features)
    whole = scored(rows, as_it_is, ())
    wanted = [p.strip() for p in args.only.split(",") if p.strip()] or list(PARTS)
    lost = {name: scored(rows, *PARTS[name]) for name in wanted}
    line = "| {:14s} | {:>8s} | {:>8s} | {:>8s} |" if args.markdown else "{:16s} {:>8s} {:>8s} {:>8s}"
    print(line.format("without", "first", "three", "log loss"))
    if args.markdown:
        print("|---|---:|---:|---:|")
    print(line.format("nothing", f"{whole[0]:.1%}", f"{whole[1]:.1%}", f"{whole[2]:.3f}"))
    for name, (first, three, loss) in sorted(lost.items(), key=lambda item: item[1][0]):
        moved = f"{(first - whole[0]) * 100:+.1f}", f"{(three - whole[1]) * 100:+.1f}", f"{loss - whole[2]:+.3f}"
        print(line.format(name, *moved))


if __name__ == "__main__":
    main()
