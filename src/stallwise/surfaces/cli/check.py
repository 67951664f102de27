"""Hold a run against the budgets in stallwise.toml; exit 1 when one is broken."""

from __future__ import annotations

import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._files_to_write import FileToWrite, write_file
from stallwise.surfaces.cli._output import Output, answer_options

SETTINGS = "stallwise.toml"
EXAMPLE = """[budgets]
step_time = "130ms"
exposed_communication = "5%"
input_wait = "2%"
peak_memory = "75GiB"
ttft = "500ms"
mfu = ">= 40%"

[check]
paths = ["traces/"]
fail_on = "any"
"""


@click.command(
    epilog="Examples: stallwise check runs/latest/; stallwise check --github --junit budgets.xml; "
    "stallwise check --example > stallwise.toml"
)
@click.argument("paths", nargs=-1)
@click.option("--config", type=click.Path(), help=f"Settings; default: the nearest {SETTINGS} upwards from here.")
@click.option("--github", is_flag=True, help="Print GitHub annotations and append to the step summary.")
@click.option("--junit", type=FileToWrite(), help="Also write a JUnit file.")
@click.option("--sarif", type=FileToWrite(), help="Also write the findings as SARIF.")
@click.option("--strict", is_flag=True, help="A budget that nothing here measures counts as broken.")
@click.option("--example", is_flag=True, help=f"Print a {SETTINGS} to start from.")
@answer_options
def command(
    paths: tuple[str, ...],
    config: str | None,
    github: bool,
    junit: str | None,
    sarif: str | None,
    strict: bool,
    example: bool,
    out: Output,
) -> None:
    """Diagnose PATHS (default: [check] paths of the settings) and compare with the budgets."""
    if example:
        import tomllib

        click.echo(json.dumps(tomllib.loads(EXAMPLE), indent=2) if out.as_json else EXAMPLE.rstrip("\n"))
        return
    from stallwise.causes import all_rules
    from stallwise.doctor.examine import diagnose
    from stallwise.doctor.findings.budget import judge, read_budgets
    from stallwise.doctor.findings.threshold import threshold
    from stallwise.errors import BadRequest

    file, text, settings = read_settings(config)
    budgets = read_budgets(settings, text)
    wanted: dict[str, Any] = settings.get("check", {}) if isinstance(settings.get("check", {}), dict) else {}
    places = list(paths) or [str(file.parent / p) for p in wanted.get("paths", [])]
    fail_on = str(wanted.get("fail_on", ""))
    if not places:
        raise BadRequest("there is nothing to check", hint="stallwise check RUN_DIR/, or paths under [check]")
    if not budgets and not fail_on:
        raise BadRequest(f"{file} has no budgets", hint="stallwise check --example prints some")
    limit = threshold(fail_on, frozenset(r.cause for r in all_rules())) if fail_on else None
    diagnosis = diagnose(*places)
    verdicts = judge(budgets, diagnosis)
    reason = limit.reached(diagnosis) if limit is not None else ""
    unknown = [v for v in verdicts if v.seen is None]
    failed = bool(reason) or any(v.broken for v in verdicts) or (strict and bool(unknown))
    from stallwise.render.documents.budgets import data, document

    answer = (verdicts, failed, reason)
    out.give(partial(document, *answer), partial(data, *answer, diagnosis.ranked))
    if junit:
        from stallwise.render.ci import budgets_junit

        write_file(junit, budgets_junit(verdicts))
    if sarif:
        from stallwise.render.ci import findings_sarif

        write_file(sarif, json.dumps(findings_sarif(diagnosis), indent=2))
    if github:
        from stallwise.render.ci import budgets_github, budgets_markdown
        from stallwise.surfaces.cli._github import announce_findings, append_summary

        if lines := budgets_github(verdicts, str(file)):
            click.echo(lines, err=out.as_json)
        append_summary(budgets_markdown(verdicts))
        announce_findings(diagnosis, beside_json=out.as_json)
    sys.exit(1 if failed else 0)


def read_settings(config: str | None) -> tuple[Path, str, dict[str, Any]]:
    """The settings file, its text and what it says; the nearest upwards where none is named."""
    from stallwise.errors import BadRequest

    here = Path.cwd()
    file = (
        Path(config)
        if config
        else next((p / SETTINGS for p in (here, *here.parents) if (p / SETTINGS).is_file()), None)
    )
    if file is None:
        raise BadRequest(f"there is no {SETTINGS} here or above", hint=f"stallwise check --example > {SETTINGS}")
    try:
        text = file.read_text(encoding="utf-8")
        return file, text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"cannot read {file}", hint="name a TOML file with --config") from error
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"{file} is not TOML: {error}", hint="stallwise check --example shows the form") from error
