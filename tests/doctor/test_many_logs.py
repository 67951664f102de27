"""Many logs at once: what a file leaves behind is its facts, neither its letters nor its words, and long courses have a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from stallwise.doctor.budget import LEFT_POINTS, Budget
from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import run
from stallwise.evidence.fact import Note, Series, Source

FEW, MANY = 40, 240
LINES = 80
MOST_KB = 24  # that one more log may add; each has 60 KB of letters, and 12 KB of facts and courses


def test_many_logs_in_bounded_memory(tmp_path: Path) -> None:
    padding = " ".join(f"word{n}" for n in range(100))
    body = "".join(f"step {s} loss {3 - s / 1000:.3f} step_time 0.{400 + s % 7}s {padding}\n" for s in range(LINES))
    for folder, count in (("few", FEW), ("many", MANY)):
        (tmp_path / folder).mkdir()
        for rank in range(count):
            (tmp_path / folder / f"rank{rank}.log").write_text(body)
    code = (
        "import re\n"
        "from stallwise.doctor.gather import gather\n"
        "for folder in ('few', 'many'):\n"
        f"    evidence = gather([{str(tmp_path)!r} + '/' + folder], cache=False, workers=1)\n"
        "    peak_kb = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "    print(len(evidence.inputs), peak_kb)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    few, few_kb, many, many_kb = map(int, done.stdout.split())
    assert (few, many) == (FEW, MANY)
    assert (many_kb - few_kb) / (MANY - FEW) < MOST_KB


def test_words_of_all_files_are_kept_once(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"rank{n}.log").write_text(f"step {n} loss 2.0 step_time 0.5s\nplain words number{n}\n" * 20)
    evidence = gather([str(tmp_path)], cache=False, workers=1)
    assert {"plain", "word"} <= evidence.stems


def test_courses_beyond_the_budget_keep_their_level_and_forbid_an_all_clear() -> None:
    x = np.arange(10_000, dtype=float)
    course = Series(run.LOSS, x, 2.0 + x / 1e4, Source("a.log"))
    whole, thinned, note = Budget(len(x)).held([course, course], "a.log")
    assert whole is course
    assert isinstance(thinned, Series) and isinstance(note, Note)
    assert len(thinned.x) <= LEFT_POINTS and abs(np.median(thinned.values) - np.median(course.values)) < 1e-3
    assert note.lost
