"""Say what changed between two runs, in order of seconds."""

from __future__ import annotations

import sys

import click

from stallwise.cli._answer_file import output_option, write_answer
from stallwise.render import strict_json as json


@click.command(
    epilog="Examples: stallwise compare good/ bad/; stallwise compare main.json.gz branch.json.gz --fail-on 3%"
)
@click.argument("good")
@click.argument("bad")
@click.option("--fail-on", metavar="SHARE", help="Exit with 1 when the second is worse by more than this, like 3%.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def command(good: str, bad: str, fail_on: str | None, outputs: tuple[str, ...], as_json: bool) -> None:
    """Compare GOOD with BAD (files, folders or globs): what got slower or faster, by how much, and why."""
    from stallwise.doctor.compare import compare
    from stallwise.render.answers.comparison import to_html
    from stallwise.render.comparison import comparison_dict, comparison_text
    from stallwise.units import Unit, parse

    limit = None if fail_on is None else parse(fail_on, Unit.SHARE)
    comparison = compare([good], [bad])
    write_answer(
        outputs,
        lambda: to_html(comparison),
        lambda: comparison_dict(comparison),
        lambda: comparison_text(comparison),
    )
    if as_json:
        click.echo(json.dumps(comparison_dict(comparison), indent=2, ensure_ascii=False))
    else:
        click.echo(comparison_text(comparison))
    worse = comparison.worse_by or 0.0
    if limit is not None and worse > limit:
        click.echo(f"worse by {worse:.1%}, more than {fail_on}", err=True)
        sys.exit(1)
