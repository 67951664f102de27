"""Diagnose a real trace that comes with the package."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(epilog="Examples: stallwise demo; stallwise demo --json")
@answer_options
def command(out: Output) -> None:
    """A training step on an H200 whose loader is too slow: what `stallwise diagnose` says of it."""
    from importlib.resources import as_file, files

    from stallwise.doctor.examine import diagnose
    from stallwise.render.documents.diagnosis import document
    from stallwise.render.json import to_dict

    with as_file(files("stallwise.surfaces.cli") / "_demo" / "loader_slow") as folder:
        diagnosis = diagnose(str(folder), base=folder)
    out.give(partial(document, diagnosis), partial(to_dict, diagnosis))
    if not out.as_json:
        click.echo("\nthe same for your job: stallwise run -- python train.py", err=True)
