"""Compare predictions with a table of published or measured runs."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Example: stallwise plan validate collectives.csv --kind collectives --json",
)
@click.argument("file", type=click.Path())
@click.option("--kind", required=True, help="Which table it is: collectives, bubbles, training, memory...")
@click.option("--calibrate", default=0, show_default=True, help="Use the first N rows of each source, score the rest.")
@click.option("--rows", "show_rows", is_flag=True, help="Show every row.")
@answer_options
def command(file: str, kind: str, calibrate: int, show_rows: bool, out: Output) -> None:
    """Predict every row of FILE without looking at its measured columns and say how close it came."""
    from stallwise.errors import BadRequest
    from stallwise.planner.scoring import read_rows, summary
    from stallwise.planner.validation import kind_named

    if calibrate < 0:
        raise BadRequest("--calibrate cannot be negative", hint="0 predicts every row blind")
    module = kind_named(kind)
    rows = read_rows(file)
    scored = module.validate(rows, calibrate)
    figures = summary(kind, len(rows), scored)
    if hasattr(module, "details"):  # a kind with several metrics says how each fared, and where
        figures |= module.details(rows, scored)
    from stallwise.render.documents.validation import document

    out.give(partial(document, figures, rows=show_rows), lambda: figures)
