"""Print the page of a cause or of a concept, or answer a question in words."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(
    epilog="Examples: stallwise explain input-starved; stallwise explain occupancy; stallwise explain 'speculative decoding' --json; "
    "stallwise explain 'why is TP kept inside the node'"
)
@click.argument("name", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="Print the page as JSON.")
def command(name: str, as_json: bool) -> None:
    """Explain a cause (stallwise causes lists them) or a concept: occupancy, roofline, GQA, ZeRO, ring, NVLS, 1F1B, Xid, MFU...

    A question in words is answered by the pages that speak of it. Without a NAME the concepts are listed.
    """
    from stallwise.drill.explain import concepts, explained

    if not name:
        rows = [{"concept": c.name, "says": c.title} for c in concepts().values()]
        click.echo(json.dumps(rows, indent=2) if as_json else "\n".join(f"{r['concept']:26} {r['says']}" for r in rows))
        return
    page = explained(name)
    click.echo(json.dumps(page, indent=2, ensure_ascii=False) if as_json else str(page["text"]))
