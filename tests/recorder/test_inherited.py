"""A job under `record` gets what its starter handed on: descriptors, closed streams, ignored signals, the end of a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stallwise.recorder.launch import runs_without_site

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="descriptors are POSIX")]
SOURCE = str(Path(__file__).parents[2] / "src")
RECORD = f"{sys.executable} -m stallwise record --light -o bundle --"


def shell(line: str, cwd: Path, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
    """A line of a shell, RECORD in it as the command that records."""
    env = {**os.environ, "PYTHONPATH": SOURCE, "RECORD": RECORD, "PY": sys.executable}
    return subprocess.run(["bash", "-c", line], cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout_s)


def test_descriptors_above_2_reach_the_job(tmp_path: Path) -> None:
    done = shell("$RECORD sh -c 'echo x >&3; cat <&4' 3>three 4< <(echo four)", tmp_path)
    assert done.returncode == 0 and (tmp_path / "three").read_text() == "x\n" and done.stdout == "four\n"


def test_nothing_of_ours_reaches_the_job(tmp_path: Path) -> None:
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"  # the last is the folder itself
    plain, recorded = (shell(f'{way} $PY -c "{code}" 5>five', tmp_path) for way in ("", "$RECORD"))
    if plain.returncode:
        pytest.skip("no /proc here")
    assert plain.stdout == recorded.stdout


def test_the_end_of_a_descriptor_is_the_jobs(tmp_path: Path) -> None:
    """Whoever reads from it sees its end when the job closes it, though we still run."""
    line = "{ $RECORD sh -c 'echo first >&3; exec 3>&-; sleep 20' 3>&1 >/dev/null 2>&1 & } | { cat; date +%s%N > end; }"
    shell(f'date +%s%N > begin; timeout 15 bash -c "{line.replace("$", chr(92) + "$")}"; true', tmp_path)
    begin, end = (int((tmp_path / name).read_text()) for name in ("begin", "end"))
    assert (end - begin) / 1e9 < 14


def test_a_job_hears_that_nobody_reads_its_output(tmp_path: Path) -> None:
    done = shell("$RECORD $PY -c 'for i in range(10**9): print(i)' 2>said | head -n 2; echo ${PIPESTATUS[0]}", tmp_path)
    plain = shell("$PY -c 'for i in range(10**9): print(i)' 2>/dev/null | head -n 2; echo ${PIPESTATUS[0]}", tmp_path)
    assert done.stdout == plain.stdout and "BrokenPipeError" in (tmp_path / "said").read_text()


@pytest.mark.parametrize(("closed", "name"), [("<&-", "stdin"), (">&-", "stdout"), ("2>&-", "stderr")])
def test_a_closed_stream_stays_closed(tmp_path: Path, closed: str, name: str) -> None:
    code = f"import sys, os; os._exit(0 if sys.{name} is None else 5)"
    assert shell(f"$RECORD $PY -c '{code}' {closed}", tmp_path).returncode == 0
    assert (tmp_path / "bundle" / "bundle.json").exists()


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    code = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    assert shell(f"trap '' INT; $RECORD $PY -c '{code}'", tmp_path).stdout == "True\n"
    assert shell(f"$RECORD $PY -c '{code}'", tmp_path).stdout == "False\n"


def test_a_python_without_site_has_its_own_path(tmp_path: Path) -> None:
    code = "import sys; print(sys.path)"
    plain, recorded = (shell(f"{way} $PY -S -c '{code}'", tmp_path) for way in ("", "$RECORD"))
    assert plain.stdout == recorded.stdout


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("python -S train.py", True),
        ("/usr/bin/python3.11 -uS train.py", True),
        ("python -X dev -S train.py", True),
        ("python train.py -S", False),
        ("python -m mod -S", False),
        ("python -c pass -S", False),
        ("python -Xdev -W ignore train.py -S", False),
        ("torchrun -S", False),
        ("python", False),
    ],
)
def test_the_flag_is_python_own(command: str, without: bool) -> None:
    assert runs_without_site(command.split()) is without
