"""From what the user typed to artifacts: files, folders, globs, '-', URLs, and what lies inside archives and joined texts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stallwise.doctor.given import Kind, kind_of, matches_of
from stallwise.errors import BadRequest, MissingExtra, StallwiseError, UnreadableInput
from stallwise.evidence.archive import members_of
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.limits import current
from stallwise.evidence.words import label_of
from stallwise.readers.shapes.pasted import files_in

SOURCE_HEAD = 1 << 16  # bytes of a source file that are looked at
MAX_DEPTH = 3  # of archives in archives
HTTP_TIMEOUT_S = 20.0
IGNORED_SUFFIXES = {".py", ".pyc", ".png", ".jpg", ".so", ".pt", ".pth", ".safetensors", ".bin", ".whl"}
PACKAGES = {"__pycache__", "site-packages", "dist-packages", "node_modules"}
ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")  # what lies in a folder that is one
_DIGITS = re.compile(r"([0-9]{1,18})")  # more digits than a number has are words


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def listed(*given: Paths) -> list[str]:
    """Whatever a caller names files with: a text, a Path, or a list of them. A text is one path, never its letters."""
    found: list[str] = []
    for one in given:
        if isinstance(one, bytes):
            raise BadRequest("a path is a text or a Path, not bytes", hint="os.fsdecode(path)")
        if isinstance(one, (str, os.PathLike)):
            found.append(os.fspath(one))
        elif isinstance(one, Iterable):
            found += listed(*one)
        else:
            raise BadRequest(f"{type(one).__name__} is no path", hint='stallwise.diagnose("trace.json.gz")')
    return found


def find(paths: Iterable[str], live_s: float = 0.0) -> tuple[list[Artifact], list[tuple[str, StallwiseError]]]:
    """Every artifact once, in an order that does not depend on how it was asked for, and the files that would not open."""
    found: dict[str | bytes | None, Artifact] = {}
    artifacts: list[Artifact] = []
    problems: list[tuple[str, StallwiseError]] = []
    for given in paths:
        try:
            for artifact in _given(given, live_s):
                # Two long texts may be cited alike and are two all the same.
                found.setdefault(artifact.content if artifact.typed else artifact.name, artifact)
        except StallwiseError as error:  # one path that is not there never costs the answer from the others
            problems.append((given, error))
    for artifact in _at_most(list(found.values()), problems):
        try:
            for member in _unpacked(artifact):
                artifacts.append(member)  # members before a damage stay
        except StallwiseError as error:
            problems.append((artifact.name, error))
    return sorted(artifacts, key=lambda a: natural(a.name)), problems


def _at_most(found: list[Artifact], problems: list[tuple[str, StallwiseError]]) -> list[Artifact]:
    """As many as are read in one go: those nearest to the folder that was named, for data lies below the logs of its job."""
    most = current().files
    if len(found) <= most:
        return found
    nearest = sorted(found, key=lambda a: (a.name.count("/"), natural(a.name)))
    left = UnreadableInput(
        f"{len(found):,} files were found and {most:,} of them read; {len(found) - most:,} were not looked at",
        hint="name the folder of the job alone, or raise --max-files",
    )
    problems.append((nearest[most].name, left))
    return nearest[:most]


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts rank-2 before rank-10."""
    return tuple((0, int(p), "") if p.isascii() and p.isdigit() else (1, 0, p) for p in _DIGITS.split(name))


def _given(given: str, live_s: float = 0.0) -> list[Artifact]:
    kind = kind_of(given)
    if kind is Kind.STDIN:
        from stallwise.doctor.piped import limited

        return [Artifact("stdin", content=limited(sys.stdin.buffer, "stdin"))]
    if kind is Kind.PAGE:
        return [_page(given, live_s)]
    if kind is Kind.REMOTE:
        return _remote(given)
    if kind is Kind.FOLDER:
        return _in_folder(given)
    if kind is Kind.FILE:
        return [Artifact(given, Path(given))]
    if kind is Kind.PIPE:  # `<(zcat trace.json.gz)` and named pipes
        from stallwise.doctor.piped import from_pipe

        return [Artifact(given, content=from_pipe(Path(given)))]
    if kind is Kind.PATTERN:
        return [Artifact(m, Path(m)) for m in matches_of(given)]
    if kind is Kind.WORDS:
        return [Artifact(label_of(given), content=given.encode("utf-8", "replace"), typed=True)]
    raise BadRequest(
        f"no such file or folder: {given or repr(given)}",
        hint="check the path; globs work too: 'traces/*.json.gz', and so do a few words: 'loss is nan after step 900'",
    )


def _in_folder(given: str) -> list[Artifact]:
    files = [p for p in _below(Path(given)) if (_may_be_read(p.name) or _holds_configs(p)) and p.is_file()]
    if not files:
        raise UnreadableInput(
            f"the folder {given} holds no file to read",
            hint="capture something into it: stallwise record -o RUN_DIR -- python train.py",
        )
    return [Artifact(str(p), p) for p in files]


def _page(url: str, live_s: float) -> Artifact:
    """One document over HTTP, such as an engine's /metrics; for a while where asked."""
    from stallwise.doctor.scraping import fetch_page, scrape_for

    return scrape_for(url, live_s) if live_s > 0 else Artifact(url, content=fetch_page(url, HTTP_TIMEOUT_S))


def _remote(given: str) -> list[Artifact]:
    """Files behind any URL that fsspec knows: one, a folder, or a pattern."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtra("fsspec", "url") from error
    try:
        system, path = fsspec.core.url_to_fs(given)
        if system.isdir(path):
            names = system.find(path)
        else:
            names = system.glob(path) if "*" in path else [path]
        found = [system.unstrip_protocol(n) for n in names if _may_be_read(n)]
        if not found or not system.exists(names[0]):
            raise UnreadableInput(f"there is nothing at {given}", hint="check the URL and your credentials")
    except StallwiseError:
        raise
    except Exception as error:  # fsspec's back ends raise whatever their clients raise
        raise UnreadableInput(
            f"cannot reach {given}: {error}",
            hint="check the URL, your credentials and that its fsspec back end is installed",
        ) from error
    return [Artifact(url, url=url) for url in found]


def _may_be_read(name: str) -> bool:
    return Path(name).suffix.lower() not in IGNORED_SUFFIXES


def _holds_configs(path: Path) -> bool:
    """A source file that lists the configurations of a kernel is as good as an autotuner's log."""
    if path.suffix != ".py":
        return False
    try:
        with path.open("rb") as file:
            return b"triton.Config(" in file.read(SOURCE_HEAD)
    except OSError:
        return False


def _below(root: Path) -> Iterator[Path]:
    """Every file of a folder, but for what is hidden and for the packages of others that lie in it: those hold samples of
    their own, and nobody means them."""
    for folder, inner, names in os.walk(root):
        inner[:] = [
            n for n in inner if not n.startswith(".") and n not in PACKAGES and not _is_environment(Path(folder, n))
        ]
        yield from (Path(folder, name) for name in names if not name.startswith("."))


def _is_environment(folder: Path) -> bool:
    """Where Python's or conda's packages are installed."""
    return any((folder / mark).exists() for mark in ENVIRONMENTS)


def _unpacked(artifact: Artifact, depth: int = 0) -> Iterator[Artifact]:
    members = members_of(artifact)
    if members is None:
        joined = files_in(artifact)
        yield from (f for f in joined if _may_be_read(f.name)) if joined else [artifact]
        return
    if depth == MAX_DEPTH:
        raise UnreadableInput(
            f"{artifact.name} is an archive inside {depth} archives; nothing was read",
            hint="unpack it and point at the trace itself",
        )
    for member in members:
        if _may_be_read(member.name):
            yield from _unpacked(member, depth + 1)
