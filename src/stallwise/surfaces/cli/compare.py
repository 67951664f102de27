"""Say what changed between two runs, or when it changed over many."""

from __future__ import annotations

import sys

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._answer_file import output_option, write_answer


@click.command(
    epilog="Examples: stallwise compare good/ bad/; stallwise compare main.json.gz branch.json.gz --fail-on 3%; "
    "stallwise compare monday/ tuesday/ wednesday/ thursday/ -o trend.html   when did it change?; "
    "stallwise compare runs/   every entry of the folder is one run"
)
@click.argument("runs", nargs=-1, required=True)
@click.option("--fail-on", metavar="SHARE", help="Exit with 1 when the last is worse by more than this, like 3%.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def command(runs: tuple[str, ...], fail_on: str | None, outputs: tuple[str, ...], as_json: bool) -> None:
    """Compare RUNS (files, folders or globs).

    Two: what got slower or faster, by how much, and why. More, or one folder that holds them: the trend, and between
    which of them the level changed, judged against the series' own noise.
    """
    from stallwise.doctor.run_folders import runs_of
    from stallwise.units import Unit, parse

    limit = None if fail_on is None else parse(fail_on, Unit.SHARE)
    chosen = runs_of(runs)
    worse = _two(chosen, outputs, as_json) if len(chosen) == 2 else _many(chosen, outputs, as_json)
    if limit is not None and worse > limit:
        click.echo(f"worse by {worse:.1%}, more than {fail_on}", err=True)
        sys.exit(1)


def _two(runs: list[str], outputs: tuple[str, ...], as_json: bool) -> float:
    from stallwise.doctor.compare import compare
    from stallwise.render.answers.comparison import to_html
    from stallwise.render.comparison import comparison_dict, comparison_text

    found = compare([runs[0]], [runs[1]])
    write_answer(outputs, lambda: to_html(found), lambda: comparison_dict(found), lambda: comparison_text(found))
    if as_json:
        click.echo(json.dumps(comparison_dict(found), indent=2, ensure_ascii=False))
    else:
        click.echo(comparison_text(found))
    return found.worse_by or 0.0


def _many(runs: list[str], outputs: tuple[str, ...], as_json: bool) -> float:
    from stallwise.doctor.trend import trend
    from stallwise.errors import BadRequest
    from stallwise.render.answers.trend import to_html
    from stallwise.render.trend import trend_dict, trend_text

    if len(runs) < 2:
        raise BadRequest("one run cannot be compared", hint="name two or more, or a folder that holds them")
    found = trend(runs)
    subject = f"{runs[0]} to {runs[-1]}"
    write_answer(
        outputs,
        lambda: to_html(found, verb="compare", subject=subject, inputs=runs),
        lambda: trend_dict(found),
        lambda: trend_text(found),
    )
    click.echo(json.dumps(trend_dict(found), indent=2, ensure_ascii=False) if as_json else trend_text(found))
    return found.shifts[-1].ratio - 1.0 if found.shifts else 0.0
