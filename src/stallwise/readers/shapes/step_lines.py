"""Lines of a log that say how far the job is: step number and time, for the order of what happened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.event import Form, Stamp
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.number_columns import TOKEN
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.late import np
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.stamps import DAY_S, Stamps

TABLE = "log.steps"
MOST = 4000  # lines: the first steps and the last ones tell when something began
AFTER = 6  # lines
FEWEST = 6  # lines that count without a word for it
LONGEST_SHOWN = 240
_P = patterns("step_lines")


def step_lines(artifact: Artifact, stamps_of_text: Stamps) -> Table | None:
    """Table log.steps: line, step, from_s and to_s on the clock of the file; None where no line has both a step and a time."""
    text = artifact.skeletons
    found = _found(text, "step") or _found(text, "count")
    if len(found) > MOST:
        found = [*found[: MOST // 2], *found[-MOST // 2 :]]
    times = stamps_of_text.of(at for at, _ in found)
    rows = [(at + 1, step, stamp) for (at, step), stamp in zip(found, times, strict=True) if stamp is not None]
    forms = {stamp.form for _, _, stamp in rows}
    if len(forms) != 1:
        return None
    lines, steps, stamps = zip(*rows, strict=True)
    from_s = np.array([s.from_s for s in stamps])
    fell = np.diff(from_s, prepend=from_s[0]) < -DAY_S / 2  # past midnight, on a clock without a date
    days = DAY_S * np.cumsum(fell & (forms == {Form.CLOCK}))
    return Table(
        TABLE,
        {
            "line": np.array(lines),
            "step": np.array(steps, dtype=float),
            "from_s": from_s + days,
            "to_s": np.array([s.to_s for s in stamps]) + days,
        },
        Source(artifact.name, f"lines {lines[0]}-{lines[-1]}"),
        meta={
            **_clock(stamps[0]),
            "after": _after(stamps_of_text, text.lines, lines[-1]),
            "last": _last(stamps_of_text, text.lines),
        },
    )


def _found(text: Skeletons, pattern: str) -> list[tuple[int, float]]:
    """Line and step. A count without a word for it must rise all along."""
    found: list[tuple[int, float]] = []
    for skeleton in text.where(lambda x: _P[pattern].search(x) is not None and _P["not_done"].search(x) is None):
        rows = _steps(text, skeleton, pattern)
        if pattern == "step" or (len(rows) >= FEWEST and all(a < b for (_, a), (_, b) in pairwise(rows))):
            found += rows
    return sorted(found)


def _clock(stamp: Stamp) -> dict[str, object]:
    return {"form": stamp.form.value, "offset_s": stamp.offset_s, "dated": stamp.form is Form.DATED}


def _after(stamps: Stamps, lines: Sequence[str], last: int) -> list[list[object]]:
    """What the log still says in quiet after its last step: line, text, from_s, to_s."""
    found: list[list[object]] = []
    for at in range(last, min(len(lines), last + AFTER)):
        stamp = stamps.own(at)
        if stamp is None or _P["loud"].search(lines[at]):
            break
        found.append([at + 1, lines[at][:LONGEST_SHOWN], stamp.from_s, stamp.to_s])
    return found


def _last(stamps: Stamps, lines: Sequence[str]) -> list[object]:
    """The last line that says anything: its place, text, from_s and to_s."""
    at = next((i for i in range(len(lines) - 1, -1, -1) if lines[i].strip()), 0)
    stamp = stamps.around(at)
    text = lines[at].rpartition(stamp.text)[2] if stamp is not None and stamp.own else lines[at]
    return [at + 1, text.strip(" ]:-")[:LONGEST_SHOWN], *((stamp.from_s, stamp.to_s) if stamp else (float("nan"),) * 2)]


def _steps(text: Skeletons, skeleton: int, pattern: str) -> list[tuple[int, float]]:
    """The step of each line of a skeleton, read off the same place of all."""
    members = text.members(skeleton)
    sample = text.lines[members[0]][:LONGEST]
    match = _P[pattern].search(sample)
    if match is None:
        return []
    start = match.start(match.lastgroup or 1)
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(sample))}
    numbers = text.columns(skeleton, [slots[start]]) if start in slots else None
    if numbers is not None:
        return list(zip(members, numbers[:, 0].tolist(), strict=True))
    own = ((at, _P[pattern].search(text.lines[at][:LONGEST])) for at in members)
    return [(at, float(m[m.lastgroup or 1])) for at, m in own if m is not None]
