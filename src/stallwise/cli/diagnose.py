"""Say what stalls, why, and what fixing it is worth."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stallwise.findings.diagnosis import Diagnosis


@click.command(
    epilog="Examples: stallwise diagnose trace.json.gz nvidia_smi.csv; stallwise diagnose RUN_DIR/ -o report.md; "
    "stallwise diagnose --fact mfu=0.22 mfu.before=0.48 gpu=h100 gpus=512"
)
@click.argument("paths", nargs=-1)
@click.option(
    "--fact",
    "facts",
    multiple=True,
    metavar="WORD=VALUE",
    help="State a fact (stallwise facts lists the words); more WORD=VALUE pairs may follow without the option.",
)
@click.option(
    "--clean-step",
    metavar="TIME",
    help="The step time with no profiler attached (58ms): takes the profiler's own cost out of the trace.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write a report; the extension picks the format.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="Where many files are read.")
@click.option("--workers", type=click.IntRange(1), help="Processes to read with; default: all cores.")
@click.option(
    "--for", "live", default="0s", metavar="TIME", help="Read live addresses (http://HOST:PORT/metrics) this long: 30s."
)
@click.option("--no-cache", is_flag=True, help="Read anew, even what was read before.")
def command(
    paths: tuple[str, ...],
    facts: tuple[str, ...],
    clean_step: str | None,
    as_json: bool,
    output: str | None,
    engine: str,
    workers: int | None,
    live: str,
    no_cache: bool,
) -> None:
    """Read any mix of artifacts (files, folders, globs, '-') and name the stage that stalls."""
    from stallwise.doctor.examine import diagnose
    from stallwise.doctor.stating import split_words
    from stallwise.render.json import to_dict
    from stallwise.units import Unit, parse

    places, words = split_words(paths, facts)
    if clean_step:
        words.append(f"step.clean_time={clean_step}")
    if not places and not words:
        raise click.UsageError("give a file, a folder, or --fact WORD=VALUE")
    diagnosis = diagnose(
        *places, facts=words, engine=engine, workers=workers, cache=not no_cache, live_s=parse(live, Unit.SECOND)
    )
    if output:
        Path(output).write_text(_report(diagnosis, output), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(to_dict(diagnosis), indent=2, ensure_ascii=False))
        return
    from stallwise.render.text import to_text

    click.echo(to_text(diagnosis, color=sys.stdout.isatty() and "NO_COLOR" not in os.environ))


def _report(diagnosis: Diagnosis, output: str) -> str:
    """The report in the format that the file's ending asks for."""
    suffix = Path(output).suffix.lower()
    if suffix == ".json":
        from stallwise.render.json import to_dict

        return json.dumps(to_dict(diagnosis), indent=2, ensure_ascii=False) + "\n"
    if suffix in (".md", ".markdown"):
        from stallwise.render.markdown import to_markdown

        return to_markdown(diagnosis)
    from stallwise.render.text import to_text

    return to_text(diagnosis) + "\n"
