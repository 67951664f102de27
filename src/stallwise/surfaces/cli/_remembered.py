"""Keeps a diagnosed run in the history, and says beside the answer when it is slower than last week."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stallwise.doctor.findings.diagnosis import Diagnosis

# A count or a date (run2, train_2026-03-20), never a number inside a name (llama7b).
_COUNT = re.compile(r"\d+(?:[-_.:T]\d+)*(?![A-Za-z])")


def remembered(diagnosis: Diagnosis, paths: Sequence[str], *, command: str = "", series: str = "") -> None:
    """A command line in its folder, the series that the user names, or files alike in name. Addresses and pipes are no runs."""
    from stallwise.doctor.given import Kind, kind_of

    places = [Path(p).absolute() for p in paths if kind_of(p) in (Kind.FILE, Kind.FOLDER)]
    if not places:
        return
    from stallwise.doctor.history import remember
    from stallwise.render.documents.history import moved_line

    run = places[0]
    if command:
        moved = remember(diagnosis, command, str(run), folder=Path.cwd())
    elif series:
        moved = remember(diagnosis, series, str(run))
    else:
        moved = remember(diagnosis, family(run.name), run.name, folder=run.parent, of_a_file=True)
    if moved is not None:
        click.echo(f"stallwise: {moved_line(moved)}; stallwise history shows them", err=True)


def family(name: str) -> str:
    """What files of one series share in their names."""
    return _COUNT.sub("#", name)
