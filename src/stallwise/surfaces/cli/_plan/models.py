"""The models known by name, with their sizes."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(epilog="Example: stallwise plan models --json")
@click.argument("which", required=False)
@answer_options
def command(which: str | None, out: Output) -> None:
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
    from stallwise.render.blocks import Column, count, number
    from stallwise.render.documents.listing import document

    head = (Column("name"), number("B params"), number("B active", 3), number("layers", 1), number("hidden", 2),
            number("experts", 4), number("KV B/token"))  # fmt: skip
    cells = [
        (
            r["name"], count(r["parameters"], f"{r['parameters'] / 1e9:.2f}"), count(r["active"], f"{r['active'] / 1e9:.2f}"),
            count(r["layers"]), count(r["hidden"]), count(r["experts"]) if r["experts"] else "", count(r["kv_bytes_per_token"]),
        )
        for r in rows
    ]  # fmt: skip
    says = f"{len(rows)} model{'s' if len(rows) != 1 else ''} known by name; any config.json works as well"
    out.give(partial(document, says, head, cells, verb="plan models"), lambda: rows)
