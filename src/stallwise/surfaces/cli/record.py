"""Run a job with the recorder inside it and keep what it leaves."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

from stallwise.errors import StallwiseError


def options(command: Any) -> Any:
    """What `record` and `run` share."""
    for option in (
        click.argument("command_line", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND..."),
        click.option("--light", is_flag=True, help="Stage timers only: no profiler, almost no cost."),
        click.option(
            "--steps",
            metavar="A:B",
            help="Trace these steps in full (default: four after the loop has settled, more where they are short).",
        ),
        click.option(
            "-o", "--output", "folder", default=None, help="Folder for the bundle (default stallwise_run/TIME)."
        ),
    ):
        command = option(command)
    return command


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="Examples: stallwise record -- python train.py; stallwise record -- torchrun --nproc-per-node 8 train.py",
)
@options
@click.option("--json", "as_json", is_flag=True, help="Say where the bundle is as JSON.")
def command(command_line: tuple[str, ...], light: bool, steps: str | None, folder: str | None, as_json: bool) -> None:
    """Run COMMAND unchanged, record a few steps of every rank, and keep logs, GPU samples and dumps in one folder."""
    code, where = record(command_line, light=light, steps=steps, folder=folder)
    try:
        if as_json:
            import json

            click.echo(json.dumps({"bundle": where if recorded(where) else None, "exit_code": code}))
        elif recorded(where):
            click.echo(f"stallwise: recorded into {where}; next: stallwise diagnose {where}", err=True)
    finally:
        leave(code)


def record(command_line: tuple[str, ...], *, light: bool, steps: str | None, folder: str | None) -> tuple[int, str]:
    """The job's exit code and the bundle's folder."""
    import time

    from stallwise.errors import BadRequest
    from stallwise.recorder.launch import launch
    from stallwise.recorder.profile_window import parse_steps

    try:
        chosen = parse_steps(steps)
    except ValueError as error:
        raise BadRequest(f"'{steps}' is not a range of steps", hint="write it like --steps 10:14") from error
    if chosen is not None and not 0 < chosen[0] <= chosen[1]:
        raise BadRequest(f"steps {chosen[0]} to {chosen[1]} make no range", hint="write it like --steps 10:14")
    where = folder or time.strftime("stallwise_run/%Y%m%d-%H%M%S")
    code = launch(command_line, where, steps, light)
    for line in [*not_recorded(where, light), *profiler_costs(where)]:
        click.echo(f"stallwise: {line}", err=True)
    return code, where


def not_recorded(where: str, light: bool) -> list[str]:
    """What the bundle lacks and why, so that nobody takes its silence for health."""
    from pathlib import Path

    try:
        if not recorded(where):
            return []  # said already
        files = [p for p in sorted(Path(where).glob("rank-*.jsonl")) if p.is_file()]
        records = [p.read_text(encoding="utf-8", errors="replace") for p in files]
        reached = Path(where, "processes.jsonl")
        seen = reached.read_text(encoding="utf-8", errors="replace") if reached.exists() else ""
    except OSError:
        return []
    if not records:
        if not seen:
            return [
                "nothing was recorded inside the job: no Python of it was reached (not Python, or python -I, -S, -E)"
            ]
        if '"what": "torch"' not in seen and '"what": "jax"' not in seen:
            return ["no step was recorded: no process of the job imported torch or jax; its output is all there is"]
        return [
            "no step was recorded: nothing the recorder knows repeats in this program (mark steps with stallwise.step())"
        ]
    if light or any('"k":"window"' in text for text in records):
        return []
    if '"what": "torch"' not in seen and '"what": "jax"' not in seen:
        return ["no trace: no process of the job imported torch or jax"]
    reasons = {r for text in records for r in _reasons(text)} or {"the job ended before its steps had settled"}
    return [f"no trace: {reason}" for reason in sorted(reasons)]


def _reasons(text: str) -> list[str]:
    import json

    found = []
    for line in text.splitlines():
        if line.startswith('{"k":"mark","name":"no trace"'):
            try:
                found.append(str(json.loads(line)["note"]))
            except (ValueError, KeyError):
                continue
    return found


def profiler_costs(where: str) -> list[str]:
    """What the profiler took beside the job's own steps, one line a window of the first rank."""
    import json
    from pathlib import Path

    found = []
    try:
        file = Path(where, "rank-00000.jsonl")
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else ():
            if line.startswith('{"k":"window"'):
                w = json.loads(line)
                steps = f"steps {w['first']}-{w['last']}" if w["first"] >= 0 else "a moment"
                found.append(
                    f"the {w['window']} window traced {steps}; starting it took {w['start_s']:.2f} s and stopping it "
                    f"{w['stop_s']:.2f} s, once, beside the steps"
                )
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return found


def recorded(where: str) -> bool:
    """A bundle is there."""
    from pathlib import Path

    from stallwise.recorder.launch import BUNDLE

    return Path(where, BUNDLE).exists()


def leave(code: int) -> None:
    """Ends as the job ended: the same exit code, or the same signal. No second core file."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, StallwiseError):
            continue
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(code)  # nothing of ours may change it any more
