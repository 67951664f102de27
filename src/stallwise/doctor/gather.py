"""From paths to evidence: finds the artifacts, lets the readers read them, measures each timeline next to its file."""

from __future__ import annotations

import glob
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from stallwise.errors import StallwiseError, UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.timeline import Timeline
from stallwise.measures import measure_timeline
from stallwise.readers import readers_for

MAX_MEMBER_BYTES = 2 << 30  # a zip member that claims more is a bomb or needs unpacking by hand
MAX_ZIP_DEPTH = 3
IGNORED_SUFFIXES = {".py", ".pyc", ".png", ".jpg", ".so", ".pt", ".pth", ".safetensors", ".bin", ".whl"}


def artifacts_of(paths: Iterable[str]) -> list[Artifact]:
    """Files, folders, globs and '-' in the order given; zips opened."""
    found: list[Artifact] = []
    for given in paths:
        if given == "-":
            found.append(Artifact("stdin", content=sys.stdin.buffer.read()))
            continue
        path = Path(given)
        if path.is_dir():
            found += [Artifact(str(p), p) for p in sorted(path.rglob("*")) if _worth_reading(p, path)]
        elif path.exists():
            found.append(Artifact(given, path))
        elif matches := sorted(glob.glob(given, recursive=True)):
            found += [Artifact(m, Path(m)) for m in matches if Path(m).is_file()]
        else:
            raise UnreadableInput(
                f"there is no file or folder {given}", hint="check the path; globs work too: 'traces/*.json.gz'"
            )
    return [inner for artifact in found for inner in _unzipped(artifact)]


def _worth_reading(path: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
    return path.is_file() and not hidden and path.suffix.lower() not in IGNORED_SUFFIXES


def _unzipped(artifact: Artifact, depth: int = 0) -> Iterator[Artifact]:
    with artifact.raw() as stream:
        if stream.read(4) != b"PK\x03\x04":
            yield artifact
            return
    if depth == MAX_ZIP_DEPTH:
        raise UnreadableInput(
            f"{artifact.name} is a zip inside {depth} zips", hint="unpack it and point at the trace itself"
        )
    try:
        with artifact.raw() as stream, zipfile.ZipFile(stream) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                if info.file_size > MAX_MEMBER_BYTES:
                    raise UnreadableInput(
                        f"{artifact.name}!{info.filename} unpacks to {info.file_size} bytes", hint="unpack it first"
                    )
                member = Artifact(f"{artifact.name}!{info.filename}", content=archive.read(info))
                yield from _unzipped(member, depth + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as error:
        raise UnreadableInput(
            f"{artifact.name} is a damaged or encrypted zip: {error}", hint="unpack it by hand"
        ) from error


def read_artifact(artifact: Artifact, *, keep_timelines: bool = False) -> tuple[list[str], list[Item]]:
    """The formats that matched and what they gave. Timelines are measured here and then dropped unless kept."""
    formats: list[str] = []
    items: list[Item] = []
    for reader in readers_for(artifact):
        formats.append(reader.FORMAT)
        for item in reader.read(artifact):
            if isinstance(item, Timeline):
                items += measure_timeline(item)
                if not keep_timelines:
                    continue
            items.append(item)
    return formats, items


def gather(paths: Iterable[str], *, keep_timelines: bool = False) -> Evidence:
    """Reads everything that can be read; complains only when nothing can."""
    evidence = Evidence()
    problems: list[StallwiseError] = []
    artifacts = artifacts_of(paths)
    for artifact in artifacts:
        try:
            formats, items = read_artifact(artifact, keep_timelines=keep_timelines)
        except StallwiseError as error:
            problems.append(error)
            evidence.notes.append(Note(error.problem, Source(artifact.name)))
            continue
        if not formats:
            evidence.notes.append(Note("no reader knows this file", Source(artifact.name)))
            continue
        evidence.inputs.append(artifact.name)
        evidence.formats += [f for f in formats if f not in evidence.formats]
        evidence.add(items)
    if not evidence.inputs:
        raise _nothing_readable(artifacts, problems)
    return evidence


def _nothing_readable(artifacts: list[Artifact], problems: list[StallwiseError]) -> StallwiseError:
    if problems:
        return problems[0]
    seen = ", ".join(f"{a.name} ({a.size_bytes} bytes)" for a in artifacts[:4]) or "nothing"
    return UnreadableInput(
        f"no artifact was recognised; looked at: {seen}",
        hint="capture one: stallwise record -- python train.py   (formats: stallwise formats)",
    )
