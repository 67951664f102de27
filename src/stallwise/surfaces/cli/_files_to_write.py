"""Files that an answer goes into: refused before the work where they cannot be written, and named where writing fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from stallwise.errors import BadRequest, StallwiseError


class FileToWrite(click.Path):
    """A file's name with one of the endings that are known, in a folder that exists."""

    def __init__(self, endings: Sequence[str] = (), known: str = "") -> None:
        super().__init__(dir_okay=False)
        self.endings, self.known = tuple(endings), known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        path = Path(os.fsdecode(found))
        if not path.parent.is_dir():
            raise BadRequest(f"there is no folder {path.parent}", hint="make it first, or write elsewhere")
        if self.endings and not path.name.lower().endswith(self.endings) and path.suffix:
            raise BadRequest(f"no answer ends in '{path.suffix}'", hint=f"one of: {self.known}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise BadRequest(f"cannot write {path}: it is not yours to write", hint="choose another place")
        return found


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """What goes wrong on the disk is the user's to know, with the file's name."""
    try:
        yield
    except OSError as error:
        raise StallwiseError(f"cannot write {path}: {error.strerror}", hint="choose another place") from error


def write_file(path: str | Path, text: str) -> None:
    """The whole text, or an error that names the file."""
    with writing(path):
        Path(path).write_text(text, encoding="utf-8")
