"""A short memory of runs on this machine: how fast each was and what stalled it, so that a regression shows next week.

One file of plain lines that only its owner can read, in $XDG_DATA_HOME/stallwise/history.jsonl. It holds when, where, the
measure and the first cause of a run, nothing of its contents. STALLWISE_HISTORY=off keeps none, STALLWISE_HISTORY=FILE moves it.
A series is a command line in one folder, or files of one name in one folder; runs of it are compared where they did the same work.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.trend import Moved, RunPoint, Trend
from stallwise.doctor.levels import last_against
from stallwise.doctor.same_work import Work, same_work, work_of
from stallwise.doctor.speed import speeds_of
from stallwise.doctor.trend import judged
from stallwise.units import Unit

MOST_OF_A_SERIES = 100
MOST_IN_ALL = 1000
LONGEST_NAME = 200
WEEK = timedelta(days=7)
FEWEST_BEFORE = 2  # runs that make a level to stand against
PROJECT_MARKS = (".git", "pyproject.toml", "stallwise.toml")  # what lies at the top of a project


@dataclass(frozen=True, slots=True)
class Kept:
    """One run as it is remembered."""

    when: str  # UTC
    series: str  # which runs it belongs to: a command line, or the name of files
    run: str
    key: str  # the same files again are the same run
    metric: str
    value: float | None
    unit: str
    rate: bool
    state: str
    cause: str
    sure: float
    folder: str = ""  # where the command was run, or the files lie; series of other folders are other series
    project: str = ""  # where the question was asked
    work: Work = field(default_factory=dict)


def project_of(folder: Path) -> Path:
    """The top of the project that a folder belongs to; the folder itself where nothing marks one."""
    return next((p for p in (folder, *folder.parents) if any((p / mark).exists() for mark in PROJECT_MARKS)), folder)


def place() -> Path | None:
    """The file, or none where no history is wanted."""
    asked = os.environ.get("STALLWISE_HISTORY", "")
    if asked.lower() in ("off", "0", "no", "false"):
        return None
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(asked) if asked else home / "stallwise" / "history.jsonl"


def remember(
    diagnosis: Diagnosis,
    series: str,
    run: str,
    now: datetime | None = None,
    *,
    folder: Path | None = None,
    of_a_file: bool = False,
) -> Moved | None:
    """Keeps a run and says whether it stands out of the week before; failing to is never an error."""
    file = place()
    if file is None:
        return None
    speed = next(iter(speeds_of(diagnosis).values()), None)
    first = next((f for f in diagnosis.findings if f.scope.kernel is None), None)
    entry = Kept(
        when=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        series=series[:LONGEST_NAME],
        run=run[:LONGEST_NAME],
        key=_key(diagnosis.evidence.inputs, run),
        metric=speed.words if speed else "",
        value=speed.value if speed else None,
        unit=speed.unit.value if speed else "",
        rate=bool(speed and speed.rate),
        state=diagnosis.state.value,
        cause=diagnosis.ranked[0] if diagnosis.ranked and not diagnosis.healthy else "",
        sure=first.confidence if first is not None else 0.0,
        folder=str(folder or project_of(Path.cwd())),
        project=str(project_of(Path.cwd())),
        work=work_of(diagnosis, of_a_file=of_a_file),
    )
    known = [k for k in load() if (k.key, k.series, k.folder) != (entry.key, entry.series, entry.folder)]
    with suppress(OSError):
        _write(file, _bounded([*known, entry]))
    return next((against_last_week(runs) for runs in series_of([*known, entry]) if runs[-1] is entry), None)


def series_of(runs: Sequence[Kept]) -> list[list[Kept]]:
    """Runs of one command or name in one folder that did the same work, oldest first; the series that ended last stands last."""
    found: dict[tuple[str, str], list[list[Kept]]] = {}
    for run in runs:
        named = found.setdefault((run.folder, run.series), [])
        group = next((g for g in named if same_work(g[-1].work, run.work)), None)
        if group is None:
            named.append([run])
        else:
            group.append(run)
    return sorted((g for named in found.values() for g in named), key=lambda g: g[-1].when)


def belongs_to(run: Kept, project: Path) -> bool:
    """Asked for in this project, or lying in it."""
    return run.project == str(project) or (bool(run.folder) and Path(run.folder).is_relative_to(project))


def load() -> list[Kept]:
    """All that is remembered, oldest first; lines of another version are passed over."""
    file = place()
    found = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file is not None else []
    except (OSError, UnicodeDecodeError):
        return []
    for line in lines:
        with suppress(ValueError, TypeError):
            kept = Kept(**json.loads(line))
            datetime.fromisoformat(kept.when), Unit(kept.unit or "s"), float(kept.value or 0.0), dict(kept.work)
            found.append(kept)
    return sorted(found, key=lambda k: k.when)


def forget(runs: Sequence[Kept]) -> int:
    """Removes these; says how many."""
    file, known = place(), load()
    left = [k for k in known if k not in runs]
    if file is not None and len(left) < len(known):
        _write(file, left)
    return len(known) - len(left)


def against_last_week(series: Sequence[Kept]) -> Moved | None:
    """The last run against those of the seven days before it, where it stands out of their noise."""
    kept_values = [k for k in series if k.value is not None and k.value > 0]
    if not kept_values:
        return None
    last = kept_values[-1]
    since = datetime.fromisoformat(last.when) - WEEK
    alike = [k for k in kept_values[:-1] if k.metric == last.metric and datetime.fromisoformat(k.when) >= since]
    if len(alike) < FEWEST_BEFORE:
        return None
    sign = -1.0 if last.rate else 1.0
    logs = np.array([sign * math.log(k.value or 1.0) for k in (*alike, last)])
    difference, against = last_against(logs)
    if against <= 1.0:
        return None
    before = math.exp(sign * float(logs[:-1].mean()))
    return Moved(last.metric, Unit(last.unit), last.value or 0.0, before, math.exp(difference), len(alike))


def trend_of(series: Sequence[Kept]) -> Trend:
    """The runs of one series as a trend, in the measure that most of them tell."""
    metrics = [k.metric for k in series if k.value is not None]
    metric = max(dict.fromkeys(metrics), key=metrics.count, default="")
    first = next((k for k in series if k.metric == metric and k.value is not None), None)
    points = tuple(RunPoint(k.run, k.value if k.metric == metric else None, k.state, k.cause, k.when) for k in series)
    return judged(metric, Unit(first.unit) if first else Unit.SECOND, bool(first and first.rate), points)


def _key(inputs: Iterable[str], run: str) -> str:
    """Files by name, size and time: the same ones again are the same run."""
    found = []
    for name in sorted(inputs):
        with suppress(OSError, ValueError):
            seen = Path(name).stat()
            found.append(f"{Path(name).absolute()} {seen.st_size} {seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(found or [run]).encode()).hexdigest()[:16]


def _bounded(entries: list[Kept]) -> list[Kept]:
    """The newest of each series, and of all."""
    kept, count = [], Counter[tuple[str, str]]()
    for entry in sorted(entries, key=lambda e: e.when, reverse=True):
        count[entry.folder, entry.series] += 1
        if count[entry.folder, entry.series] <= MOST_OF_A_SERIES:
            kept.append(entry)
    return kept[:MOST_IN_ALL][::-1]


def _write(file: Path, entries: list[Kept]) -> None:
    """All or nothing, and for the owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".history-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in entries)
        Path(temporary).replace(file)
    except OSError:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
