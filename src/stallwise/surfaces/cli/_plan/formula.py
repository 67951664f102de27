"""The formulas of the field with your numbers, and where the folk versions are wrong."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan formula; stallwise plan formula adam-states params=8B; "
    "stallwise plan formula ring-allreduce size_bytes=2GB ranks=512"
)
@click.argument("name", required=False)
@click.argument("values", nargs=-1)
@answer_options
def command(name: str | None, values: tuple[str, ...], out: Output) -> None:
    """List the formulas, or work one out: NAME input=value..."""
    from stallwise.errors import BadRequest
    from stallwise.physics.costs.formulas import all_formulas, evaluate, formula_named, inputs_of, numbers_of
    from stallwise.render.blocks import Column, sentence
    from stallwise.render.documents import formula, listing

    if name is None:
        titles = {key: (module.__doc__ or "").strip().splitlines()[0] for key, module in all_formulas().items()}
        head = (Column("formula"), sentence("what it says"))
        says = f"{len(titles)} formulas; stallwise plan formula NAME input=value works one out"
        out.give(partial(listing.document, says, head, titles.items(), verb="plan formula"), lambda: titles)
        return
    module = formula_named(name)
    given: dict[str, str] = {}
    for text in values:
        key, found, value = text.partition("=")
        if not found:
            raise BadRequest(f"'{text}' is not of the form input=value", hint="params=70B")
        given[key.strip()] = value
    results = evaluate(module, given)
    answer = {
        "name": name,
        "title": (module.__doc__ or "").strip().splitlines()[0],
        "equation": module.EQUATION.strip(),
        "inputs": {
            **inputs_of(module),
            **numbers_of(module, given),
            **{k: v for k, v in given.items() if k in inputs_of(module)},
        },
        "results": results,
        "folk": getattr(module, "FOLK", "").strip(),
        "source": module.SOURCE,
    }
    out.give(partial(formula.document, answer, module.UNITS), lambda: answer)
