"""The formulas of the field with your numbers, and where the folk versions are wrong."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(
    epilog="Examples: stallwise plan formula; stallwise plan formula adam-states params=8B; "
    "stallwise plan formula ring-allreduce size_bytes=2GB ranks=512"
)
@click.argument("name", required=False)
@click.argument("values", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print inputs and results as JSON.")
def command(name: str | None, values: tuple[str, ...], as_json: bool) -> None:
    """List the formulas, or work one out: NAME input=value..."""
    from stallwise.errors import BadRequest
    from stallwise.physics.costs.formulas import all_formulas, evaluate, formula_named, inputs_of, numbers_of
    from stallwise.render.formula import listing, to_text

    if name is None:
        titles = {key: (module.__doc__ or "").strip().splitlines()[0] for key, module in all_formulas().items()}
        click.echo(json.dumps(titles, indent=2) if as_json else listing(titles))
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
    click.echo(json.dumps(answer, indent=2) if as_json else to_text(answer, module.UNITS))
