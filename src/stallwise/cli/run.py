"""Run a job, record it, and say what stalls."""

from __future__ import annotations

import shlex

import click

from stallwise.cli.record import leave, options, record, recorded


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="Examples: stallwise run -- python train.py; stallwise run -- torchrun --nproc-per-node 8 train.py",
)
@options
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
def command(command_line: tuple[str, ...], light: bool, steps: str | None, folder: str | None, as_json: bool) -> None:
    """Run COMMAND unchanged, record a few steps, then diagnose the bundle. The job's exit code is kept, whatever happens."""
    code, where = record(command_line, light=light, steps=steps, folder=folder)
    try:
        if recorded(where):
            say(where, as_json, shlex.join(command_line))
    finally:
        leave(code)  # a bug of ours, a broken pipe or Ctrl-C while we think: the job's code all the same


def say(where: str, as_json: bool, command_line: str = "") -> None:
    """The diagnosis; trouble with it is one line."""
    import os

    from stallwise.errors import StallwiseError
    from stallwise.render import strict_json as json

    try:
        from stallwise.cli._fitted import colored
        from stallwise.cli._remembered import remembered
        from stallwise.doctor.examine import diagnose
        from stallwise.render.json import to_dict
        from stallwise.render.text import to_text

        diagnosis = diagnose(where)
        if as_json:
            click.echo(json.dumps(to_dict(diagnosis), indent=2, ensure_ascii=False))
        else:
            click.echo("\n" + to_text(diagnosis, color=colored()), color=colored())
        remembered(diagnosis, [where], command=command_line)
    except StallwiseError as error:
        click.echo(f"stallwise: {error.problem}", err=True)
        click.echo(f"  try: {error.hint}", err=True)
    except Exception as error:
        if os.environ.get("STALLWISE_DEBUG"):
            import traceback

            traceback.print_exc()
        click.echo(
            f"stallwise: no diagnosis (a bug of ours: {type(error).__name__}: {error}); the job is not touched by it",
            err=True,
        )
        click.echo(f"  try: stallwise diagnose {where}   (STALLWISE_DEBUG=1 shows the traceback)", err=True)
