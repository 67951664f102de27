"""Files of one chosen folder and of nowhere else: links, dots and absolute paths that lead out are refused."""

from __future__ import annotations

import os
from pathlib import Path

from stallwise.doctor.given import meant_as_path
from stallwise.errors import BadRequest
from stallwise.evidence.words import Words

MOST_FILES = 2000
LONGEST_SHOWN = 120
OUTSIDE = "outside the chosen folder"


class Folder:
    """A root; every path is told and asked relative to it."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise BadRequest(f"{root} is not a folder", hint="name a folder that exists")
        self.root = root.resolve()

    def place(self, asked: str) -> Path:
        """The real path of what was asked for; raises when it is not there or leads out."""
        if "\0" in asked:
            raise BadRequest("a path cannot hold a zero byte", hint="name a file inside the chosen folder")
        shown = asked[:LONGEST_SHOWN]
        try:
            path = (self.root / asked).resolve() if asked not in ("", ".") else self.root
            there = path.exists()
        except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, half a letter
            raise BadRequest(f"'{shown}' cannot be a path", hint="name a file inside the chosen folder") from error
        if not self.holds(path):
            raise BadRequest(f"'{shown}' is {OUTSIDE}", hint="name a file inside it")
        if not there:
            raise BadRequest(f"there is no '{shown}' in the chosen folder", hint="list the files first")
        return path

    def holds(self, path: Path) -> bool:
        """Whether the real path lies inside."""
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):  # a loop of links
            return False

    def files(self, asked: str = "") -> list[Path]:
        """Regular files under a path, at most MOST_FILES; those that lead out are left out."""
        start = self.place(asked)
        if start.is_file():
            return [start]
        found: list[Path] = []
        for folder, inner, names in os.walk(start, followlinks=False):
            inner[:] = sorted(d for d in inner if not d.startswith(".") and d != "__pycache__")
            for name in sorted(names):
                path = Path(folder, name)
                if not name.startswith(".") and self.holds(path) and path.is_file():
                    found.append(path)
                    if len(found) >= MOST_FILES:
                        return found
        return found

    def given(self, asked: str) -> list[str]:
        """The files of a path inside; a text that is no path is words, and never looked up anywhere else."""
        try:
            return [str(p) for p in self.files(asked)]
        except BadRequest:
            if "\0" in asked or meant_as_path(asked):
                raise
        return [Words(asked)]

    def relative(self, path: Path) -> str:
        """The path as users of this folder see it."""
        return str(path.relative_to(self.root)) if path != self.root else "."
