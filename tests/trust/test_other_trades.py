"""Texts of other trades, which every machine is full of: never an all-clear, and no cause for the sake of a word."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.understanding import is_document
from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
CHANGES = [
    "parser: a potential illegal memory access when a header is cut",
    "tests no longer need /dev/shm, which was too small in containers",
    "fixed a segmentation fault in the resolver",
    "the daemon timed out while it waited for its workers",
    "use less memory; the cache could run out of memory on small machines",
    "killed processes leave no lock behind",
    "a connection reset by peer is tried again",
    "stemming is kept between runs: saves about 20 seconds when the manual is built",
    "KeyError: 'HOME' when it was started by the service manager (#5928)",
]


def changelog(entries: int) -> str:
    """As long as such files are, each entry a little different."""
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi".split()
    return "".join(
        f"\n** release {n // 9}.{n % 9} ({words[n % 14]} {words[n * 5 % 13]})\n   - {words[n * 3 % 11]}: "
        f"{CHANGES[n % len(CHANGES)]} ({words[n % 5]})\n   - {words[n * 7 % 14]} learned --{words[n * 2 % 9]}-{words[n % 11]}\n"
        for n in range(entries)
    )


@pytest.mark.parametrize("entries", [300, 3000])
def test_a_changelog_is_no_incident(entries: int, tmp_path: Path) -> None:
    (tmp_path / "NEWS").write_text(changelog(entries))
    try:
        found = diagnose(str(tmp_path / "NEWS"), cache=False)
    except StallwiseError:
        return
    assert found.state is State.UNCLEAR, found.ranked


def test_a_log_is_no_document_and_its_messages_are_heard(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    rows = [f"step {n} loss {2 - n / 1000:.3f} time {0.1 + n % 7 / 100:.2f}s" for n in range(900)]
    path.write_text("\n".join([*rows, "RuntimeError: CUDA error: an illegal memory access was encountered"]))
    assert not is_document(Artifact("train.log", path))
    assert "application-fault" in diagnose(str(path), cache=False).ranked
    told = tmp_path / "stderr.txt"  # unlike any line before it, and without a stamp: still a message
    told.write_text(changelog(300) + "RuntimeError: CUDA error: an illegal memory access was encountered\n")
    assert "application-fault" in diagnose(str(told), cache=False).ranked


def test_nothing_of_an_ordinary_system_is_healthy() -> None:
    files = sorted(LIBRARY.glob("*.py"))[::14] + sorted(LIBRARY.glob("*/*.txt"))[:4]
    assert len(files) > 5
    for file in files:
        try:
            assert diagnose(str(file), cache=False, workers=1).state is not State.HEALTHY, file
        except StallwiseError:
            continue
