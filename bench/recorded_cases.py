"""Every case on record that has a truth: tests/incidents, the questions' wordings, and the shared cases where that folder is.

A path that is no file is a text as somebody types it.
"""

from __future__ import annotations

import json
import lzma
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.incidents.archive import unpacked  # noqa: E402

INCIDENTS = ROOT / "tests" / "incidents"
QUESTIONS = ROOT / "tests" / "questions"
SHARED = ROOT.parent / "shared"
KNOWN = (("cases", "expect_cases", "composed"), ("real", "expect_real", "capture"), ("h200", "expect", "capture"))
COMPOSED = (
    "public_dev", "public_test", "external_dev", "external_test",
    "wave5", "wave5_test", "pairs", "pairs_test", "controls", "controls_test"
)  # fmt: skip
COMPLAINTS = ("complaints", "complaints_test")
NOT_A_CAUSE = ("none", "unclear")


def listed() -> Iterator[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]:
    """Every case on record: set, row, project, kind, paths, facts."""
    for half in COMPOSED:
        for row in _rows(INCIDENTS / half / "index.jsonl"):
            kind = "lines" if str(row["basis"]).startswith("real lines") else "composed"
            yield half, row, str(row["project"]), kind, [str(unpacked() / half / str(row["id"]))], ()
    for row in _rows(INCIDENTS / "wordings.jsonl"):
        words = {**row, "id": str(row["text"])}
        yield "wordings", words, "/".join(str(row["url"]).split("/")[3:5]), "wording", [str(row["text"])], ()
    for file in sorted((QUESTIONS / "forums").glob("*dev.toml")):
        for row in _tables(file, "wording"):
            words = {"id": row["words"], "accept": row["causes"]}
            project = str(row["seen"]).partition("#")[0]
            yield "forums", words, project, "wording", [row["words"]], ()
    for name in COMPLAINTS:
        for row in _rows(INCIDENTS / f"{name}.jsonl"):
            *_, owner, repo, _, number = str(row["url"]).split("/")
            words = {**row, "id": f"{owner}/{repo}#{number}"}
            yield name, words, f"{owner}/{repo}", "wording", [str(row["text"])], ()
    written = lzma.decompress((INCIDENTS / "written.jsonl.xz").read_bytes()).decode("utf-8")
    for place, line in enumerate(written.splitlines()):
        row = json.loads(line)
        cause = row["also"] or ("none" if row["kind"] == "fine" else row["cause"])
        words = {"id": f"{row['cause']} {row['kind']} {place}", "accept": [cause]}
        yield "written", words, f"written:{row['cause']} {row['kind']}", "written", [row["text"]], ()
    yield from _asked()
    if not SHARED.is_dir():
        return
    owners = {}
    for row in _rows(SHARED / "data" / "cases" / "public_cases.jsonl"):
        source = row["source"]
        assert isinstance(source, dict)
        owners[row["id"]] = str(source.get("repo") or source.get("url") or row["id"])
    for name, file, kind in KNOWN:
        for row in _rows(SHARED / "checks" / f"{file}.jsonl"):
            paths = row["paths"]
            assert isinstance(paths, list)
            project = owners.get(row["id"], f"{name}:{row['id']}")
            yield name, row, project, kind, [str(SHARED / "data" / p) for p in paths], ()


def _asked() -> Iterator[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]:
    """The questions of the matrix that complain of a run and have an answer, in every wording; each is a project of its own."""
    for row in (row for file in sorted(QUESTIONS.glob("*.toml")) for row in _tables(file, "question")):
        if row.get("by") == "explain" or "causes" not in row:
            continue
        with TemporaryDirectory() as folder:
            paths = [str(ROOT / name) for name in row.get("files", ())]
            for place, text in enumerate([row["text"]] if "text" in row else row.get("texts", ())):
                path = Path(folder) / f"{place}.txt"
                path.write_text(text, encoding="utf-8")
                paths.append(str(path))
            for place, words in enumerate(row["wordings"], 1):
                case = {"id": f"{row['id']} {place}", "accept": row["causes"]}
                facts = (*row.get("facts", ()), f"symptom={words}")
                yield "questions", case, f"question:{row['id']}", "question", paths, facts


def _tables(path: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))[name]
    return found


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
