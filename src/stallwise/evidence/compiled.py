"""An index that is compiled from the source of a package (`make index`) and read at every start instead of that source.

It names every file that it was compiled from with size and checksum. Where one was edited, added or removed since, the index is built
anew in memory: the answer is right at once and only the start is slow, until `make index` is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

ROOT = Path(__file__).parents[1]
NAME = "index.json"
SUFFIXES = (".py", ".toml")
Rows = dict[str, Any]
Build = Callable[[], tuple[Rows, Iterable[Path]]]  # rows, and files outside the folder that they were made from


def load(folder: Path, build: Build) -> Rows:
    """The rows of a package's index: as compiled where that is fresh, else built now."""
    try:
        index = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError):
        index = None
    if index is not None and is_fresh(folder, index):
        rows: Rows = index["rows"]
        return rows
    return build()[0]


def write(folder: Path, build: Build) -> None:
    """Compiles the index of a package."""
    rows, others = build()
    files = sorted({*_sources(folder), *(_name(path) for path in others)})
    index = {"of": {name: _sum((ROOT / name).read_bytes()) for name in files}, "rows": rows}
    (folder / NAME).write_text(_one_line_a_row(index), encoding="utf-8")


def is_fresh(folder: Path, index: Rows, *, every: bool = False) -> bool:
    """Whether it was compiled from the files that are there; `every`: look into all, not only into those written after it."""
    known: dict[str, list[int]] = index["of"]
    try:
        compiled = (folder / NAME).stat().st_mtime_ns
        if {n for n in known if n.startswith(f"{_name(folder)}/")} != set(_sources(folder)):
            return False
        for name, (size, checksum) in known.items():
            path = ROOT / name
            found = path.stat()
            if found.st_size != size:
                return False
            if (every or found.st_mtime_ns > compiled) and crc32(path.read_bytes()) != checksum:
                return False
    except OSError:
        return False
    return True


def _one_line_a_row(rows: Rows, depth: int = 2) -> str:
    """Two branches that change two rows merge."""
    if not depth:
        return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    inside = ",\n".join(f"{json.dumps(key)}:{_one_line_a_row(row, depth - 1)}" for key, row in rows.items())
    return f"{{\n{inside}\n}}" + ("\n" if depth == 2 else "")


def _sources(folder: Path) -> list[str]:
    """Files of the package, below it too."""
    found: list[str] = []
    left = [str(folder)]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIXES):
                    found.append(entry.path[len(str(ROOT)) + 1 :])
                elif entry.is_dir() and not entry.name.startswith("__"):
                    left.append(entry.path)
    return [name.replace(os.sep, "/") for name in found]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _sum(data: bytes) -> list[int]:
    return [len(data), crc32(data)]
