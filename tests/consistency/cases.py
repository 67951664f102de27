"""Every bundled case, and every shared one where that folder is: a name and the paths that a person would give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.shared_data import REPO, SHARED

SETS = ("expect", "expect_cases", "expect_real")
MOST_BYTES = 6_000_000  # of a packed trace: larger ones repeat what these show, and take minutes


@dataclass(frozen=True)
class Case:
    """What one question gives."""

    name: str
    paths: tuple[str, ...]


def bundled() -> Iterator[Case]:
    """Captured runs, the trace of the demo, and the scenarios in numbers."""
    for expect in sorted((REPO / "tests" / "cases").rglob("expect.toml")):
        paths = tuple(str(p) for p in sorted(expect.parent.iterdir()) if p.suffix != ".toml")
        if paths:
            yield Case(f"cases/{expect.parent.name}", paths)
    for folder in sorted((REPO / "examples" / "traces").iterdir()):
        yield Case(f"traces/{folder.name}", (str(folder),))
    for numbers in sorted((REPO / "examples" / "scenarios").rglob("*.toml")):
        yield Case(f"{numbers.parent.name}/{numbers.stem}", (str(numbers),))


def shared() -> Iterator[Case]:
    """All that the scores ask, each program and each public trace; nothing where the folder is not."""
    data = SHARED / "data"
    for name in SETS:
        table = SHARED / "checks" / f"{name}.jsonl"
        for row in map(json.loads, table.read_text(encoding="utf-8").splitlines() if table.exists() else ()):
            yield Case(f"{name}/{row['id']}", tuple(str(data / path) for path in row["paths"]))
    for folder in sorted((data / "h200" / "programs").glob("*/")):
        yield Case(f"programs/{folder.name}", (str(folder),))
        if (folder / "bundle").is_dir():
            yield Case(f"programs/{folder.name}/bundle", (str(folder / "bundle"),))
    yield from (Case(f"more/{p.parent.name}", (str(p.parent),)) for p in sorted(data.glob("h200/more/*/trace.json.gz")))
    for trace in (*sorted(data.glob("traces/**/*.json.gz")), *sorted(data.glob("straggler/*.json.gz"))):
        if trace.stat().st_size < MOST_BYTES:
            yield Case(f"traces/{trace.relative_to(data)}", (str(trace),))
