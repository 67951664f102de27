"""The models known by name, with their sizes."""

from __future__ import annotations

from typing import Any

import click

from stallwise.render import strict_json as json


@click.command(epilog="Example: stallwise plan models --json")
@click.argument("which", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(which: str | None, as_json: bool) -> None:
    """List the catalogue, or show one model (a name or a config.json)."""
    from stallwise.physics.specs.model import find_model
    from stallwise.physics.specs.models import model_names

    rows: list[dict[str, Any]] = []
    for name in [which] if which else model_names():
        model = find_model(name)
        counts = model.parameters()
        rows.append(
            {
                "name": model.name, "parameters": counts.total, "active": counts.active, "layers": model.layers,
                "hidden": model.hidden, "heads": model.heads, "kv_heads": model.kv_heads, "experts": model.experts,
                "kv_bytes_per_token": model.kv_bytes_per_token(), "source": model.source,
            }
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    wide = max(len(str(r["name"])) for r in rows)
    click.echo(
        f"{'name':{wide}} {'B params':>9} {'B active':>9} {'layers':>6} {'hidden':>6} {'experts':>7} {'KV B/token':>10}"
    )
    for r in rows:
        click.echo(
            f"{r['name']:{wide}} {r['parameters'] / 1e9:9.2f} {r['active'] / 1e9:9.2f} {r['layers']:6} {r['hidden']:6} "
            f"{r['experts'] or '-':>7} {r['kv_bytes_per_token']:10,.0f}"
        )
