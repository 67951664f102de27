"""List the artifacts that can be read, and how to capture each."""

from __future__ import annotations

import json

import click


@click.command(epilog="Examples: stallwise formats; stallwise formats nvidia")
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Every format by name with what it is; WORDS filter the list. Files are recognised by content, never by name."""
    from stallwise.meaning.gauge_book import gauge_books
    from stallwise.readers import all_readers

    known = {str(r.FORMAT): (r.__doc__ or "").strip().splitlines()[0].rstrip(".") for r in all_readers()}
    known |= {book.format: book.reads for book in gauge_books()}
    rows = [{"format": name, "reads": known[name]} for name in sorted(known, key=str.lower)]
    rows = [r for r in rows if all(w.lower() in f"{r['format']} {r['reads']}".lower() for w in words)]
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not rows:
        click.echo(f"nothing matches {' '.join(words)}")
        return
    width = max(len(r["format"]) for r in rows)
    for r in rows:
        click.echo(f"{r['format']:{width}}  {r['reads']}")
