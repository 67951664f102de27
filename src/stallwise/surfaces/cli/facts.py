"""List the words in which facts may be stated."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._output import Output, answer_options

TEMPLATE = """\
# What is wrong, in your words; then what you know. Delete the rest. Units are welcome: 58ms, 22%, 80GB, 989TFLOP/s.
symptom = ""
gpu = "h100"
gpus = 8
step_time = "1.2s"
mfu = "40%"
changed = "nothing"

[before]  # the same, when all was well
mfu = "48%"
"""


@click.command(epilog="Examples: stallwise facts; stallwise facts mfu; stallwise facts --template > case.toml")
@click.argument("words", nargs=-1)
@click.option("--template", is_flag=True, help="Print a case file to fill in.")
@answer_options
def command(words: tuple[str, ...], template: bool, out: Output) -> None:
    """Words for case.toml and `diagnose --fact word=value`, with unit and meaning; WORDS filter the list."""
    if template:
        import tomllib

        click.echo(json.dumps(tomllib.loads(TEMPLATE), indent=2) if out.as_json else TEMPLATE.rstrip("\n"))
        return
    from stallwise.evidence.catalog import quantities
    from stallwise.units import example

    rows: list[dict[str, Any]] = [
        {
            "name": q.name,
            "also": list(q.aliases),
            "unit": q.unit.value,
            "write": example(q.unit),
            "meaning": q.meaning,
            "from": q.from_.artifact if q.from_ else "",
        }
        for q in sorted(quantities().values(), key=lambda q: ("." in q.name, q.name))
        if all(w.lower() in f"{q.name} {' '.join(q.aliases)} {q.meaning}".lower() for w in words)
    ]
    if not rows and not out.as_json:
        from stallwise.evidence.vocabulary import suggestions

        close = [s for w in words for s in suggestions(w)]
        click.echo(f"nothing matches {' '.join(words)}" + (f"; did you mean {', '.join(close)}?" if close else ""))
        return
    from stallwise.render.blocks import Column, sentence
    from stallwise.render.documents.listing import document

    head = (Column("word"), sentence("meaning"), Column("written like", 1), sentence("also", 2))
    cells = [(str(r["name"]), str(r["meaning"]), str(r["write"]), ", ".join(r["also"])) for r in rows]
    says = f"{len(rows)} words; state one with stallwise diagnose --fact WORD=VALUE"
    out.give(partial(document, says, head, cells, verb="facts"), lambda: rows)
