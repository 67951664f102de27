"""Print the page of a cause: what it means, what looks like it, how to fix it."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(epilog="Examples: stallwise explain input-starved; stallwise explain host-sync --json")
@click.argument("cause")
@click.option("--json", "as_json", is_flag=True, help="Print the page as JSON.")
def command(cause: str, as_json: bool) -> None:
    """Explain one CAUSE (stallwise causes lists them)."""
    from stallwise.errors import BadRequest
    from stallwise.rules import all_rules

    by_name = {rule.cause: rule for rule in all_rules()}
    rule = by_name.get(cause.lower().replace("_", "-").replace(" ", "-"))
    if rule is None:
        from difflib import get_close_matches

        close = get_close_matches(cause.lower().replace("_", "-"), by_name, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else "stallwise causes lists them all"
        raise BadRequest(f"no cause is called '{cause}'", hint=hint)
    if as_json:
        page = {"cause": rule.cause, "family": rule.family, "page": rule.page}
        page["reads"] = [q.name for q in rule.needs]  # type: ignore[assignment]
        click.echo(json.dumps(page, indent=2, ensure_ascii=False))
        return
    click.echo(f"{rule.cause}\n\n{rule.page}")
