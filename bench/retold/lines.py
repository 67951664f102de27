"""Lines in other clothes: what carried them puts its own marks around them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta

from .files import File, is_printed, is_text, of_each

WIDTH = 100
BEGAN = datetime(2026, 3, 2, 10, 0, 0)


def _stamped(f: File) -> list[tuple[datetime, str]]:
    """The lines with the time at which they came: their own where they tell one, else that of the line before."""
    clock, day, lines = BEGAN, BEGAN, []
    for line in f.text.splitlines():
        date = re.search(r"\b(20\d\d)[-/](\d\d)[-/](\d\d)\b", line[:40])
        if date:
            day = datetime(*map(int, date.groups()))  # type: ignore[arg-type]
        own = re.search(r"(?<![\d:<])([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d{1,6}))?", line[:40])
        if own:
            hour, minute, second = (int(own[i]) for i in (1, 2, 3))
            clock = day.replace(hour=hour, minute=minute, second=second, microsecond=int((own[4] or "0").ljust(6, "0")))
        else:
            clock += timedelta(microseconds=7)
        lines.append((clock, line))
    return lines


def _before(prefix: Callable[[datetime], str]) -> Callable[[File], File]:
    return lambda f: f.said("".join(prefix(at) + line + "\n" for at, line in _stamped(f)))


@of_each(is_printed)
def compose(f: File) -> File:
    """docker compose logs."""
    return _before(lambda at: "worker-1  | ")(f)


@of_each(is_printed)
def kubectl_stamps(f: File) -> File:
    """kubectl logs --timestamps."""
    return _before(lambda at: f"{at.isoformat(timespec='microseconds')}123Z ")(f)


@of_each(is_printed)
def ts(f: File) -> File:
    """`| ts '[%H:%M:%.S]'`."""
    return _before(lambda at: f"[{at.time().isoformat(timespec='microseconds')}] ")(f)


@of_each(is_printed)
def mpirun_tags(f: File) -> File:
    """mpirun --tag-output."""
    return _before(lambda at: "[1,0]<stdout>: ")(f)


@of_each(is_printed)
def srun_label(f: File) -> File:
    """srun --label."""
    return _before(lambda at: "0: ")(f)


@of_each(is_printed)
def syslog(f: File) -> File:
    """Lines of a service in the system's log."""
    return _before(lambda at: f"{at:%b} {at.day:2d} {at:%H:%M:%S} gpu-node-3 train.sh[48211]: ")(f)


@of_each(is_printed)
def quoted(f: File) -> File:
    """A quotation in a mail."""
    body = "".join(f"> {line}\n" for line in f.text.splitlines())
    return f.said("On Tue, Mar 3, 2026 at 9:12 AM Kim wrote:\n" + body + "\n--\nKim\n", ".txt")


@of_each(is_printed)
def indented_block(f: File) -> File:
    """A block of code in an issue, by indentation."""
    body = "".join(f"    {line}\n" for line in f.text.splitlines())
    return f.said("### Output\n\n" + body + "\nAnything else needed? Just ask.\n", ".md")


@of_each(is_printed)
def journal_json(f: File) -> File:
    """journalctl -o json."""
    fields = {
        "_HOSTNAME": "gpu-node-3",
        "PRIORITY": "6",
        "_PID": "48211",
        "SYSLOG_IDENTIFIER": "train.sh",
        "_TRANSPORT": "stdout",
    }
    rows = ({"__REALTIME_TIMESTAMP": str(_micros(at)), **fields, "MESSAGE": line} for at, line in _stamped(f))
    return f.said("".join(json.dumps(row) + "\n" for row in rows), ".json")


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@of_each(is_printed)
def coloured(f: File) -> File:
    """Colour on levels and numbers, as rich prints them."""
    levels = re.sub(r"\b(INFO|WARNING|WARN|ERROR|DEBUG)\b", "\x1b[32m\\1\x1b[0m", f.text)
    return f.said(re.sub(r"(?<![\w.\[;])(\d+(?:\.\d+)?)(?![\w.])", "\x1b[1;36m\\1\x1b[0m", levels))


@of_each(is_printed)
def typescript(f: File) -> File:
    """What `script` records."""
    body = f.text.replace("\r\n", "\n").replace("\n", "\r\n")
    start = 'Script started on 2026-03-02 10:00:00+00:00 [TERM="xterm-256color" TTY="/dev/pts/3" COLUMNS="211" LINES="52"]\n'
    return f.said(
        start
        + "\x1b[?2004h"
        + body
        + '\x1b[?2004l\r\nScript done on 2026-03-02 12:00:00+00:00 [COMMAND_EXIT_CODE="0"]\n'
    )


@of_each(is_printed)
def word_processor(f: File) -> File:
    """Curly quotes, dots in one letter, spaces that do not break before units."""
    text = re.sub(r'"([^"\n]*)"', "\u201c\\1\u201d", f.text)
    text = re.sub(r"(?<=\w)'(?=\w)", "\u2019", text)
    return f.said(re.sub(r"(?<=\d) (?=(?:ms|s|us|GB|GiB|MB|MiB|W|MHz|%)\b)", "\u00a0", text.replace("...", "\u2026")))


@of_each(is_printed)
def doubled_blanks(f: File) -> File:
    """An empty line after every line."""
    return f.said("".join(line + "\n\n" for line in f.text.splitlines()))


@of_each(is_printed)
def trailing_prompt(f: File) -> File:
    """What stands below, when somebody copies a terminal."""
    return f.said(f.text.rstrip("\n") + "\nkim@gpu-node-3:~/work$ exit\nlogout\n")


@of_each(is_text)
def tabs(f: File) -> File:
    """Trailing blanks and tabs instead of eight spaces at the beginning."""
    return f.said(
        "".join(re.sub(r"^(?: {8})+", lambda m: "\t" * (len(m[0]) // 8), x) + "  \n" for x in f.text.splitlines())
    )
