"""Lines in other clothes: what carried them puts its own marks around them."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import textwrap
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
def folded_block(f: File) -> File:
    """A block of code that has to be opened, in an issue."""
    return f.said(
        f"<details>\n<summary>Full output</summary>\n\n```console\n{f.text.rstrip()}\n```\n\n</details>\n", ".md"
    )


@of_each(is_printed)
def saved_page(f: File) -> File:
    """A console's page, saved by the browser."""
    body = html.escape(f.text)
    return f.said(
        f"<!DOCTYPE html>\n<html><head><title>Console</title></head><body>\n<pre>{body}</pre>\n</body></html>\n",
        ".html",
    )


@of_each(is_printed)
def notebook(f: File) -> File:
    """The output of a notebook's cell."""
    stream = {"output_type": "stream", "name": "stdout", "text": f.text.splitlines(keepends=True)}
    cell = {"cell_type": "code", "execution_count": 3, "metadata": {}, "source": ["main()"], "outputs": [stream]}
    return f.said(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1), ".ipynb")


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
def cloudwatch(f: File) -> File:
    """aws logs get-log-events."""
    events = [
        {"timestamp": _micros(at) // 1000, "message": line, "ingestionTime": _micros(at) // 1000 + 812}
        for at, line in _stamped(f)
    ]
    return f.said(
        json.dumps({"events": events, "nextForwardToken": "f/3894", "nextBackwardToken": "b/3894"}, indent=4), ".json"
    )


@of_each(is_printed)
def loki(f: File) -> File:
    """What Loki answers."""
    stream = {
        "stream": {"app": "trainer", "pod": "trainer-0"},
        "values": [[f"{_micros(at)}000", x] for at, x in _stamped(f)],
    }
    return f.said(json.dumps({"status": "success", "data": {"resultType": "streams", "result": [stream]}}), ".json")


@of_each(is_printed)
def datadog(f: File) -> File:
    """An export of Datadog's list of logs."""
    rows = [
        {
            "id": f"AQ{i}",
            "type": "log",
            "attributes": {"timestamp": at.isoformat() + "Z", "service": "trainer", "message": x},
        }
        for i, (at, x) in enumerate(_stamped(f))
    ]
    return f.said(json.dumps({"data": rows}), ".json")


@of_each(is_printed)
def searched_csv(f: File) -> File:
    """A CSV that a search over logs exports."""
    out = io.StringIO()
    rows = [("_time", "host", "_raw"), *((at.isoformat(), "gpu-node-3", x) for at, x in _stamped(f) if x.strip())]
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    return f.said(out.getvalue(), ".csv")


@of_each(is_printed)
def numbered(f: File) -> File:
    """cat -n."""
    return f.said("".join(f"{i:6d}\t{line}\n" for i, line in enumerate(f.text.splitlines(), 1)))


@of_each(is_printed)
def grepped(f: File) -> File:
    """grep -Hn ''."""
    return f.said("".join(f"logs/{f.name}:{i}:{x}\n" for i, x in enumerate(f.text.splitlines(), 1)), ".txt")


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
def wrapped(f: File) -> File:
    """Lines broken at a hundred columns."""
    lines = []
    for line in f.text.splitlines():
        lines += textwrap.wrap(
            line, WIDTH, drop_whitespace=False, replace_whitespace=False, break_on_hyphens=False
        ) or [""]
    return f.said("\n".join(x.rstrip() for x in lines) + "\n")


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
