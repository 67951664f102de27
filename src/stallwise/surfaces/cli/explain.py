"""Print the page of a cause or of a concept, or answer a question in words."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise explain input-starved; stallwise explain occupancy; stallwise explain 'speculative decoding' --json; "
    "stallwise explain 'why is TP kept inside the node'"
)
@click.argument("name", required=False, default="")
@answer_options
def command(name: str, out: Output) -> None:
    """Explain a cause (stallwise causes lists them) or a concept: occupancy, roofline, GQA, ZeRO, ring, NVLS, 1F1B, Xid, MFU...

    A question in words is answered by the pages that speak of it. Without a NAME the concepts are listed.
    """
    from stallwise.drill.explain import concepts, explained
    from stallwise.render.blocks import Column, sentence
    from stallwise.render.documents import explanation, listing

    if name:
        page = explained(name)
        out.give(partial(explanation.document, name, page), lambda: page)
        return
    rows = [{"concept": c.name, "says": c.title} for c in concepts().values()]
    head = (Column("concept"), sentence("what it is"))
    says = f"{len(rows)} concepts; stallwise causes lists the causes"
    cells = ((r["concept"], r["says"]) for r in rows)
    out.give(lambda **more: listing.document(says, head, cells, verb="explain", **more), lambda: rows)
