"""Show the runs of this project over time, and what got slower."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise history; stallwise history train.py --last 20; stallwise history -o history.html; "
    "stallwise history --all; stallwise history --clear"
)
@click.argument("words", nargs=-1)
@click.option("--all", "everywhere", is_flag=True, help="Runs of all projects, not only of the one here.")
@click.option("--last", default=10, show_default=True, type=click.IntRange(1), help="Runs of each series to show.")
@click.option("--clear", is_flag=True, help="Forget the runs that would be shown.")
@answer_options
def command(words: tuple[str, ...], everywhere: bool, last: int, clear: bool, out: Output) -> None:
    """Runs of this project that `run` and `diagnose` have seen, by series; WORDS choose series.

    A series is a command line in one folder, or files of one name in one folder. Runs on another card, scale or model are
    a series of their own. The project is the nearest folder above with .git, pyproject.toml or stallwise.toml.
    Kept in one file that only you can read: when, where, how fast, what stalled; nothing of what the files hold.
    STALLWISE_HISTORY=off keeps none.
    """
    from stallwise.doctor.history import (
        against_last_week,
        belongs_to,
        forget,
        load,
        place,
        project_of,
        series_of,
        trend_of,
    )
    from stallwise.render.documents.history import data, document

    known = load()
    project = project_of(Path.cwd())
    here = known if everywhere else [k for k in known if belongs_to(k, project)]
    chosen = [k for k in here if all(word.lower() in f"{k.folder} {k.series} {k.run}".lower() for word in words)]
    if clear:
        gone = forget(chosen)
        click.echo(json.dumps({"forgotten": gone}) if out.as_json else f"{gone} runs forgotten")
        return
    trends = [(_title(runs[-1]), trend_of(runs[-last:]), against_last_week(runs)) for runs in series_of(chosen)]
    trends.reverse()  # the series that was run last stands first
    out.give(partial(document, trends, place(), len(known) - len(here)), partial(data, trends))


def _title(run: Any) -> str:
    """What tells a series apart: what was run or read, where, and on what."""
    where = f" in {run.folder}" if run.folder else ""
    work = [str(value) for value in run.work.values() if isinstance(value, str)]
    return f"{run.series}{where}{''.join(f' · {w}' for w in work)}"
