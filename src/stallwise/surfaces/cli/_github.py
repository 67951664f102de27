"""GitHub's ways to hear of something: annotations on stdout, a page in the step summary."""

from __future__ import annotations

import os
from pathlib import Path

import click

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.surfaces.cli._files_to_write import writing


def announce_findings(diagnosis: Diagnosis, *, beside_json: bool = False) -> None:
    """Annotations, and the whole report in the step summary where there is one. GitHub hears both streams; JSON has one alone."""
    from stallwise.render.ci import findings_github
    from stallwise.render.markdown import to_markdown

    if text := findings_github(diagnosis):
        click.echo(text, err=beside_json)
    append_summary(to_markdown(diagnosis))


def append_summary(markdown: str) -> None:
    """Adds to the file that GitHub names; silent elsewhere."""
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with writing(place), Path(place).open("a", encoding="utf-8") as stream:
            stream.write(markdown + "\n")
