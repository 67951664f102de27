"""Read training scripts without running them and point at lines that stall."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stallwise.render import strict_json as json


@click.command(
    epilog="Example: stallwise lint src/ --format github. Silence a line with # stallwise: ignore[host-sync]"
)
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--format", "shape", type=click.Choice(["text", "json", "sarif", "github"]), default="text", show_default=True
)
@click.option("--select", multiple=True, metavar="CAUSE", help="Only these causes or checks.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when something was found.")
def command(paths: tuple[str, ...], as_json: bool, shape: str, select: tuple[str, ...], exit_zero: bool) -> None:
    """Find syncs, leaks, missing overlap and wrong timing in PATHS. Exit 1 if something was found."""
    from stallwise.errors import UnreadableInput
    from stallwise.lint import lint
    from stallwise.render.remarks import as_github, as_sarif, as_text

    files = [f for p in paths for f in (sorted(Path(p).rglob("*.py")) if Path(p).is_dir() else [Path(p)])]
    if not files:
        raise UnreadableInput(f"no Python file in {', '.join(paths)}", hint="name a script: stallwise lint train.py")
    remarks = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableInput(f"cannot read {file}: {error}", hint="name a Python file") from error
        remarks += lint(text, str(file))
    if select:
        remarks = [r for r in remarks if r.cause in select or r.check in select]
    rows = [r.to_dict() for r in remarks]
    if as_json or shape == "json":
        click.echo(json.dumps({"files": len(files), "remarks": rows}, indent=2))
    elif shape == "sarif":
        click.echo(json.dumps(as_sarif(rows), indent=2))
    else:
        click.echo(as_github(rows) if shape == "github" else as_text(rows, len(files)))
    sys.exit(1 if remarks and not exit_zero else 0)
