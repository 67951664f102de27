"""List the words in which facts may be stated."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json

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
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(words: tuple[str, ...], template: bool, as_json: bool) -> None:
    """Words for case.toml and `diagnose --fact word=value`, with unit and meaning; WORDS filter the list."""
    if template:
        import tomllib

        click.echo(json.dumps(tomllib.loads(TEMPLATE), indent=2) if as_json else TEMPLATE.rstrip("\n"))
        return
    from stallwise.evidence.catalog import quantities
    from stallwise.units import example

    rows = [
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
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not rows:
        from stallwise.evidence.vocabulary import suggestions

        close = [s for w in words for s in suggestions(w)]
        click.echo(f"nothing matches {' '.join(words)}" + (f"; did you mean {', '.join(close)}?" if close else ""))
        return
    width = max(len(str(r["name"])) for r in rows)
    for r in rows:
        also = f"  (also {', '.join(r['also'])})" if r["also"] else ""
        click.echo(f"{r['name']:{width}}  {r['meaning']}, like {r['write']}{also}")
