"""A mail is its subject and body, and a text is read in whatever encoding it is stored."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from stallwise.doctor.find import find
from stallwise.evidence.artifact import Artifact, stored_as
from stallwise.readers.shapes.unwrap import plain

LOG = "step 1 loss 2.5\nstep 2 loss 2.25\nerror: Überlauf\n"


def _mail() -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "kim@example.org", "lee@example.org", "the run is slow"
    mail.set_content("Hello,\n\nboth files hang here.\n")
    return mail


def test_a_mail_that_only_says_something_stays_one_text(tmp_path: Path) -> None:
    (tmp_path / "m.eml").write_bytes(_mail().as_bytes())
    (artifact,), _ = find([str(tmp_path / "m.eml")])
    assert plain(artifact).text().startswith("the run is slow\n\nHello,")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_letters_are_known_by_how_they_are_stored(encoding: str) -> None:
    assert plain(Artifact("x.log", content=LOG.encode(encoding))).text() == LOG


@pytest.mark.parametrize("data", [b"", b"\x00" * 64, bytes(range(256)), b"a\x00\x00\x00" * 64, b"SQLite format 3\x00"])
def test_what_is_no_text_is_not_taken_for_one(data: bytes) -> None:
    assert stored_as(data) == "utf-8"
