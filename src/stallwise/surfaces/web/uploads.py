"""What was dropped on the page: kept in a private folder, diagnosed together, gone when the page closes."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Protocol

from stallwise.errors import BadRequest

BLOCK_BYTES = 1 << 20
LONGEST_NAME = 180
DEEPEST = 6  # folders of a path that are kept; those above say nothing of a run
MOST_FILES = 500
MOST_REPORTS = 20


class Readable(Protocol):
    """Whatever gives bytes."""

    def read(self, size: int, /) -> bytes: ...


class TooLarge(BadRequest):
    """An upload over the limit."""


class Uploads:
    """Bundles of files by an unguessable name, and the reports made of them."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.root = Path(tempfile.mkdtemp(prefix="stallwise-ui-"))  # mode 0700
        self.reports: OrderedDict[str, str] = OrderedDict()
        self._bundles: dict[str, int] = {}
        self._lock = Lock()

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.root, ignore_errors=True)

    def new(self) -> str:
        """A bundle to fill."""
        name = secrets.token_hex(12)
        (self.root / name).mkdir(mode=0o700)
        with self._lock:
            self._bundles[name] = 0
        return name

    def bundle(self, name: str) -> Path:
        """Its folder; raises for one that was never made."""
        if name not in self._bundles:
            raise BadRequest("that bundle is not known", hint="drop the files again")
        return self.root / name

    def put(self, bundle: str, name: str, stream: Readable, length: int) -> str:
        """Writes one file of this many bytes, below the bundle: of its path, parts that could lead elsewhere are made plain."""
        folder = self.bundle(bundle)
        *above, plain = [safe_name(part) for part in name.replace("\\", "/").split("/")[-DEEPEST:] if part] or ["file"]
        with self._lock:
            used = self._bundles[bundle]
            if used + length > self.limit_bytes:
                raise TooLarge(
                    f"this bundle would hold {(used + length) / 1e6:,.0f} MB, the limit is {self.limit_bytes / 1e6:,.0f} MB",
                    hint="diagnose large files on the command line, or start with --max-upload 2GB",
                )
            self._bundles[bundle] = used + length
        if len(self.files(bundle)) >= MOST_FILES:
            raise TooLarge(f"a bundle holds at most {MOST_FILES} files", hint="zip them, or use the command line")
        for part in above:
            folder = folder / part if not (folder / part).is_file() else folder
            folder.mkdir(mode=0o700, exist_ok=True)
        place = _free(folder, plain)
        left = length
        with place.open("wb") as out:
            while left > 0:
                block = stream.read(min(left, BLOCK_BYTES))
                if not block:
                    break
                out.write(block)
                left -= len(block)
        if left:
            place.unlink()
            raise BadRequest("the upload broke off", hint="drop the file again")
        return place.name

    def keep(self, html: str) -> str:
        """Keeps a report and says its name; the oldest goes when there are many."""
        name = secrets.token_hex(12)
        with self._lock:
            self.reports[name] = html
            while len(self.reports) > MOST_REPORTS:
                self.reports.popitem(last=False)
        return name

    def files(self, bundle: str) -> Sequence[str]:
        """Paths of a bundle's files."""
        return [str(p) for p in sorted(self.bundle(bundle).rglob("*")) if p.is_file()]


def safe_name(name: str) -> str:
    """The last part of what a browser calls the file, without what could lead elsewhere."""
    last = PurePosixPath(name.replace("\\", "/")).name.replace("\0", "")
    last = "".join(c for c in last if c.isprintable()).lstrip(".")[-LONGEST_NAME:]
    while len(last.encode("utf-8", "ignore")) > 250:
        last = last[1:]
    return last.encode("utf-8", "ignore").decode() or "file"


def _free(folder: Path, name: str) -> Path:
    place, number = folder / name, 1
    while place.exists():
        number += 1
        place = folder / f"{number}-{name}"
    return place
