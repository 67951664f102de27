"""A file of this text, asked about, and the answer as a person reads it."""

from __future__ import annotations

from pathlib import Path

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.text import to_text


def asked(folder: Path, name: str, content: str | bytes) -> Diagnosis:
    """The diagnosis of one file."""
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return diagnose(str(file), workers=1, cache=False)


def words(diagnosis: Diagnosis) -> str:
    """The answer in one line."""
    return " ".join(to_text(diagnosis, color=False).split())
