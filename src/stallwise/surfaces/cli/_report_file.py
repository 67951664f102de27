"""Writes a diagnosis into a file; the extension picks the format."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stallwise.errors import BadRequest
from stallwise.surfaces.cli._files_to_write import FileToWrite, writing
from stallwise.surfaces.cli._output import Data, Laid, Output, written

if TYPE_CHECKING:
    from stallwise.doctor.findings.diagnosis import Diagnosis

KNOWN = (
    ".html, .md, .json, .txt, .sarif, .xml (JUnit), a name with 'trace' or 'annotated' ending in .json.gz, "
    "or one with 'merged': all ranks in one trace"
)

ENDINGS = (".html", ".htm", ".md", ".markdown", ".json", ".txt", ".log", ".sarif", ".xml", ".json.gz")
REPORT_FILE = FileToWrite(ENDINGS, KNOWN)


def write_report(diagnosis: Diagnosis, output: str, paths: Sequence[str], *, share: bool) -> None:
    """Raises BadRequest for an ending nobody knows."""
    path = Path(output)
    with writing(output):
        if "merged" in path.stem and path.name.endswith((".json", ".json.gz")):
            _merged(diagnosis, path, paths, share=share)
        elif path.name.endswith(".json.gz") or (path.suffix == ".json" and "annotated" in path.stem):
            _annotated(diagnosis, path, paths, share=share)
        else:
            path.write_text(rendered(diagnosis, path.suffix.lower()), encoding="utf-8")


def patch_option(command: Any) -> Any:
    """--patch: `diagnose` and `run` pass its file to `write_patch`."""
    says = (
        "Write what lint would change in your script against the first finding (patch -p0 < FILE); nothing is applied."
    )
    return click.option("--patch", metavar="FILE", type=FileToWrite(), help=says)(command)


def write_patch(diagnosis: Diagnosis, output: str) -> None:
    """The file is only written where there is something to change."""
    from stallwise.surfaces.remarks import patch_of

    if text := patch_of(diagnosis):
        with writing(output):
            Path(output).write_text(text, encoding="utf-8")
    else:
        about = diagnosis.findings[0].cause if diagnosis.findings else "this answer"
        click.echo(f"stallwise: no patch: lint has no safe change of the recorded script for {about}", err=True)


def rendered(diagnosis: Diagnosis, suffix: str) -> str:
    """The report in the form of this ending."""
    if suffix in (".sarif", ".xml"):
        from stallwise.render import strict_json
        from stallwise.render.ci import findings_junit, findings_sarif

        return findings_junit(diagnosis) if suffix == ".xml" else strict_json.dumps(findings_sarif(diagnosis), indent=2)
    if suffix and suffix not in ENDINGS:
        raise BadRequest(f"no report ends in '{suffix}'", hint=f"one of: {KNOWN}")
    return written(suffix, *_forms(diagnosis))


def show_diagnosis(diagnosis: Diagnosis, out: Output) -> None:
    """Prints one form."""
    out.show(*_forms(diagnosis))


def _forms(diagnosis: Diagnosis) -> tuple[Laid, Data]:
    from stallwise.render.documents.diagnosis import document

    return partial(document, diagnosis), lambda: _data(diagnosis)


def _data(diagnosis: Diagnosis) -> dict[str, Any]:
    from stallwise.render.json import to_dict  # what no terminal shows

    return to_dict(diagnosis)


def _merged(diagnosis: Diagnosis, path: Path, paths: Sequence[str], *, share: bool) -> None:
    from stallwise.doctor.merged import merged_events
    from stallwise.render.chrome_trace import write_merged

    if share:
        raise BadRequest("a merged trace holds all names of the job", hint="share -o report.html instead")
    write_merged(path, merged_events(diagnosis, paths))


def _annotated(diagnosis: Diagnosis, path: Path, paths: Sequence[str], *, share: bool) -> None:
    from stallwise.doctor.annotate import annotate
    from stallwise.render.chrome_trace import write_annotated

    artifact, slices = annotate(diagnosis, paths)
    if share:  # the user's own events are full of names; only ours go out
        write_annotated(path, slices, None)
        return
    with artifact.open() as original:
        write_annotated(path, slices, original)
