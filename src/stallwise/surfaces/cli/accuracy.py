"""How often predicted gains came true: predictions against what `stallwise try` measured."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from stallwise.surfaces.cli._files_to_write import FileToWrite, writing
from stallwise.surfaces.cli._output import ENDINGS, KNOWN, Output, print_options

EXAMPLES = """
Examples:

\b
  stallwise accuracy --from-trials stallwise_try/            every bundle below a folder
  stallwise accuracy --from-trials a/ b/ -o gains.csv        and keep the rows
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--from-trials", "from_trials", is_flag=True, help="Compare predictions with the trials of the same jobs."
)
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "-o",
    "--output",
    "outputs",
    type=FileToWrite((".csv", *ENDINGS), f".csv (the rows), {KNOWN}"),
    multiple=True,
    help=f"Also write the answer: .csv (the rows), {KNOWN}. Repeatable.",
)
@print_options
def command(folders: tuple[str, ...], from_trials: bool, out: Output) -> None:
    """Collect predicted and measured gains from bundles of `stallwise try`: which ranges held, and which way they miss."""
    from pathlib import Path

    from stallwise.doctor.predictions import predictions_of
    from stallwise.errors import BadRequest
    from stallwise.render.documents.predictions import data, document

    if not from_trials:
        raise BadRequest(
            "nothing to compare with", hint="stallwise accuracy --from-trials FOLDER, with bundles of stallwise try"
        )
    bundles = sorted({file.parent for folder in folders for file in Path(folder).rglob("trials.json")})
    if not bundles:
        raise BadRequest(f"no trials in {', '.join(folders)}", hint="stallwise try -- python train.py makes them")
    found = predictions_of([str(b) for b in bundles])
    answer = data(found)
    out.give(partial(document, found), lambda: answer, {".csv": partial(_csv, answer["rows"])})


def _csv(rows: list[dict[str, Any]], output: str) -> None:
    import csv
    from pathlib import Path

    with writing(output), Path(output).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["bundle"])
        writer.writeheader()
        writer.writerows(rows)
