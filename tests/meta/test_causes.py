"""A cause has two files, and nothing about it stands elsewhere: both are there, complete, and speak of things that exist."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

import stallwise.causes
from stallwise.causes import all_rules
from stallwise.doctor.findings.symptom import Often, Symptom
from stallwise.evidence.catalog import quantities
from stallwise.evidence.ledger import Category

FOLDER = Path(stallwise.causes.__file__).parent
PAIRS = sorted(p for p in FOLDER.glob("*/[a-z]*.py") if p.parent.name != "health")
NONE = "none"  # healthy by name: no owner, nothing to see, no phrases
OWNERS = {"your code", "framework", "node", "network", "storage", "serving settings"}
KEYS = {"title", "owner", "seen", "phrases", "explains", "owns", "threshold", "rival", "drill", "preview"}
DRILL = {"words", "fix", "refuted", "trap", "near"}
OWNS = {"account", "parts", "shares", "bursts", "right", "of", "whole_account"}
THRESHOLDS = {
    "part": {"of", "above"},
    "spread": {"of", "above"},
    "value": {"of", "above"},
    "over": {"of", "against", "above", "only", "at_most", "floor", "whole"},
    "odd": {"of", "multiple"},
}
CAUSES = {p.stem.replace("_", "-") for p in PAIRS}


def table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))


def test_every_cause_is_a_rule_and_has_two_files() -> None:
    assert {r.cause for r in all_rules()} == CAUSES
    tables = {p.with_suffix("") for p in FOLDER.glob("*/*.toml")}
    assert tables == {p.with_suffix("") for p in PAIRS}
    beside = [p for p in FOLDER.glob("*/_*.py") if p.name != "__init__.py" and p.with_name(p.name[1:]).exists()]
    assert not beside, "what is known of a cause stands in its own file"


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.stem)
def test_nothing_is_left_to_fill_in(path: Path) -> None:
    for file in (path, path.with_suffix(".toml")):
        assert "TODO" not in file.read_text(encoding="utf-8"), f"{file.name} is not finished"


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.stem)
def test_its_table_is_complete_and_has_no_unknown_key(path: Path) -> None:
    row = table(path)
    assert set(row) <= KEYS, set(row) - KEYS
    assert set(row["drill"]) == DRILL
    assert row["title"] and all(row["drill"][key] for key in ("words", "fix", "refuted", "trap"))
    if path.stem != NONE:
        assert row["owner"] in OWNERS and row["seen"]
        assert "phrases" in row or path.stem == "job_failed"  # that a job failed is said in the words of what failed
        assert row["seen"].count(";") + row["seen"].count(".") < len(row["seen"]) / 4, "one line that a person says"


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.stem)
def test_its_table_speaks_of_things_that_exist(path: Path) -> None:
    row, known = table(path), quantities()
    for rival in row.get("rival", ()):
        assert rival["cause"] in {r.cause for r in all_rules()} and rival.get("ruled_out", "gpus") in known
    assert set(row["drill"]["near"]) <= CAUSES - {path.stem.replace("_", "-")}
    for symptom, often in row.get("explains", {}).items():
        assert symptom.upper() in Symptom.__members__ and often in get_args(Often)
    if owns := row.get("owns"):
        assert set(owns) <= OWNS and Category(owns["account"])
        assert {q for key in ("parts", "shares", "bursts") for q in owns.get(key, ())} <= set(known)
        assert 0 <= owns["right"] <= owns["of"]
    for limit in row.get("threshold", ()):
        assert set(limit) - {"kind"} <= THRESHOLDS[limit["kind"]]
        named = limit["of"] if isinstance(limit["of"], list) else [limit["of"]]
        named += [limit[key] for key in ("against", "only", "floor") if key in limit]
        assert set(named) <= set(known), "a quantity of no catalogue"
