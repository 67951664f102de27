"""Look at a running job from outside: stacks, GPU samples, /proc; nothing is injected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stallwise.recorder.attach import Seen

MOST_LINES = 5


@click.command(
    epilog="Examples: stallwise attach 4711; stallwise attach 4711 --for 60s -o look/   "
    "(another user's process, or in a container: sudo, or --cap-add SYS_PTRACE)"
)
@click.argument("pid", type=int)
@click.option("--for", "duration", default="20s", show_default=True, help="How long to look.")
@click.option("-o", "--output", "folder", default=None, help="Folder for what is seen (default stallwise_run/TIME).")
@click.option("--json", "as_json", is_flag=True, help="What was seen and the diagnosis as JSON.")
def command(pid: int, duration: str, folder: str | None, as_json: bool) -> None:
    """Look at the process PID for a while and say which Python line holds its main thread and what the GPUs do meanwhile."""
    import json
    import time
    from dataclasses import asdict

    from stallwise.errors import BadRequest
    from stallwise.recorder import attach
    from stallwise.surfaces.cli.run import say
    from stallwise.units import Unit, parse

    if not attach.exists(pid):
        raise BadRequest(f"there is no process {pid} here", hint="find it: pgrep -f train.py, or nvidia-smi")
    seconds = parse(duration, Unit.SECOND)
    if not 1 <= seconds <= 3600:
        raise BadRequest(f"{duration} is no useful time to look", hint="between one second and an hour: --for 20s")
    where = folder or time.strftime("stallwise_run/%Y%m%d-%H%M%S")
    click.echo(f"stallwise: looking at {pid} for {seconds:.0f} s; it runs on undisturbed", err=True)
    try:
        seen = attach.attach(pid, where, seconds)
    except OSError as error:
        raise BadRequest(
            f"cannot write into {where}: {error.strerror}", hint="choose another folder: -o DIR"
        ) from error
    if as_json:
        from stallwise.doctor.examine import diagnose
        from stallwise.render.json import to_dict
        from stallwise.surfaces.remarks import with_remarks

        about = {k: v for k, v in asdict(seen).items() if k not in ("stacks", "workers", "memory")}
        lines = [{"line": line, "share": share} for line, share in holding(seen)]
        answer = to_dict(with_remarks(diagnose(where)))
        click.echo(json.dumps({"seen": {**about, "main_thread": lines}, "diagnosis": answer}))
        return
    click.echo("\n".join(_lines(seen)))
    say(where, False)


def holding(seen: Seen) -> list[tuple[str, float]]:
    """The user's own innermost lines of the main thread with their shares, most first."""
    from stallwise.evidence.user_lines import is_users

    stacks = seen.main
    by_line = Counter[str]()
    for stack, count in stacks.items():
        by_line[next((line for line in stack if is_users(line)), stack[0])] += count
    return [(line, count / stacks.total()) for line, count in by_line.most_common(MOST_LINES)]


def _lines(seen: Seen) -> list[str]:
    from stallwise.units import Unit, show

    size = show(float(seen.memory[-1][1]), Unit.BYTE) if seen.memory else "unknown bytes"
    read, written = show(seen.read_bytes_s, Unit.BYTE_PER_S), show(seen.written_bytes_s, Unit.BYTE_PER_S)
    waits = f", last seen waiting in the kernel at {seen.waits}" if seen.waits else ""
    rows = [
        f"process {seen.pid}: {seen.command[:100]}",
        f"  {seen.cores:.2f} cores busy, {size} of memory, {seen.threads} threads, reads {read}, writes {written}{waits}",
    ]
    if seen.why_no_stacks:
        return [*rows, f"  no stacks: {seen.why_no_stacks}"]
    rows.append(f"  main thread, {seen.main.total()} looks:")
    return rows + [f"  {share:5.0%}  {line}" for line, share in holding(seen)]
