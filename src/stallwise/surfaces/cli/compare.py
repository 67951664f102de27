"""Say what changed between two runs, or when it changed over many."""

from __future__ import annotations

import sys
from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise compare good/ bad/; stallwise compare main.json.gz branch.json.gz --fail-on 3%; "
    "stallwise compare monday/ tuesday/ wednesday/ thursday/ -o trend.html   when did it change?; "
    "stallwise compare runs/   every entry of the folder is one run"
)
@click.argument("runs", nargs=-1, required=True)
@click.option("--fail-on", metavar="SHARE", help="Exit with 1 when the last is worse by more than this, like 3%.")
@answer_options
def command(runs: tuple[str, ...], fail_on: str | None, out: Output) -> None:
    """Compare RUNS (files, folders or globs).

    Two: what got slower or faster, by how much, and why. More, or one folder that holds them: the trend, and between
    which of them the level changed, judged against the series' own noise.
    """
    from stallwise.doctor.run_folders import runs_of
    from stallwise.units import Unit, parse

    limit = None if fail_on is None else parse(fail_on, Unit.SHARE)
    chosen = runs_of(runs)
    worse = _two(chosen, out) if len(chosen) == 2 else _many(chosen, out)
    if limit is not None and worse > limit:
        click.echo(f"worse by {worse:.1%}, more than {fail_on}", err=True)
        sys.exit(1)


def _two(runs: list[str], out: Output) -> float:
    from stallwise.doctor.compare import compare
    from stallwise.render.documents.comparison import data, document

    found = compare([runs[0]], [runs[1]])
    out.give(partial(document, found), partial(data, found))
    return found.worse_by or 0.0


def _many(runs: list[str], out: Output) -> float:
    from stallwise.doctor.trend import trend
    from stallwise.errors import BadRequest
    from stallwise.render.documents.trend import data, document

    if len(runs) < 2:
        raise BadRequest("one run cannot be compared", hint="name two or more, or a folder that holds them")
    found = trend(runs)
    subject = f"{runs[0]} to {runs[-1]}"
    out.give(partial(document, found, subject=subject, inputs=tuple(runs)), partial(data, found))
    return found.shifts[-1].ratio - 1.0 if found.shifts else 0.0
