"""Diagnose a real trace that comes with the package."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(epilog="Examples: stallwise demo; stallwise demo --json")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def command(as_json: bool) -> None:
    """A training step on an H200 whose loader is too slow: what `stallwise diagnose` says of it."""
    from importlib.resources import as_file, files

    from stallwise.doctor.examine import diagnose
    from stallwise.render.json import to_dict
    from stallwise.render.text import to_text
    from stallwise.surfaces.cli._fitted import colored

    with as_file(files("stallwise.surfaces.cli") / "_demo" / "loader_slow") as folder:
        diagnosis = diagnose(str(folder), base=folder)
    if as_json:
        click.echo(json.dumps(to_dict(diagnosis), indent=2, ensure_ascii=False))
        return
    click.echo(to_text(diagnosis, color=colored()), color=colored())
    click.echo("\nthe same for your job: stallwise run -- python train.py", err=True)
