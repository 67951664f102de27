"""Writes the table of famous recipes into docs/planner.md: the publisher's layout predicted, and our first choice.

    python bench/famous_recipes.py

Rows are `bench/famous_recipes.csv`, facts with their source; every publisher is predicted by constants that never saw it.
"""

from __future__ import annotations

import csv
from pathlib import Path

from stallwise.planner.measured import measured_step_s
from stallwise.planner.predict import asked
from stallwise.planner.runs import run_of
from stallwise.planner.search import Candidate, search
from stallwise.planner.validation import kind_named

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "planner.md"
START, END = "<!-- famous recipes -->", "<!-- end of famous recipes -->"
GIB = 2.0**30
NEAR_GIB = 2.0  # a first choice this close to the card is said to be
HEAD = [
    "| recipe | published layout | predicted / published s | 90% interval | first choice | its time | its memory |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def line(row: dict[str, str]) -> tuple[str, bool]:
    """One row of the table, and whether the published step lies in its interval."""
    (scored,) = kind_named("training").validate([row], 0)
    run, settings = asked(run_of(row))
    measured = measured_step_s(row, run)
    assert scored.predicted and scored.low and scored.high and measured
    inside = scored.low <= measured <= scored.high
    first = search(run.model, run.cluster, run.workload, settings.recipes[settings.likeliest], keep=1).best[0]
    interval = f"{scored.low:.3g} to {scored.high:.3g}" + ("" if inside else ", **outside**")
    cells = (
        row["title"], run.layout.label, f"{scored.predicted:.3g} / {measured:.3g} ({scored.predicted / measured - 1:+.0%})",
        interval, first.layout.label, f"{first.seconds:.3g} s", _memory(first, run.cluster.gpu.memory_bytes),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |", inside


def _memory(first: Candidate, card: float) -> str:
    near = "; within 2 GiB of the card" if card - first.memory_bytes < NEAR_GIB * GIB else ""
    return f"{first.memory_bytes / GIB:.0f} of {card / GIB:.0f} GiB: {first.fit}{near}"


def main() -> None:
    rows = list(csv.DictReader((HERE / "famous_recipes.csv").read_text(encoding="utf-8").splitlines()))
    found = [line(row) for row in rows]
    inside = sum(held for _, held in found)
    text = "\n".join([*HEAD, *(text for text, _ in found), "", f"{inside} of {len(found)} inside their interval."])
    page = PAGE.read_text(encoding="utf-8")
    before, after = page[: page.index(START) + len(START)], page[page.index(END) :]
    PAGE.write_text(f"{before}\n{text}\n{after}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
