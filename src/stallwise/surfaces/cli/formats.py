"""List the artifacts that can be read, and how to capture each."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(epilog="Examples: stallwise formats; stallwise formats nvidia")
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Every format with what it is and the command that captures it; WORDS filter. Files are known by content, never by name."""
    from stallwise.readers import all_readers
    from stallwise.readers.text.metric_catalogue import metric_catalogues

    rows = [
        {
            "format": str(r.FORMAT),
            "reads": (r.__doc__ or "").strip().splitlines()[0].rstrip("."),
            "capture": str(getattr(r, "CAPTURE", "")),
        }
        for r in all_readers()
    ]
    rows += [{"format": b.format, "reads": b.reads, "capture": b.capture} for b in metric_catalogues()]
    rows.sort(key=lambda r: r["format"].lower())
    rows = [r for r in rows if all(w.lower() in " ".join(r.values()).lower() for w in words)]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not rows:
        click.echo(f"nothing matches {' '.join(words)}")
        return
    width = max(len(r["format"]) for r in rows)
    for r in rows:
        click.echo(f"{r['format']:{width}}  {r['reads']}")
        if r["capture"]:
            click.echo(f"{'':{width}}  $ {r['capture']}")
