"""Small CPU programs with a planted fault: are cause and line right under `stallwise run`, and under `stallwise attach`?

    python bench/score_lines.py EXPECT.jsonl [--attach] [--each] [--program 'stallwise'] [--python PYTHON]

EXPECT.jsonl has an object a program: `file` (beside it), `accept` (causes), `line`, `line_also`, `needs` (packages). A program runs
in a folder of its own. Prints totals; `--each` names the programs and their first answers, `--keep` keeps the bundles.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

LONGEST_S = 240.0
STARTED_S = 8.0  # of a program before it is looked at: imports are over
LOOK = "8s"


def main() -> None:
    """Runs every program and prints how many answers were right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expect", type=Path)
    parser.add_argument("--attach", action="store_true")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--program", default="stallwise")
    parser.add_argument("--python", default="python")
    given = parser.parse_args()
    expected = [json.loads(text) for text in given.expect.read_text().splitlines() if text.strip()]
    expected = [want for want in expected if not given.only or want["id"] in given.only]
    answered = attached if given.attach else recorded
    causes = lines = with_line = 0
    for want in expected:
        program = given.expect.parent / want["file"]
        with tempfile.TemporaryDirectory() as outer:
            folder = Path(outer)
            shutil.copy(program, folder / program.name)
            got = answered(shlex.split(given.program), given.python, program.name, folder)
            if given.keep:
                shutil.copytree(folder, given.keep / want["id"], dirs_exist_ok=True)
        cause, line = judged(want, got)
        causes, lines, with_line = causes + cause, lines + line, with_line + (want["line"] is not None)
        if given.each:
            found = (got.get("ranked") or [got.get("error", "")])[:3]
            print(want["id"], "cause" if cause else f"CAUSE {want['accept']}", "line" if line else f"LINE {want['line']}",
                  found, line_of(got), flush=True)  # fmt: skip
    print(f"cause {causes} of {len(expected)}, line {lines} of {with_line}")


def recorded(stallwise: list[str], python: str, name: str, folder: Path) -> dict[str, Any]:
    """The answer of `stallwise run`."""
    command = [*stallwise, "run", "--json", "-q", "-o", "bundle", "--", python, name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    return parsed(done)


def attached(stallwise: list[str], python: str, name: str, folder: Path) -> dict[str, Any]:
    """The answer of `stallwise attach` to the program as it runs."""
    with (folder / "output.txt").open("w") as output:
        job = subprocess.Popen([python, name], cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            time.sleep(STARTED_S)
            command = [*stallwise, "attach", str(job.pid), "--for", LOOK, "--json", "-q", "-o", "look"]
            return parsed(
                subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False)
            )
        finally:
            job.kill()
            job.wait()


def parsed(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON at the end of the output."""
    try:
        begins = next(at for at, text in enumerate(done.stdout.splitlines(True)) if text.startswith("{"))
        answer: dict[str, Any] = json.loads("".join(done.stdout.splitlines(True)[begins:]))
    except (ValueError, StopIteration):
        return {"error": (done.stderr or done.stdout)[-600:]}
    return answer.get("diagnosis", answer)


def line_of(got: dict[str, Any]) -> dict[str, Any]:
    """Of the first finding, or of the answer as a whole."""
    return next((f.get("code_line") for f in got.get("findings", [])[:1]), None) or got.get("code_line") or {}


def judged(want: dict[str, Any], got: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the first cause is right, and the line that the answer names."""
    line = line_of(got)
    right = line.get("line") in (want["line"], *want.get("line_also", ()))
    right = right and want["line"] is not None and Path(str(line.get("file"))).name == Path(want["file"]).name
    return (got.get("ranked") or [""])[0] in want["accept"], right


if __name__ == "__main__":
    main()
