"""List the artifacts that can be read, and how to capture each."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(epilog="Examples: stallwise formats; stallwise formats nvidia")
@click.argument("words", nargs=-1)
@answer_options
def command(words: tuple[str, ...], out: Output) -> None:
    """Every format with what it is and the command that captures it; WORDS filter. Files are known by content, never by name."""
    from stallwise.readers import all_readers
    from stallwise.readers.text.metric_catalogue import metric_catalogues

    rows = [
        {
            "format": str(r.FORMAT),
            "reads": " ".join((r.__doc__ or "").split("\n\n")[0].split()).rstrip("."),
            "capture": str(getattr(r, "CAPTURE", "")),
        }
        for r in all_readers()
    ]
    rows += [{"format": b.format, "reads": b.reads, "capture": b.capture} for b in metric_catalogues()]
    rows.sort(key=lambda r: r["format"].lower())
    rows = [r for r in rows if all(w.lower() in " ".join(r.values()).lower() for w in words)]
    if not rows and not out.as_json:
        click.echo(f"nothing matches {' '.join(words)}")
        return
    from stallwise.render.blocks import Column, sentence
    from stallwise.render.documents.listing import document

    head = (Column("format"), sentence("what it is, and how to capture it"))
    cells = [row for r in rows for row in ((r["format"], r["reads"]), ("", f"$ {r['capture']}")) if row[1] != "$ "]
    out.give(partial(document, f"{len(rows)} formats, known by content", head, cells, verb="formats"), lambda: rows)
