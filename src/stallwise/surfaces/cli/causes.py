"""List every cause the doctor knows."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(epilog="Examples: stallwise causes; stallwise causes --family step; stallwise causes --json")
@click.option(
    "--family", help="Only this family: step, kernel, distributed, hang, hardware, memory, serving, numerics."
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(family: str | None, as_json: bool) -> None:
    """List the causes with one line each; `stallwise explain CAUSE` prints the page."""
    from stallwise.causes import all_rules
    from stallwise.errors import BadRequest

    rules = all_rules()
    families = list(dict.fromkeys(r.family for r in rules))
    if family is not None and family not in families:
        from difflib import get_close_matches

        close = get_close_matches(family, families, n=1, cutoff=0.3)
        raise BadRequest(
            f"no family is called '{family}'",
            hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(families)}",
        )
    chosen = [r for r in rules if family in (None, r.family)]
    if as_json:
        rows = [{"cause": r.cause, "family": r.family, "meaning": r.page.splitlines()[0]} for r in chosen]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(r.cause) for r in chosen)
    for name in families:
        mine = [r for r in chosen if r.family == name]
        if mine:
            click.echo(click.style(name, bold=True))
        for rule in mine:
            click.echo(f"  {rule.cause:{width}}  {rule.page.splitlines()[0]}")
