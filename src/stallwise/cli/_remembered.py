"""Keeps a diagnosed run in the history, and says beside the answer when it is slower than last week."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stallwise.findings.diagnosis import Diagnosis


def remembered(diagnosis: Diagnosis, paths: Sequence[str], series: str = "") -> None:
    """Files of this machine alone; addresses, pipes and stated facts are no runs."""
    from stallwise.doctor.given import Kind, kind_of
    from stallwise.doctor.history import remember
    from stallwise.render.history import moved_line

    places = [Path(p).absolute() for p in paths if kind_of(p) in (Kind.FILE, Kind.FOLDER)]
    if not places:
        return
    run = places[0]
    name = series or str(run.parent)
    moved = remember(diagnosis, name, str(run.relative_to(name)) if not series else str(run))
    if moved is not None:
        click.echo(f"stallwise: {moved_line(moved)}; stallwise history shows them", err=True)
