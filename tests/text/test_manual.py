"""Manuals and release notes speak of troubles that nobody has; who tells of a run of their own does not."""

from __future__ import annotations

from pathlib import Path

from stallwise import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.readers.text.human_text import is_manual

MANUAL = """# Troubleshooting

If a card vanishes under load, read the kernel's log first.

## Lost cards

A GPU that has fallen off the bus points to the card, its slot or its power: the slot is the reason more often than not.

## Hot cards

Clean the fans; cards that are too hot throttle.
"""


def test_a_manual_is_nobodys_complaint(tmp_path: Path) -> None:
    (tmp_path / "troubleshooting.md").write_text(MANUAL, encoding="utf-8")
    assert is_manual(MANUAL)
    assert diagnose(tmp_path / "troubleshooting.md").state is State.UNCLEAR


def test_a_report_with_headings_is_somebodys() -> None:
    assert not is_manual(MANUAL.replace("If a card vanishes", "Since Monday our card vanishes"))
    assert not is_manual(MANUAL + "\nWhat should one look at next?\n")
    assert not is_manual("# run of 16 GPUs\nstep 1 loss 2.0\n# resumed\nstep 2 loss 1.9\n")
