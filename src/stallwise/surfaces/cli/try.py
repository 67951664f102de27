"""Change one thing in a running job, with and without it in turn, and measure what it is worth."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from stallwise.surfaces.cli._output import ANSWER_FILE, Output

EXAMPLES = """
Examples:

\b
  stallwise try -- python train.py                        everything that applies, within two and a half minutes
  stallwise try --only compile,bf16-autocast -- python train.py
  stallwise try --keep-training -- python train.py        only what leaves the training as it is; the job goes on
  stallwise try --dry-run -- python train.py              what would be tried, and why not the rest
  stallwise try -- torchrun --nproc-per-node 8 train.py   all ranks together
  stallwise try --list                                    every trial
"""


@click.command(context_settings={"ignore_unknown_options": True}, epilog=EXAMPLES)
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--only", default="", metavar="NAME,...", help="Only these trials.")
@click.option("--skip", default="", metavar="NAME,...", help="All but these.")
@click.option("--keep-training", is_flag=True, help="Only trials that leave the training as it is; no rehearsal.")
@click.option("--dry-run", is_flag=True, help="Say what would be tried after a few steps, then end the job.")
@click.option("--seconds", default=150.0, show_default=True, help="Time for all trials, after the warm-up.")
@click.option(
    "--max-steps", default=0, type=click.IntRange(0), metavar="N", help="Steps of the job for all trials; 0: no limit."
)
@click.option("--memory", default=95.0, show_default=True, metavar="PERCENT", help="Of the device, for any trial.")
@click.option("--seed", default=0, show_default=True, help="Of the random order of blocks.")
@click.option("--repeat", default=1, show_default=True, help="Make each trial so many times.")
@click.option("--no-trace", is_flag=True, help="No profiler before the trials: the verdict rests on stages alone.")
@click.option("-o", "--output", "folder", default=None, help="Folder for the bundle (default stallwise_try/TIME).")
@click.option("--html", type=ANSWER_FILE, help="Also write what was measured as a page.")
@click.option(
    "--learn",
    envvar="STALLWISE_GAINS",
    type=click.Path(dir_okay=False),
    help="Add measured over predicted gains to this file of yours; STALLWISE_GAINS=FILE also lets later predictions use it.",
)
@click.option("--list", "listed", is_flag=True, help="List all trials and leave.")
@click.option("--md", "as_markdown", is_flag=True, help="Print what was measured as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the results and the diagnosis they join as JSON.")
def command(
    command_line: tuple[str, ...],
    listed: bool,
    folder: str | None,
    html: str | None,
    as_json: bool,
    as_markdown: bool,
    learn: str | None,
    **asked: Any,
) -> None:
    """Run COMMAND, change one thing at a time in alternating blocks of steps, and say what each is worth, measured.

    Trials that change the training make the run a rehearsal: no checkpoint is written, trackers are off, and the job ends
    after the trials with exit code 0.
    """
    from stallwise.errors import BadRequest
    from stallwise.experiment.options import Options
    from stallwise.experiment.trials import all_changes

    changes = all_changes()
    if listed:
        _list(changes, as_json)
        return
    if not command_line:
        raise BadRequest("no command to try", hint="stallwise try -- python train.py")
    wanted = _options(asked, {c.name for c in changes})
    options = Options(**wanted)
    if not options.chosen(changes):
        raise BadRequest(
            "no trial is left", hint="stallwise try --list shows them all, and which leave the training as it is"
        )
    where = _run(command_line, folder, wanted, options.rehearsal(changes))
    _finish(where, html, as_json, learn, as_markdown=as_markdown)


def _options(asked: dict[str, Any], known: set[str]) -> dict[str, Any]:
    from difflib import get_close_matches

    from stallwise.errors import BadRequest

    names = {which: [n.strip() for n in asked[which].split(",") if n.strip()] for which in ("only", "skip")}
    for name in (*names["only"], *names["skip"]):
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise BadRequest(f"there is no trial '{name}'", hint=f"{hint}stallwise try --list shows them all")
    if not 0 < asked["seconds"] <= 86400 or not 0 < asked["memory"] <= 100 or not 1 <= asked["repeat"] <= 1000:
        raise BadRequest("a budget of no use", hint="--seconds above 0, --memory of 1 to 100, --repeat of 1 to 1000")
    return {
        **names,
        "budget_s": asked["seconds"],
        "memory_share": asked["memory"] / 100,
        "dry_run": asked["dry_run"],
        "keep_training": asked["keep_training"],
        "seed": asked["seed"],
        "repeat": asked["repeat"],
        "trace": not asked["no_trace"],
        "max_steps": asked["max_steps"],
    }


def _list(changes: list[Any], as_json: bool) -> None:
    import json

    if as_json:
        rows = [{"name": c.name, "title": c.title, "alters_training": c.alters, "needs": c.needs} for c in changes]
        click.echo(json.dumps(rows, indent=2))
        return
    for c in changes:
        kept = "" if c.alters else "  (leaves the training as it is)"
        click.echo(f"{c.name:20} {c.title}{kept}")


def _run(line: tuple[str, ...], folder: str | None, wanted: dict[str, Any], rehearsal: bool) -> tuple[str, int]:
    import time

    where = folder or time.strftime("stallwise_try/%Y%m%d-%H%M%S")
    return where, tried(line, where, wanted, rehearsal)


def _finish(made: tuple[str, int], html: str | None, as_json: bool, learn: str | None, *, as_markdown: bool) -> None:
    """The answer, what is learned from it, and the job's own exit code whatever happens."""
    from stallwise.surfaces.cli.record import leave

    where, code = made
    try:
        _say(where, as_json, html, as_markdown=as_markdown)
        if learn:
            _learn(where, learn)
    finally:
        leave(code)


def _learn(where: str, file: str) -> None:
    """What was won over what was predicted, into the user's own file."""
    from pathlib import Path

    from stallwise.doctor.predictions import ratios_of
    from stallwise.physics.costs.gain_doubt import learn

    count = learn(Path(file), ratios_of(where))
    kept = f"{count} measured {'gain' if count == 1 else 'gains'} kept in {file}"
    click.echo(f"stallwise: {kept if count else 'nothing to learn: no conclusive trial of a replayed gain'}", err=True)


def tried(line: tuple[str, ...], where: str, wanted: dict[str, Any], rehearsal: bool) -> int:
    """Runs the job with its trials; its first steps are diagnosed beside it. The job's exit code."""
    import json

    from stallwise.experiment.rehearsal import VARIABLES
    from stallwise.recorder import autostart
    from stallwise.recorder.launch import launch
    from stallwise.surfaces.cli._first_verdict import WAIT_S, FirstVerdict

    for notice in _before(rehearsal, wanted, where):
        click.echo(f"stallwise: {notice}", err=True)
    wanted = {"verdict_s": 0.0 if wanted["dry_run"] else WAIT_S, **wanted}
    more = {autostart.TRY: json.dumps(wanted), **(VARIABLES if rehearsal else {})}
    with FirstVerdict(where):
        return launch(line, where, more=more)


def default_options() -> dict[str, Any]:
    """What `try` does where nothing is asked for."""
    found = {str(o.name): o.get_default(click.Context(command)) for o in command.params if isinstance(o, click.Option)}
    return _options(found, set())


def say_table(where: str) -> None:
    """The table of trials alone."""
    _say(where, False)


def _before(rehearsal: bool, wanted: dict[str, Any], where: str) -> list[str]:
    """Said before the job starts."""
    if wanted["dry_run"]:
        return [
            "a dry run: the job is looked at for some steps and then ended; it writes no checkpoint, trackers are off"
        ]
    if rehearsal:
        return [
            "this is a rehearsal: some trials change the training, so no checkpoint is written (torch.save and the like do "
            "nothing), trackers are off, event files go to a scratch folder, and the job ends after the trials with exit "
            "code 0",
            f"trials take {wanted['budget_s']:.0f} s at most after the warm-up; Ctrl-C undoes and leaves; results in {where}",
        ]
    return [f"no trial here changes the training: the job goes on to its own end; results in {where}"]


def _say(where: str, as_json: bool, html: str | None = None, *, as_markdown: bool = False) -> None:
    """The table and what it proves; trouble with it is one line."""
    from pathlib import Path

    from stallwise.errors import StallwiseError

    file = Path(where, "trials.json")
    if not file.is_file():
        click.echo("stallwise: nothing was tried: the job ended before its loop had settled, or has no steps", err=True)
        click.echo("  try: stallwise run -- COMMAND shows what can be recorded of it", err=True)
        return
    try:
        from stallwise.doctor.examine import diagnose
        from stallwise.render.documents.trials import document
        from stallwise.render.json import to_dict, trials_to_dict

        diagnosis = diagnose(where)
        trials = diagnosis.trials[0]
        out = Output((html,) if html else (), as_json, as_markdown)
        if not as_json:
            click.echo("")
        out.give(
            partial(document, trials, diagnosis),
            lambda: {**trials_to_dict(trials), "bundle": where, "diagnosis": to_dict(diagnosis)},
        )
        if not as_json:
            click.echo(f"\nthe whole diagnosis: stallwise diagnose {where}")
    except StallwiseError as error:
        click.echo(f"stallwise: {error.problem}", err=True)
        click.echo(f"  try: {error.hint}", err=True)
