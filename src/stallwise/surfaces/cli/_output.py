"""Where an answer goes: printed as text, Markdown or JSON, and into files whose ending picks the form. Every verb uses this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from stallwise.errors import BadRequest
from stallwise.render.blocks import Document
from stallwise.surfaces.cli._files_to_write import FileToWrite, write_file
from stallwise.surfaces.cli._fitted import colored

KNOWN = ".html, .md, .json or .txt"
ENDINGS = (".html", ".htm", ".md", ".markdown", ".json", ".txt", ".log")
ANSWER_FILE = FileToWrite(ENDINGS, KNOWN)

Laid = Callable[..., Document]  # the document of an answer; `deep=True` with all that only a page shows
Data = Callable[[], Any]  # the answer's own JSON


@dataclass(frozen=True)
class Output:
    """What was asked for on the command line."""

    outputs: tuple[str, ...] = ()
    as_json: bool = False
    as_markdown: bool = False

    def give(self, laid: Laid, data: Data, more: Mapping[str, Callable[[str], None]] | None = None) -> None:
        """Writes the files, then prints; each form is made only where it is asked for. `more`: endings of the verb's own."""
        for output in self.outputs:
            suffix = Path(output).suffix.lower()
            if more and suffix in more:
                more[suffix](output)
            else:
                write_file(output, written(suffix, laid, data))
        self.show(laid, data)

    def show(self, laid: Laid, data: Data) -> None:
        """Prints one form."""
        if self.as_json:
            click.echo(in_json(laid, data))
        elif self.as_markdown:
            click.echo(written(".md", laid, data), nl=False)
        else:
            from stallwise.render.text import to_text

            click.echo(to_text(laid(), color=colored()), color=colored())


def answer_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """-o, --md and --json: the command gets them as `out`."""
    option = click.option(
        "-o",
        "--output",
        "outputs",
        type=ANSWER_FILE,
        multiple=True,
        help=f"Also write the answer: {KNOWN}. Repeatable.",
    )
    return option(print_options(function))


def print_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command whose -o is something else, or is its own."""

    @wraps(function)
    def with_output(*args: Any, as_json: bool, as_markdown: bool, outputs: Sequence[str] = (), **rest: Any) -> Any:
        return function(*args, out=Output(tuple(outputs), as_json, as_markdown), **rest)

    json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
    return json_option(
        click.option("--md", "as_markdown", is_flag=True, help="Print the answer as Markdown.")(with_output)
    )


def written(suffix: str, laid: Laid, data: Data) -> str:
    """The answer in the form of this ending."""
    if suffix in (".html", ".htm"):
        from stallwise.render.html import to_html

        return to_html(laid(deep=True))
    if suffix in (".md", ".markdown"):
        from stallwise.render.markdown import to_markdown

        return to_markdown(laid())
    if suffix == ".json":
        return in_json(laid, data) + "\n"
    if suffix in (".txt", ".log", ""):
        from stallwise.render.text import to_text

        return to_text(laid()) + "\n"
    raise BadRequest(f"no answer ends in '{suffix}'", hint=f"one of: {KNOWN}")


def in_json(laid: Laid, data: Data) -> str:
    """The answer's own keys, and the document beside them."""
    from stallwise.render import strict_json
    from stallwise.render.data import with_document

    return strict_json.dumps(with_document(data(), laid()), indent=2, ensure_ascii=False, default=str)
