"""Say what stalls, why, and what fixing it is worth."""

from __future__ import annotations

import sys

import click

from stallwise.surfaces.cli._output import Output, print_options
from stallwise.surfaces.cli._report_file import REPORT_FILE, patch_option, show_diagnosis, write_patch, write_report


@click.command(
    epilog="Examples: stallwise diagnose trace.json.gz nvidia_smi.csv; stallwise diagnose RUN_DIR/ -o report.html; "
    "stallwise diagnose RUN_DIR/ -o annotated.json.gz (opens in ui.perfetto.dev); stallwise diagnose RUN_DIR/ --patch fix.patch; "
    "stallwise diagnose --fact mfu=0.22 mfu.before=0.48 gpu=h100 gpus=512; "
    'stallwise diagnose "8 GPUs are only 3x faster than one"; '
    'stallwise diagnose "training is slow" --ask; stallwise diagnose train.log --answer 2 --answer "only one rank is slow"'
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
@click.option("--ask", is_flag=True, help="Ask up to five questions in the terminal where the answer is not clear.")
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="TEXT",
    help="Answer the next question: a choice's number or words, your own words, or \"don't know\". Repeatable, in order.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=REPORT_FILE,
    multiple=True,
    help="Write a report: .html, .md, .json, .txt, .sarif, .xml (JUnit), annotated.json.gz (trace). Repeatable.",
)
@patch_option
@click.option("--share", is_flag=True, help="Replace keys, host names, paths, code, models and prompts by stand-ins.")
@click.option(
    "--fail-on",
    metavar="WHAT",
    help="Exit 1 on: 'any' finding, a CAUSE, a gain of at least SHARE (5%), or 'unclear': all that is not proven healthy.",
)
@click.option("--github", is_flag=True, help="Also print GitHub annotations and append to the step summary.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="Where many files are read.")
@click.option("--workers", type=click.IntRange(1), help="Processes to read with; default: all cores.")
@click.option(
    "--for", "live", default="0s", metavar="TIME", help="Read live addresses (http://HOST:PORT/metrics) this long: 30s."
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(0.001),
    help="Most seconds for one small file; larger ones get more. Default: 60.",
)
@click.option("--max-unpacked", metavar="SIZE", help="Most bytes that one archive may unpack to, such as 20GB.")
@click.option("--max-files", type=click.IntRange(1), help="Most files that are read; default: 100,000.")
@click.option(
    "--series", default="", metavar="NAME", help="Keep the run in the history under this name, not its folder's."
)
@click.option("--no-history", is_flag=True, help="Do not keep this run in the history.")
@click.option("--no-cache", is_flag=True, help="Read anew, even what was read before.")
@print_options
def command(
    paths: tuple[str, ...],
    facts: tuple[str, ...],
    clean_step: str | None,
    ask: bool,
    answers: tuple[str, ...],
    out: Output,
    patch: str | None,
    share: bool,
    fail_on: str | None,
    github: bool,
    engine: str,
    workers: int | None,
    live: str,
    max_seconds: float | None,
    max_unpacked: str | None,
    max_files: int | None,
    series: str,
    no_history: bool,
    no_cache: bool,
) -> None:
    """Read any mix of artifacts (files, folders, globs, '-', a complaint in words) and name the stage that stalls."""
    from stallwise.causes import all_rules
    from stallwise.doctor.examine import diagnose
    from stallwise.doctor.findings.threshold import threshold
    from stallwise.doctor.stating import split_words
    from stallwise.evidence.catalog import job
    from stallwise.evidence.limits import FILE_S, MOST_FILES, Limits
    from stallwise.units import Unit, parse

    places, words = split_words(paths, facts)
    if clean_step:
        words.append(f"step.clean_time={clean_step}")
    if not places and not words:
        raise click.UsageError("give a file, a folder, or --fact WORD=VALUE")
    put = None
    if ask:
        from stallwise.surfaces.cli._asked import asker

        put = asker()
    unpacked_bytes = int(parse(max_unpacked, Unit.BYTE)) if max_unpacked else 0
    limits = Limits(max_seconds or FILE_S, unpacked_bytes, max_files or MOST_FILES)
    limit = threshold(fail_on, frozenset(r.cause for r in all_rules())) if fail_on is not None else None
    diagnosis = diagnose(
        *places, facts=words, answers=answers, ask=put, engine=engine, workers=workers, cache=not no_cache,
        live_s=parse(live, Unit.SECOND), limits=limits,
    )  # fmt: skip
    if diagnosis.evidence.get(job.SCRIPT) is not None:
        from stallwise.surfaces.remarks import with_remarks

        diagnosis = with_remarks(diagnosis)
    if share:
        from stallwise.render.redact import shareable

        diagnosis = shareable(diagnosis)
    for output in out.outputs:
        write_report(diagnosis, output, places, share=share)
    if patch:
        write_patch(diagnosis, patch)
    show_diagnosis(diagnosis, out)
    if not no_history and not share:
        from stallwise.surfaces.cli._remembered import remembered

        remembered(diagnosis, places, series=series)
    if github:
        from stallwise.surfaces.cli._github import announce_findings

        announce_findings(diagnosis, beside_json=out.as_json)
    if limit is not None and (reason := limit.reached(diagnosis)):
        click.echo(f"failing: {reason}", err=True)
        sys.exit(1)
