"""Scores the eight scenarios in ten forms: the right cause first, and the numbers kept.

python tests/retold_scenarios/score.py [-v]
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
CLOSE = 0.02  # of a number that was written with two digits
SAME = {  # what readers may call the same thing while the two names still exist side by side
    "ttft": ("serve.ttft",), "qps": ("serve.offered_rate",), "tp": ("layout.tp", "serve.tp"),
    "accuracy": ("eval.accuracy",),
}  # fmt: skip


def books(folder: Path = HERE) -> list[tuple[str, dict[str, Any]]]:
    """Every scenario with its forms."""
    return [(p.stem, tomllib.loads(p.read_text(encoding="utf-8"))) for p in sorted(folder.glob("0*.toml"))]


def asked(name: str, text: str) -> tuple[str, str, Any]:
    """First cause, state and evidence of one form, written into a folder of its own."""
    from stallwise.doctor.examine import examine
    from stallwise.doctor.gather import gather
    from stallwise.errors import StallwiseError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text.lstrip("\n"), encoding="utf-8")
        try:
            diagnosis = examine(gather([str(path)], cache=False, workers=1))
        except StallwiseError:
            return "(refused)", "refused", None
    state = getattr(diagnosis, "state", "healthy" if diagnosis.healthy else "sick")
    return (diagnosis.ranked or ("(unclear)",))[0], str(getattr(state, "value", state)), diagnosis.evidence


def kept(evidence: Any, numbers: dict[str, Any]) -> float:
    """Share of the scenario's numbers that are in the evidence."""
    found = 0
    for key, wanted in numbers.items():
        name, _, run = key.partition("@")
        if not name:
            found += _curve(evidence, wanted)
            continue
        names = (name, *SAME.get(name, ()))
        facts = [f for n in names for f in evidence.facts.get(n, [])] if evidence else []
        values = [
            f.number
            for f in facts
            if (f.scope.run == "before") == (run == "before") or f.scope.run not in (None, "before")
        ]
        if evidence:
            values += [float(v) for s in evidence.all_series if s.quantity.name in names for v in s.values]
        found += any(abs(v - wanted) <= CLOSE * abs(wanted) for v in values)
    return found / len(numbers)


def _curve(evidence: Any, wanted: list[list[float]]) -> bool:
    if evidence is None:
        return False
    curves = [dict(zip(s.x, s.values, strict=True)) for s in evidence.all_series if s.over == "place"]
    curves += [
        dict(zip(t.columns["ranks"], t.columns["seconds"], strict=True)) for t in evidence.table("scaling.series")
    ]
    return any(all(abs(c.get(x, 0.0) - y) <= CLOSE * y for x, y in wanted) for c in curves)


def main() -> None:
    verbose = "-v" in sys.argv
    tally: Counter[str] = Counter()
    by_form: Counter[str] = Counter()
    for scenario, book in books(
        HERE / "test" if "--test" in sys.argv else HERE / "later" if "--later" in sys.argv else HERE
    ):
        for form, text in book["forms"].items():
            first, state, evidence = asked(form, text)
            right, share = first == book["cause"], kept(evidence, book["numbers"])
            result = (
                "right"
                if right and share == 1.0
                else "cause only"
                if right
                else "healthy"
                if first == "none"
                else state
            )
            tally[result] += 1
            by_form[form] += right and share == 1.0
            if verbose and result != "right":
                print(f"{scenario:22s} {form:14s} {result:10s} {first:28s} numbers {share:.0%}")
    print(dict(tally), dict(by_form))


if __name__ == "__main__":
    main()
