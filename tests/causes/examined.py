"""Texts in, verdicts out: what a test of a rule that reads logs needs."""

from __future__ import annotations

from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.gather import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Evidence


def diagnosis_of(files: dict[str, str | bytes] | str) -> Diagnosis:
    """The diagnosis of these files; a lone text is a log."""
    evidence = Evidence()
    for name, text in ({"run.log": files} if isinstance(files, str) else files).items():
        data = text.encode() if isinstance(text, str) else text
        formats, items = read_artifact(Artifact(name, content=data))
        evidence.inputs.append(name)
        evidence.formats += formats
        evidence.add(items)
    return examine(evidence)


def ranked(files: dict[str, str | bytes] | str) -> tuple[str, ...]:
    """Causes, best first."""
    return diagnosis_of(files).ranked


def calm(files: dict[str, str | bytes] | str) -> bool:
    """Nothing is called sick; whether health is proven is another matter."""
    return diagnosis_of(files).state is not State.SICK
