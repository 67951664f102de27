"""From what the user typed to artifacts: files, folders, globs, '-', URLs, and what lies inside archives and joined texts."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stallwise.doctor.piped import from_pipe, limited
from stallwise.errors import BadRequest, MissingExtra, StallwiseError, UnreadableInput
from stallwise.evidence.archive import members_of
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.limits import current
from stallwise.readers.shapes._letter import attached
from stallwise.readers.shapes.pasted import files_in

MAX_DEPTH = 3  # of archives in archives
HTTP_TIMEOUT_S = 20.0
IGNORED_SUFFIXES = {".py", ".pyc", ".png", ".jpg", ".so", ".pt", ".pth", ".safetensors", ".bin", ".whl"}
PACKAGES = {"__pycache__", "site-packages", "dist-packages", "node_modules"}
ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")  # what lies in a folder that is one
_URL = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)
LEAST_WORDS = 3  # of a complaint: "loss is nan"; names of files have fewer
WORDY = 6  # words of a sentence even where it ends like a file: "it hangs at the first optimizer.step"
_BEGINS_LIKE_A_PATH = re.compile(r"[/\\]|\.\.?[/\\]|~[A-Za-z_]*[/\\]")  # "~40 it/s" is a rate
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,6}$")
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
    found: dict[str, Artifact] = {}
    for given in paths:
        for artifact in _given(given, live_s):
            found.setdefault(artifact.name, artifact)
    artifacts: list[Artifact] = []
    problems: list[tuple[str, StallwiseError]] = []
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
    if given == "-":
        return [Artifact("stdin", content=limited(sys.stdin.buffer, "stdin"))]
    if given.startswith(("http://", "https://")):
        return [_page(given, live_s)]
    if _URL.match(given):
        return _remote(given)
    path = Path(given)
    if path.is_dir():
        files = [p for p in _below(path) if _may_be_read(p.name) and p.is_file()]
        if not files:
            raise UnreadableInput(
                f"the folder {given} holds no file to read",
                hint="capture something into it: stallwise record -o RUN_DIR -- python train.py",
            )
        return [Artifact(str(p), p) for p in files]
    if path.is_file():
        return [Artifact(given, path)]
    if path.exists():  # `<(zcat trace.json.gz)` and named pipes
        return [Artifact(given, content=from_pipe(path))]
    matches = [m for m in glob.glob(given, recursive=True) if Path(m).is_file()]
    if not matches and _is_sentence(given):
        return [Artifact(given, content=given.encode("utf-8", "replace"))]
    if not matches:
        raise UnreadableInput(
            f"there is no file or folder {given}",
            hint="check the path; globs work too: 'traces/*.json.gz', and so do a few words: 'loss is nan after step 900'",
        )
    return [Artifact(m, Path(m)) for m in matches]


def _is_sentence(given: str) -> bool:
    """A complaint typed where a path is expected; what begins or ends like a path stays one, mistyped or not."""
    words = len(given.split())
    if _BEGINS_LIKE_A_PATH.match(given) or (words < WORDY and _EXTENSION.search(given)):
        return False
    return words >= LEAST_WORDS or (words > 1 and given.endswith("?"))


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
        members = [] if joined else attached(artifact)
        if not members:
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
