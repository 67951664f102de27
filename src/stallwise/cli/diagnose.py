"""Say what stalls, why, and what fixing it is worth."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

FORMATS = {".json": "json", ".md": "markdown", ".txt": "text"}


@click.command(
    epilog="Examples: stallwise diagnose trace.json.gz nvidia_smi.csv; stallwise diagnose RUN_DIR/ -o report.md"
)
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write a report; the extension picks the format.")
def command(paths: tuple[str, ...], as_json: bool, output: str | None) -> None:
    """Read any mix of artifacts (files, folders, globs, '-') and name the stage that stalls."""
    from stallwise.doctor.examine import diagnose
    from stallwise.render.json import to_dict

    diagnosis = diagnose(*paths)
    if as_json:
        click.echo(json.dumps(to_dict(diagnosis), indent=2, ensure_ascii=False))
        return
    from stallwise.render.text import to_text

    click.echo(to_text(diagnosis, color=sys.stdout.isatty()))
    if output:
        Path(output).write_text(to_text(diagnosis, color=False), encoding="utf-8")
