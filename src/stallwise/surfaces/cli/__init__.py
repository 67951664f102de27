"""The command line: one command per file, found by walking this folder, imported only when called."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from pathlib import Path

import click

from stallwise import __version__
from stallwise.errors import StallwiseError
from stallwise.recorder.inherited import keep_closed_streams
from stallwise.render.visible import visible
from stallwise.surfaces.cli._complete import complete
from stallwise.surfaces.cli._everywhere import dressed, finite
from stallwise.surfaces.cli._fitted import CHOSEN, complaint, fit_output
from stallwise.surfaces.cli._streams import guarded_streams

HERE = Path(__file__).parent
BUG = 4
# What a disk, its owner or the system refuses is no internal error, wherever it shows.
NO_BUG = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}
)
LEAST_WORDS = 3  # that make a question of what was typed; a command mistyped has fewer
LONGEST_PROBLEM = 2000  # letters that anybody reads


class Commands(click.Group):
    """Lists the files of a folder; a command's first docstring line is its help, read without importing it."""

    folder = HERE
    package = __name__

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(p.stem.replace("_", "-") for p in self.folder.glob("*.py") if not p.stem.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        stem = name.replace("-", "_")
        if name.replace("_", "-") not in self.list_commands(
            ctx
        ):  # a question may stand here, longer than any file's name
            return None
        command: click.Command = import_module(f"{self.package}.{stem}").command
        command.name = command.name if command.name != "command" else name
        return finite(dressed(complete(command)))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, _first_line(self.folder / f"{name.replace('-', '_')}.py")) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean '{close[0]}'?" if close else _asked_without_a_verb(args)
            raise click.UsageError(f"{error.message}{hint}", ctx) from error


def _asked_without_a_verb(args: list[str]) -> str:
    """A file, or a question in words, where a command is expected: it is meant for `diagnose`."""
    from stallwise.doctor.given import on_disk

    is_path = on_disk(args[0])
    words = [w for w in args if not w.startswith("-")]
    if not is_path and " " not in args[0].strip() and len(words) < LEAST_WORDS:
        return ""
    return f" To ask about it: stallwise diagnose {args[0] if is_path else repr(' '.join(words))}"


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as stream:
        return stream.readline().strip().strip('"').rstrip(".")


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Examples: stallwise demo; stallwise diagnose trace.json.gz; stallwise run -- python train.py",
)
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """Names the stage that stalls, proves it, and says what fixing it is worth."""


dressed(main)


def _shown(error: click.ClickException) -> str:
    """What click would print, its usage line first."""
    from io import StringIO

    text = StringIO()
    error.show(file=text)
    return text.getvalue().rstrip("\n")


def run() -> None:
    """The console script: every error becomes a sentence and an exit code."""
    keep_closed_streams()
    with guarded_streams():
        CHOSEN[0] = "auto"  # an earlier call in the same process has no say
        fit_output(sys.argv[1:])
        _run()


def _run() -> None:
    try:
        code = _outcome()
        sys.stdout.flush()
        sys.exit(code)
    except StallwiseError as error:
        click.echo(complaint(visible(f"stallwise: {error.problem[:LONGEST_PROBLEM]}")), err=True)
        if error.hint:
            click.echo(complaint(visible(f"  try: {error.hint[:LONGEST_PROBLEM]}")), err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        click.echo(complaint(visible(_shown(error))), err=True)
        sys.exit(2)
    except BrokenPipeError:  # a stream of somebody else: a server's, a pager's
        sys.exit(0)
    except Exception as error:  # internal error: say so in one line, keep the traceback for those who ask
        if os.environ.get("STALLWISE_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in NO_BUG:
            click.echo(complaint(visible(f"stallwise: {error.strerror}: {error.filename or 'a file'}")), err=True)
            sys.exit(StallwiseError.exit_code)
        message = f"stallwise: internal error: {type(error).__name__}: {error}"
        click.echo(complaint(visible(message[:LONGEST_PROBLEM])), err=True)
        click.echo("  try: set STALLWISE_DEBUG=1 for the traceback and file it with the input", err=True)
        sys.exit(BUG)


def _outcome() -> int:
    """The exit code of the command that was typed."""
    try:
        code = main.main(prog_name="stallwise", standalone_mode=False)
    except SystemExit as left:
        if isinstance(left.code, str):  # a script of the user's that leaves with a message
            raise
        code = left.code
    except click.exceptions.Exit as left:
        code = left.exit_code
    return code if isinstance(code, int) else 0


console = run  # the module of the command `run` takes that name here once it is loaded
