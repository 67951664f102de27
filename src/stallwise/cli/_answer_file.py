"""Writes an answer that is no diagnosis into files; the ending picks the form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from stallwise.doctor.given import on_disk
from stallwise.errors import BadRequest, StallwiseError
from stallwise.render import strict_json as json

KNOWN = ".html, .json or .txt"

output_option = click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(dir_okay=False),
    multiple=True,
    help=f"Also write the answer: {KNOWN}. Repeatable.",
)


def write_answer(
    outputs: Sequence[str], html: Callable[[], str], data: Callable[[], Any], text: Callable[[], str]
) -> None:
    """Each form is made only where it is asked for."""
    for output in outputs:
        path = Path(output)
        if not on_disk(str(path.parent)):
            raise BadRequest(f"there is no folder {path.parent}", hint="make it first, or write elsewhere")
        match path.suffix.lower():
            case ".html" | ".htm":
                written = html()
            case ".json":
                written = json.dumps(data(), indent=2, ensure_ascii=False, default=str) + "\n"
            case ".txt" | ".log" | "":
                written = text() + "\n"
            case other:
                raise BadRequest(f"no answer ends in '{other}'", hint=f"one of: {KNOWN}")
        try:
            path.write_text(written, encoding="utf-8")
        except OSError as error:
            raise StallwiseError(f"cannot write {output}: {error.strerror}", hint="choose another place") from error
