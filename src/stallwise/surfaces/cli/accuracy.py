"""How often predicted gains came true: predictions against what `stallwise try` measured."""

from __future__ import annotations

import click

from stallwise.surfaces.cli._files_to_write import FileToWrite, writing

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
@click.option("-o", "--output", type=FileToWrite(), help="Write the rows into this CSV file, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows and shares as JSON.")
def command(folders: tuple[str, ...], from_trials: bool, output: str | None, as_json: bool) -> None:
    """Collect predicted and measured gains from bundles of `stallwise try`: which ranges held, and which way they miss."""
    import csv
    import json
    from pathlib import Path

    from stallwise.doctor.predictions import predictions_of
    from stallwise.errors import BadRequest
    from stallwise.render.predictions import to_dict, to_text

    if not from_trials:
        raise BadRequest(
            "nothing to compare with", hint="stallwise accuracy --from-trials FOLDER, with bundles of stallwise try"
        )
    bundles = sorted({file.parent for folder in folders for file in Path(folder).rglob("trials.json")})
    if not bundles:
        raise BadRequest(f"no trials in {', '.join(folders)}", hint="stallwise try -- python train.py makes them")
    found = predictions_of([str(b) for b in bundles])
    answer = to_dict(found)
    if output:
        with writing(output), Path(output).open("w", encoding="utf-8", newline="") as file:
            names = list(answer["rows"][0]) if answer["rows"] else ["bundle"]
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(answer["rows"])
    click.echo(json.dumps(answer, indent=2) if as_json else to_text(found))
