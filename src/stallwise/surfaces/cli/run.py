"""Run a job, record it, and say what stalls."""

from __future__ import annotations

import shlex

import click

from stallwise.surfaces.cli._report_file import patch_option
from stallwise.surfaces.cli.record import leave, options, record, recorded


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="Examples: stallwise run -- python train.py; stallwise run -- torchrun --nproc-per-node 8 train.py",
)
@options
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@patch_option
@click.option(
    "--prove", is_flag=True, help="Also try the fixes in the job (stallwise try): a rehearsal, it writes nothing."
)
def command(
    command_line: tuple[str, ...],
    light: bool,
    steps: str | None,
    folder: str | None,
    as_json: bool,
    patch: str | None,
    prove: bool,
) -> None:
    """Run COMMAND unchanged, record a few steps, then diagnose the bundle. The job's exit code is kept, whatever happens.

    With --prove its first steps are diagnosed while it runs, the cause's own trial is made first, and the answer is measured.
    """
    if prove:
        _prove(command_line, folder, as_json, light=light, steps=steps)
        return
    code, where = record(command_line, light=light, steps=steps, folder=folder)
    try:
        if recorded(where):
            say(where, as_json, shlex.join(command_line), patch)
    finally:
        leave(code)  # internal error, a broken pipe or Ctrl-C while we think: the job's code all the same


def _prove(line: tuple[str, ...], folder: str | None, as_json: bool, *, light: bool, steps: str | None) -> None:
    """Record, diagnose and try in one run of the job."""
    import time
    from importlib import import_module

    from stallwise.errors import BadRequest

    if light or steps:
        raise BadRequest("--prove records steps of its own choice", hint="leave out --light and --steps")
    trying = import_module("stallwise.surfaces.cli.try")
    where = folder or time.strftime("stallwise_run/%Y%m%d-%H%M%S")
    code = trying.tried(line, where, trying.default_options(), rehearsal=True)
    try:
        if recorded(where):
            say(where, as_json, shlex.join(line))
            if not as_json:
                trying.say_table(where)
    finally:
        leave(code)


def say(where: str, as_json: bool, command_line: str = "", patch: str | None = None) -> None:
    """The diagnosis; trouble with it is one line."""
    import os

    from stallwise.errors import StallwiseError

    try:
        from stallwise.doctor.examine import diagnose
        from stallwise.surfaces.cli._output import Output
        from stallwise.surfaces.cli._remembered import remembered
        from stallwise.surfaces.cli._report_file import show_diagnosis, write_patch
        from stallwise.surfaces.remarks import with_remarks

        diagnosis = with_remarks(diagnose(where))
        if not as_json:
            click.echo("")
        show_diagnosis(diagnosis, Output(as_json=as_json))
        if patch:
            write_patch(diagnosis, patch)
        remembered(diagnosis, [where], command=command_line)
    except StallwiseError as error:
        click.echo(f"stallwise: {error.problem}", err=True)
        click.echo(f"  try: {error.hint}", err=True)
    except Exception as error:
        if os.environ.get("STALLWISE_DEBUG"):
            import traceback

            traceback.print_exc()
        click.echo(
            f"stallwise: no diagnosis (internal error: {type(error).__name__}: {error}); the job is not touched by it",
            err=True,
        )
        click.echo(f"  try: stallwise diagnose {where}   (STALLWISE_DEBUG=1 shows the traceback)", err=True)
