"""A second look is instant: what was read and measured is kept, keyed by content, name and the code that read it.

Lives in $XDG_CACHE_HOME/stallwise; STALLWISE_CACHE=off switches it off, STALLWISE_CACHE=DIR moves it. Entries are
plain data, which can do nothing when they are read; a folder that others can write to is not used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stallwise.evidence.artifact import Artifact

if TYPE_CHECKING:
    from stallwise.doctor.reading import Reading

WORTH_KEEPING_BYTES = 200_000  # smaller artifacts are read faster than a cache is asked
MAX_CACHE_BYTES = 256 << 20
WRITTEN_BY_NOW_S = 3600.0
MAX_ENTRY_BYTES = 16 << 20
_STAGES = (  # what shapes a reading
    "stallwise.readers",
    "stallwise.readers.text",
    "stallwise.doctor.measures",
    "stallwise.physics.sim",
    "stallwise.physics.costs",
    "stallwise.physics.specs",
    "stallwise.evidence",
    "stallwise.doctor",
)


def recall(artifact: Artifact) -> tuple[str, Reading | None]:
    """The key of this artifact (empty when it is not to be cached) and what is known of it."""
    folder = cache_folder()
    if folder is None or artifact.url is not None or artifact.size_bytes < WORTH_KEEPING_BYTES:
        return "", None
    from stallwise.doctor.cache_format import decoded

    key = _key(artifact)
    path = folder / key
    try:
        known = decoded(path.read_bytes())
        os.utime(path)  # the least recently used entry goes first
    except Exception:  # a missing, old or damaged entry: read anew
        return key, None
    return key, known


def remember(key: str, reading: Reading) -> None:
    """Keeps a reading; failing to is never an error."""
    import tempfile

    from stallwise.doctor.cache_format import encoded

    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError, TypeError, ValueError, RecursionError):
        content = encoded(reading)
        if len(content) > MAX_ENTRY_BYTES:
            return
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(folder / key)
        _shrink(folder)


@cache
def cache_folder() -> Path | None:
    """Where entries live; None when switched off or when the folder is not safely ours."""
    chosen = os.environ.get("STALLWISE_CACHE", "")
    if chosen.lower() in ("off", "0", "no"):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    folder = Path(chosen) if chosen else Path(home) / "stallwise"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        info = folder.stat()
    except (OSError, RuntimeError):
        return None
    others_write = bool(info.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    mine = not hasattr(os, "getuid") or info.st_uid == os.getuid()
    return folder if mine and not others_write and os.access(folder, os.W_OK) else None


def _key(artifact: Artifact) -> str:
    digest = hashlib.blake2b(digest_size=20)
    digest.update(_code_stamp())
    digest.update(artifact.name.encode("utf-8", "surrogateescape") + b"\0")
    with artifact.raw() as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@cache
def _code_stamp() -> bytes:
    """Changes whenever the code or a table that shapes readings does."""
    root = Path(__file__).parents[2]
    digest = hashlib.blake2b(digest_size=16)
    for stage in _STAGES:
        for path in sorted(root.joinpath(*stage.split(".")).rglob("*")):
            if path.suffix in (".py", ".toml", ".csv", ".json"):
                info = path.stat()
                digest.update(f"{path.relative_to(root)}\0{info.st_size}\0{info.st_mtime_ns}\n".encode())
    return digest.digest()


def _shrink(folder: Path) -> None:
    for half in folder.glob(".new-*"):  # left by a process that was killed while it wrote
        if time.time() - half.stat().st_mtime > WRITTEN_BY_NOW_S:
            half.unlink(missing_ok=True)
    entries = [(p.stat(), p) for p in folder.iterdir() if p.is_file()]
    total = sum(info.st_size for info, _ in entries)
    if total <= MAX_CACHE_BYTES:
        return
    for info, path in sorted(entries, key=lambda e: e[0].st_mtime):
        path.unlink(missing_ok=True)
        total -= info.st_size
        if total <= 0.8 * MAX_CACHE_BYTES:
            return
