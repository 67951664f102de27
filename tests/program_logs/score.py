"""Scores logs and tables as forty programs print them: the right cause first, and the numbers kept.

python -m tests.program_logs.score [-v]

Each file holds what a run of that program would have printed, composed in the program's own format, with the cause and the
numbers that a person reads off it. `dev` was looked at while the reading layer was built, `test` is only scored. `external` are
formats and words that nobody had shown (other engines' pages, YAML reports, drawn boxes, chats, exports of dashboards), in two
halves of the same kind; at first sight 9 of 20 were right and 9 of 24 numbers were kept.
"""

from __future__ import annotations

import os
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")
HERE = Path(__file__).parent
CLOSE = 0.06  # medians of a few dozen noisy steps


def books(half: str) -> list[tuple[str, dict[str, Any]]]:
    """Every log of one half."""
    return [(p.stem, tomllib.loads(p.read_text(encoding="utf-8"))) for p in sorted((HERE / half).glob("*.toml"))]


def asked(book: dict[str, Any]) -> tuple[str, str, list[str]]:
    """First cause, state, and the numbers that are missing from the evidence."""
    from stallwise.doctor.examine import examine
    from stallwise.doctor.gather import gather

    with tempfile.TemporaryDirectory() as folder:
        for file in book["file"]:
            (Path(folder) / file["name"]).write_text(file["text"], encoding="utf-8", newline="")
        diagnosis = examine(gather([folder], cache=False, workers=1))
    facts = diagnosis.evidence.facts
    lost = [name for name, wanted in book["numbers"].items() if not any(_close(f.value, wanted) for f in facts[name])]
    return (diagnosis.ranked or ("(unclear)",))[0], str(diagnosis.state.value), lost


def _close(value: float | str, wanted: float | str) -> bool:
    if isinstance(value, str) or isinstance(wanted, str):
        return str(value).lower() == str(wanted).lower()
    return abs(value - wanted) <= CLOSE * abs(wanted)


def score(half: str, verbose: bool = False) -> Counter[str]:
    """How many are right, how many numbers are kept, and how many are called healthy."""
    found: Counter[str] = Counter()
    for name, book in books(half):
        cause, state, lost = asked(book)
        well = state == "healthy" and "none" in book["accept"]
        right = (
            well or (cause in book["accept"] and state == "sick") or (state == "unclear" and state in book["accept"])
        )
        found.update(
            cases=1, right=right, numbers=len(book["numbers"]), lost=len(lost), healthy=state == "healthy" and not well,
            wrong=state == "sick" and not right,
        )  # fmt: skip
        if verbose:
            print("right" if right else "MISS ", name, cause, state, book["accept"], lost)
    return found


if __name__ == "__main__":
    for one in ("dev", "test"):
        print(one, dict(score(one, "-v" in sys.argv and one == "dev")))
