"""Run a job, record it, and say what stalls."""

from __future__ import annotations

import click

from stallwise.cli.record import leave, options, record


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="Examples: stallwise run -- python train.py; stallwise run -- torchrun --nproc-per-node 8 train.py",
)
@options
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
def command(command_line: tuple[str, ...], light: bool, steps: str | None, folder: str | None, as_json: bool) -> None:
    """Run COMMAND unchanged, record a few steps, then diagnose the bundle. The job's exit code is kept."""
    import json
    import sys

    code, where = record(command_line, light=light, steps=steps, folder=folder)
    from stallwise.errors import StallwiseError

    try:
        from stallwise.doctor.examine import diagnose
        from stallwise.render.json import to_dict
        from stallwise.render.text import to_text

        diagnosis = diagnose(where)
        if as_json:
            click.echo(json.dumps(to_dict(diagnosis), indent=2, ensure_ascii=False))
        else:
            click.echo("\n" + to_text(diagnosis, color=sys.stdout.isatty()))
    except StallwiseError as error:
        click.echo(f"stallwise: {error.problem}", err=True)
        click.echo(f"  try: {error.hint}", err=True)
    leave(code)
