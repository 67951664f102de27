"""Writes an answer that is no diagnosis into files; the ending picks the form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from stallwise.errors import BadRequest
from stallwise.render import strict_json as json
from stallwise.surfaces.cli._files_to_write import FileToWrite, write_file

KNOWN = ".html, .json or .txt"

ANSWER_FILE = FileToWrite((".html", ".htm", ".json", ".txt", ".log"), KNOWN)
output_option = click.option(
    "-o",
    "--output",
    "outputs",
    type=ANSWER_FILE,
    multiple=True,
    help=f"Also write the answer: {KNOWN}. Repeatable.",
)


def write_answer(
    outputs: Sequence[str], html: Callable[[], str], data: Callable[[], Any], text: Callable[[], str]
) -> None:
    """Each form is made only where it is asked for."""
    for output in outputs:
        path = Path(output)
        match path.suffix.lower():
            case ".html" | ".htm":
                written = html()
            case ".json":
                written = json.dumps(data(), indent=2, ensure_ascii=False, default=str) + "\n"
            case ".txt" | ".log" | "":
                written = text() + "\n"
            case other:
                raise BadRequest(f"no answer ends in '{other}'", hint=f"one of: {KNOWN}")
        write_file(path, written)
