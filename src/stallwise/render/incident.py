"""An incident in words and as plain data: first fault, what followed, owner, hosts to drain."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from stallwise.doctor.findings.incident import Clock, Incident, Part, Row

MOST_ROWS = 12
SENTENCE = 96  # characters
MOST_RANKS, MOST_CLOCKS = 6, 3
QUIET = ("-back", "-boot", "-aborted", "-status")  # kinds that say what another row says better


def incident_dict(incident: Incident) -> dict[str, Any]:
    """`incident` (rows), `drain` (hosts) and `incident_about` (the rest)."""
    return {
        "incident": [_row_dict(at, row) for at, row in enumerate(incident.rows)],
        "drain": list(incident.drain),
        "incident_about": {
            "first": next((at for at, row in enumerate(incident.rows) if row.first), None),
            "owner": incident.owner,
            "cause": incident.cause or None,
            "action": incident.action,
            "drain_lines": list(incident.drain_lines),
            "last_good_step": incident.last_good_step,
            "clocks": [_clock_dict(c) for c in incident.clocks],
            "before": [[_place(b.earlier), _place(b.later), b.least_s] for b in incident.before],
            "why_none": incident.why_none,
        },
    }


def _row_dict(at: int, row: Row) -> dict[str, Any]:
    return {
        "row": at,
        "role": row.part.value,
        "kind": row.kind,
        "first": row.first,
        "sentence": row.sentence,
        "file": row.source.file,
        "line": _line(row),
        "clock": row.clock or None,
        "from_s": _finite(row.from_s),
        "to_s": _finite(row.to_s),
        "host": row.host or None,
        "rank": row.rank,
        "ranks": list(row.ranks),
        "gpu": row.gpu or None,
        "times": row.times,
        "caused_by": row.caused_by,
        "by_cause": row.by_cause,
    }


def _clock_dict(clock: Clock) -> dict[str, Any]:
    return {
        "file": clock.file, "form": clock.form, "shift_s": clock.shift_s, "doubt_s": _finite(clock.doubt_s),
        "known_by": clock.known_by, "host": clock.host or None,
    }  # fmt: skip


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _line(row: Row) -> int | None:
    digits = row.source.where.removeprefix("line ").partition("-")[0]
    return int(digits) if digits.isdigit() else None


def _place(source: Any) -> str:
    return f"{PurePath(source.file).name}:{source.where.removeprefix('line ')}"


def first_line(incident: Incident) -> str:
    """When and where it began, who can mend it, and how the job went before and after."""
    first = incident.first
    if first is None:
        return ""
    good = next((row for row in incident.rows if row.part is Part.GOOD), None)
    end = next((row for row in incident.rows if row.part is Part.END), None)
    host = f" on {first.host}" if first.host else ""
    rank = f", rank {first.rank}" if first.rank is not None else ""
    parts = [f"{_time(first)}{host}{rank}", f"owner: {incident.owner or 'unknown'}"]
    parts += [f"last good step {incident.last_good_step} at {_time(good)}"] if good is not None else []
    parts += [f"the job ended at {_time(end)}"] if end is not None else []
    return "; ".join(parts)


def incident_rows(incident: Incident) -> list[tuple[str, str]]:
    """At most twelve sentences with their places: last good step, first fault (*), what follows from it (>), the end."""
    if incident.why_none:
        return [(incident.why_none, "")]
    shown = _chosen(incident.rows)
    rows = [(_text(row), _place(row.source)) for row in shown]
    left = len(incident.rows) - len(shown)
    return (
        rows
        if not left
        else [*rows[:-1], (f"{rows[-1][0]} (and {left} more row{'s' * (left > 1)} in the JSON)", rows[-1][1])]
    )


def clock_rows(incident: Incident) -> list[str]:
    """What is known of the files' clocks, where any of it is in doubt."""
    return [f"{PurePath(c.file).name}: {c.known_by}" for c in incident.clocks if not math.isfinite(c.doubt_s)][
        :MOST_CLOCKS
    ]


def _chosen(rows: tuple[Row, ...]) -> list[Row]:
    """The first of each kind before repeats, what the clocks order before what they do not."""
    kinds = [(row.kind, row.part, row.host) for row in rows]

    def weight(at: int) -> tuple[bool, bool, bool, bool]:
        row = rows[at]
        says_most = row.first or row.part in (Part.GOOD, Part.SLOW, Part.END)
        return not says_most, row.kind.endswith(QUIET), kinds[at] in kinds[:at], row.by_cause

    best = sorted(range(len(rows)), key=weight)[:MOST_ROWS]
    return [row for at, row in enumerate(rows) if at in best]


def _text(row: Row) -> str:
    mark = "*" if row.first else ">" if row.caused_by is not None else " "
    host = f"{row.host}: " if row.host and row.host not in row.sentence else ""
    aside = "separate: " if row.part is Part.SEPARATE else ""
    says = f"{aside}{host}{' '.join(row.sentence.split())}"
    says = says if len(says) <= SENTENCE else f"{says[: SENTENCE - 1]}\u2026"
    named = "ank " in row.sentence
    ranks = (
        ""
        if named or not row.ranks
        else f"rank{'s' * (len(row.ranks) > 1)} {', '.join(map(str, row.ranks[:MOST_RANKS]))}"
    )
    ranks += ", ..." if ranks and len(row.ranks) > MOST_RANKS else ""
    more = [
        f"{row.times} times" if row.times > 1 else "",
        ranks,
        "order not by clock" if row.caused_by is not None and row.by_cause else "",
    ]
    tail = "; ".join(part for part in more if part)
    return f"{mark} {_time(row)} {says}{f' ({tail})' if tail else ''}".strip()


def _time(row: Row) -> str:
    if row.from_s != row.from_s or row.from_s < 1e8:
        return row.clock.strip("[] ")[:12] if row.clock else "no clock"
    return datetime.fromtimestamp(row.from_s, UTC).strftime("%H:%M:%S")
