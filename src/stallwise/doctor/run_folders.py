"""Which runs a folder holds, or that it is one run itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stallwise.doctor.engine_local import LocalEngine
from stallwise.doctor.find import find
from stallwise.doctor.reading import IN_WORDS, MESSAGES, Reading, ReadingPlan
from stallwise.errors import BadRequest

BUNDLE = "bundle.json"  # as the recorder calls it: the folder around it is one run
NAMED = 3  # kinds of files named in a message


def runs_of(paths: Sequence[str]) -> list[str]:
    """The runs that paths name: each is one, but a single folder holds one run an entry, in the order people count."""
    if len(paths) != 1:
        return list(paths)
    folder = Path(paths[0])
    if not folder.is_dir():
        raise BadRequest("one run cannot be compared", hint="name two or more, or a folder that holds them")
    if (folder / BUNDLE).is_file():
        raise _is_one_run(folder, "the bundle of a recorded job")
    entries = [p for p in sorted(folder.iterdir(), key=_counted) if not p.name.startswith((".", "_"))]
    folders = [p for p in entries if p.is_dir()]
    return [str(p) for p in folders] if len(folders) > 1 else _files_that_are_runs(folder, entries)


def _files_that_are_runs(folder: Path, entries: list[Path]) -> list[str]:
    """Files of one kind are runs; of several kinds, or of one rank each, they are the parts of one run. Unknown ones are neither."""
    read = {str(p): readings for p in entries if p.is_file() and (readings := _readings(str(p)))}
    kinds = [_kinds(readings) for readings in read.values()]
    if len(read) > 1 and not set.intersection(*kinds):
        named = list(dict.fromkeys(kind for each in kinds for kind in sorted(each)))
        raise _is_one_run(folder, f"its files are of different kinds ({', '.join(named[:NAMED])})")
    ranks = [_ranks(readings) for readings in read.values()]
    if len(read) > 1 and all(ranks) and len(set.union(*ranks)) == sum(map(len, ranks)):
        raise _is_one_run(folder, f"each of its {len(read)} files tells of other ranks")
    return list(read)


def _readings(file: str) -> list[Reading]:
    """What a file, or an archive's files, are read as; kept for the diagnosis that follows."""
    artifacts, _ = find([file])
    return [r for r in LocalEngine().readings(artifacts, ReadingPlan()) if r.formats]


def _kinds(readings: list[Reading]) -> set[str]:
    """Formats; words and messages stand in logs of every kind."""
    formats = {f for r in readings for f in r.formats}
    return formats - {MESSAGES, IN_WORDS} or formats


def _ranks(readings: list[Reading]) -> set[int]:
    scopes = [scope for r in readings for item in r.items if (scope := getattr(item, "scope", None)) is not None]
    return {scope.rank for scope in scopes if scope.rank is not None}


def _is_one_run(folder: Path, why: str) -> BadRequest:
    return BadRequest(
        f"{folder} is one run: {why}",
        hint=f"name the run to compare it with: stallwise compare {folder} OTHER_RUN, or a folder that holds one folder a run",
    )


def _counted(path: Path) -> list[tuple[int, str]]:
    """run2 comes before run10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name) if part]
