"""List every cause the doctor knows."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(epilog="Examples: stallwise causes; stallwise causes --family step; stallwise causes --json")
@click.option(
    "--family", help="Only this family: step, kernel, distributed, hang, hardware, memory, serving, numerics."
)
@answer_options
def command(family: str | None, out: Output) -> None:
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
    from stallwise.render.blocks import Column, sentence, table
    from stallwise.render.documents.listing import grouped

    rows = [{"cause": r.cause, "family": r.family, "meaning": r.page.splitlines()[0]} for r in chosen]
    tables = [
        table(
            f,
            (Column("cause"), sentence("meaning")),
            ([r["cause"], r["meaning"]] for r in rows if r["family"] == f),
            bare=True,
        )
        for f in dict.fromkeys(r["family"] for r in rows)
    ]
    says = f"{len(rows)} causes; stallwise explain CAUSE prints the page"
    out.give(partial(grouped, says, tables, verb="causes"), lambda: rows)
