"""The tables of a printed host profile as rows with their sums, however many stand in one text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stallwise.errors import StallwiseError
from stallwise.evidence.profile import Spent
from stallwise.readers._cells import number_of
from stallwise.readers._patterns import patterns
from stallwise.units import Unit, parse

_P = patterns("host_profile")
SAME = 1e-3  # relative: one profile printed twice, in another order
OF = {"function": "functions", "operator": "operators", "action": "actions", "line": "lines", "tree": "frames"}


@dataclass
class PrintedProfile:
    """One table, or several of the same recording."""

    kind: str
    line: int
    rows: list[Spent] = field(default_factory=list)
    host_s: float = 0.0
    device_s: float = 0.0
    titles: Sequence[str] = ()
    closed: bool = False  # its sums were there: the text does not end inside it

    @property
    def kernels(self) -> list[Spent]:
        """Rows of the device alone; a range that the host has as well is none, nor is what is longer than the whole."""
        hosted = {row.name for row in self.rows if row.own_s > 0}
        return [
            row for row in self.rows
            if row.own_s == 0 and 0 < row.device_s <= 1.001 * (self.device_s or row.device_s)
            and row.name not in hosted and not _P["annotation"].search(row.name)
        ]  # fmt: skip


def printed_profiles(lines: Sequence[str]) -> list[PrintedProfile]:
    """Every profile in the text; tables of equal sums are one profile."""
    found: list[PrintedProfile] = []
    for profile in _tables(lines):
        if not profile.rows:
            continue
        if not profile.host_s:
            profile.host_s = _whole(profile)
        twin = next((p for p in found if _same(p, profile)), None)
        if twin is None:
            found.append(profile)
        else:
            known = {row._replace(line=0) for row in twin.rows}
            twin.rows += [row for row in profile.rows if row._replace(line=0) not in known]
    return found


def _same(one: PrintedProfile, other: PrintedProfile) -> bool:
    alike = (
        abs(a - b) <= SAME * max(a, b, 1e-12) for a, b in ((one.host_s, other.host_s), (one.device_s, other.device_s))
    )
    return one.kind == other.kind and one.kind != "line" and all(alike)


def _whole(profile: PrintedProfile) -> float:
    """Without a sum: the outermost function, else all that is listed."""
    return max(max(row.held_s for row in profile.rows), sum(row.own_s for row in profile.rows))


def _tables(lines: Sequence[str]) -> Iterator[PrintedProfile]:
    current: PrintedProfile | None = None
    total_s, tick_s = 0.0, 1e-6
    for number, text in enumerate(lines, 1):
        if kind := _header(text):
            if current is not None:
                yield current
            current = PrintedProfile(kind, number, host_s=total_s if kind in ("function", "line") else 0.0)
            current.closed = kind in ("function", "line") and total_s > 0
            current.titles = re.split(r"\s{2,}", text.strip())
            total_s = 0.0
        elif total := _total(text):
            total_s = total
        elif text.startswith("Timer unit") and (unit := _P["line_unit"].search(text)):
            tick_s = float(unit[1])
        elif current is not None and not _sum(current, text) and (row := _row(current, text, number, tick_s)):
            current.rows.append(row)
        elif current is not None and current.kind == "function" and current.rows and not text.strip():
            yield current
            current = None
    if current is not None:
        yield current


def _total(text: str) -> float:
    """The time of the whole, which functions and lines have above their table; 0 where a line tells none."""
    if " function calls" in text or text.startswith("Total time"):
        found = next((m for k in ("function", "line") if (m := _P[f"{k}_total"].search(text))), None)
        return _seconds(found["total"]) if found else 0.0
    return 0.0


def _header(text: str) -> str:
    if "tottime" in text and "cumtime" in text:
        return "function"
    if "Self CPU %" in text or ("Self CPU" in text and "# of Calls" in text):
        return "operator"
    if "Line #" in text and "Per Hit" in text:
        return "line"
    return "action" if "Mean duration" in text else ""


def _sum(profile: PrintedProfile, text: str) -> bool:
    """Takes the sums that stand under the operators, or in the first row of the actions."""
    if profile.kind not in ("operator", "action") or not (total := _P[f"{profile.kind}_total"].search(text)):
        return False
    seconds = _seconds(total["total"])
    if profile.kind == "operator" and total["where"].upper() != "CPU":
        profile.device_s = seconds
    else:
        profile.host_s = seconds
    profile.closed = True
    return True


def _row(profile: PrintedProfile, text: str, line: int, tick_s: float) -> Spent | None:
    if profile.kind == "operator":
        return _operator(profile.titles, text, line)
    found = _P[f"{profile.kind}_row"].match(text)
    if found is None:
        return None
    seconds = float(found["seconds"]) * (tick_s if profile.kind == "line" else 1.0)
    own_s = float(found["own"]) if profile.kind == "function" else seconds
    return Spent(found["name"].strip(), own_s, 0.0, seconds, float(found["calls"]), line)


def _operator(titles: Sequence[str], text: str, line: int) -> Spent | None:
    """Columns differ by release, device and setting, so the titles name them."""
    cells = re.split(r"\s{2,}", text.strip())
    if len(cells) != len(titles) or "%" not in text:
        return None
    row = dict(zip(titles, cells, strict=True))
    device = next((t for t in titles if re.fullmatch(r"Self (?!CPU)\w+", t)), "")
    try:
        held_s, own_s, device_s = (parse(row.get(t, "0s"), Unit.SECOND) for t in ("CPU total", "Self CPU", device))
    except StallwiseError:
        return None
    return Spent(cells[0], own_s, device_s, held_s, number_of(row.get("# of Calls")) or 0.0, line)


def tree_rows(lines: Sequence[str]) -> Iterator[PrintedProfile]:
    """pyinstrument's tree: a frame's own time is what its children leave of it."""
    open_frames: list[tuple[int, int]] = []  # depth, place in rows
    profile = PrintedProfile("tree", 1)
    for number, text in enumerate(lines, 1):
        if total := _P["tree_total"].search(text):
            profile.host_s, profile.closed = float(total["total"]), True
        elif row := _P["tree_row"].match(text):
            depth, seconds = len(row["tree"]), float(row["seconds"])
            while open_frames and open_frames[-1][0] >= depth:
                open_frames.pop()
            if open_frames:
                outer = open_frames[-1][1]
                profile.rows[outer] = profile.rows[outer]._replace(own_s=max(profile.rows[outer].own_s - seconds, 0.0))
            open_frames.append((depth, len(profile.rows)))
            profile.rows.append(Spent(f"{row['place'].strip()} {row['name']}", seconds, 0.0, seconds, 0.0, number))
    if profile.rows:
        profile.host_s = profile.host_s or _whole(profile)
        yield profile


def _seconds(text: str) -> float:
    try:
        return parse(text, Unit.SECOND)
    except StallwiseError:
        return number_of(text) or 0.0
