"""Host profiles as printed tables: cProfile's (pstats), line_profiler's, Lightning's SimpleProfiler report, key_averages() of
torch.profiler, and pyinstrument's tree. All rows go into a profile; what a training loop does is told beside it.

A row is a function, a line, an action or an operator, with its calls and seconds; its words say what it does. The calls of
backward count the steps. Of functions and lines only work that the host does itself is told: kernels run behind its back, so
time in backward, in the optimizer or in a synchronisation may be the device's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import run, stages
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.evidence.profile import UNKNOWN, Spent, profile_table
from stallwise.readers._cells import count_of
from stallwise.readers._patterns import entries, patterns
from stallwise.readers._printed_profiles import OF, PrintedProfile, printed_profiles, tree_rows
from stallwise.readers._profile_kinds import MOVES, kind_of, launches_in, seconds_by_kind
from stallwise.units import Unit, parse

FORMAT = "host profile"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "python -m cProfile -s tottime train.py > profile.txt"
_P = patterns("host_profile")
KINDS = {
    "function": (b"tottime", b"cumtime"), "line": (b"Line #", b"Per Hit"), "action": (b"Profiler Report", b"Mean duration"),
    "operator": (b"Self CPU %", b"# of Calls"), "tree": (b"Recorded:", b"Duration:", b"Samples:"),
}  # fmt: skip
SIDE_WORK = {"evaluation": stages.EVALUATION, "save": stages.CHECKPOINT, "garbage": stages.COLLECTION}
WRITTEN = 65536  # bytes in which its titles stand
MOST = 0.5  # of the synchronising time, which its caller holds; of all functions' own time
IMPORTS = "imports"  # a kind of patterns/profile_kinds.toml
DECIDES = 0.5  # of the host's time on the device: below, the device waits even if the profiler doubled the host's time
SHOWS = 0.1  # of the whole: less is not why somebody looks


class Row(NamedTuple):
    """What it does, its name, how often, seconds with and without what it calls."""

    does: str
    name: str
    calls: float
    seconds: float
    own_s: float
    line: int


@dataclass
class _Profile:
    rows: list[Row] = field(default_factory=list)
    total_s: float = 0.0
    device_s: float = 0.0
    tick_s: float = 1e-6
    own_s: float = 0.0  # of all functions without what they call
    own_code_s: float = 0.0  # of those, in Python outside of frameworks
    longest_s: float = 0.0
    titles: list[str] = field(default_factory=list)

    def of(self, does: str) -> list[Row]:
        """The heaviest first: of functions that call each other the outer one holds the others' time."""
        return sorted((r for r in self.rows if r.does == does), key=lambda r: -r.seconds)


def recognises(name: str, head: bytes) -> bool:
    """The titles of one of the tables."""
    return bool(_kinds(head))


def _kinds(head: bytes) -> list[str]:
    return [kind for kind, titles in KINDS.items() if all(t in head[:WRITTEN] for t in titles)]


def read(artifact: Artifact) -> Iterator[Item]:
    """Every profile in the text, and what it says of a training loop."""
    kinds, lines, file = _kinds(artifact.head), artifact.lines(), artifact.name
    profiles = printed_profiles(lines) + (list(tree_rows(lines)) if "tree" in kinds else [])
    yield from _categories(profiles, file)
    for kind in kinds:
        profile = _Profile()
        if kind == "operator":
            _operators(profile, [p for p in profiles if p.kind == kind])
        elif kind != "tree":
            for number, text in enumerate(lines, 1):
                _take(profile, kind, text, number)
        yield from _facts(kind, profile, file)


def _categories(profiles: list[PrintedProfile], file: str) -> Iterator[Item]:
    """Each profile as a table; the kernels of the one that has most of its time on the device as facts."""
    for p in profiles:
        kernels = {(row.name, row.line) for row in p.kernels}
        of_kernels = bool(kernels)  # an operator's device time is that of its kernels, which have rows of their own
        rows = [r if not of_kernels or (r.name, r.line) in kernels else r._replace(device_s=0.0) for r in p.rows]
        rows = [r._replace(moves=r.device_s > 0 and kind_of(r.name) == MOVES) for r in rows]
        doing = seconds_by_kind(rows)
        source = Source(file, f"line {p.line}")
        yield profile_table(
            rows, source, of=OF[p.kind], host_s=p.host_s, device_s=p.device_s or UNKNOWN, doing=doing, launches=launches_in(rows)
        )  # fmt: skip
        yield from _start(p, doing, file)
        if not p.closed:
            yield Note(
                f"the {OF[p.kind]} of line {p.line} have no sum: the text may end inside the table",
                Source(file),
                lost=True,
            )
    busiest = max((p for p in profiles if p.kernels), key=lambda p: p.device_s / max(p.host_s, 1e-12), default=None)
    if busiest is not None and busiest.device_s >= DECIDES * busiest.host_s:
        yield from _kernel_facts(busiest.kernels, busiest.device_s, file)


def _start(profile: PrintedProfile, doing: dict[str, float], file: str) -> Iterator[Fact]:
    """Of a program that trains nothing: imports and the model's way to the device, which every start pays once."""
    once_s = doing.get(IMPORTS, 0.0) + doing.get(MOVES, 0.0)
    if profile.kind == "function" and "backward" not in doing and doing.get(IMPORTS) and profile.host_s > 0:
        yield Fact(run.START_SHARE, min(once_s / profile.host_s, 1.0), Source(file, f"line {profile.line}"))
        yield Fact(run.START_TIME, min(once_s, profile.host_s), Source(file, f"line {profile.line}"))


def _kernel_facts(rows: list[Spent], whole_s: float, file: str) -> Iterator[Fact]:
    for row in rows:
        scope, source, count = Scope(kernel=row.name), Source(file, f"line {row.line}"), count_of(row.calls)
        yield Fact(k.TOTAL_TIME, row.device_s, source, scope, samples=count)
        yield Fact(k.TIME, row.device_s / max(row.calls, 1.0), source, scope, samples=count)
        if whole_s:
            yield Fact(k.TIME_SHARE, row.device_s / whole_s, source, scope)


def _operators(profile: _Profile, printed: list[PrintedProfile]) -> None:
    """Of several profiles the longest; rows of one name are its single events."""
    longest = max(printed, key=lambda p: p.host_s, default=None)
    if longest is None:
        return
    profile.total_s, profile.device_s, profile.titles = longest.host_s, longest.device_s, list(longest.titles)
    together: dict[str, Spent] = {}
    for row in longest.rows:
        known = together.get(row.name)
        together[row.name] = row if known is None else known._replace(
            own_s=known.own_s + row.own_s, held_s=known.held_s + row.held_s, calls=known.calls + row.calls
        )  # fmt: skip
    for row in together.values():
        _add(profile, "operator", Row("", row.name, row.calls, row.held_s, row.own_s, row.line))


def _facts(kind: str, profile: _Profile, file: str) -> Iterator[Item]:
    """Shares of the whole by what was done, and seconds a step where steps can be counted."""
    steps = sum(row.calls for row in profile.of("backward")[:1])
    if kind == "function" and not steps:
        yield from _of_no_steps(profile, file)
    if not profile.total_s or (kind in ("function", "line") and not steps):
        return
    if steps:
        yield Fact(run.STEP_TIME, profile.total_s / steps, Source(file), samples=count_of(steps))
    for row in profile.of("data")[:1]:
        source, samples = Source(file, f"line {row.line}"), count_of(row.calls)
        yield Fact(run.DATA_SHARE, min(row.seconds / profile.total_s, 1.0), source, samples=samples)
        yield Fact(run.DATA_TIME, row.seconds / (steps or row.calls), source, samples=samples)
    for does, quantity in SIDE_WORK.items():
        for row in profile.of(does)[:1] if steps else ():
            yield Fact(quantity, row.seconds / steps, Source(file, f"line {row.line}"), samples=count_of(row.calls))
    yield from _waits(profile, file)
    device_s = profile.device_s or sum(row.seconds for row in profile.of("device"))
    if device_s:
        yield Fact(run.DEVICE_SHARE, min(device_s / profile.total_s, 1.0), Source(file))
    if kind == "action":  # actions are all that was timed; a batch holds the inner ones, which repeat its time
        inner = {"nested"} if profile.of("batch") else set()
        timed_s = sum(row.seconds for row in profile.rows if row.does not in {"wrapper", *inner})
        yield Fact(run.HOST_UNEXPLAINED_SHARE, max(0.0, 1.0 - timed_s / profile.total_s), Source(file))


def _of_no_steps(profile: _Profile, file: str) -> Iterator[Fact]:
    """A program that trains nothing, or a part of its list: what the collector takes, and Python outside of frameworks."""
    whole_s = profile.total_s or max(profile.own_s, profile.longest_s)
    for row in profile.of("garbage")[:1]:
        if row.seconds >= SHOWS * whole_s:
            source, samples = Source(file, f"line {row.line}"), count_of(row.calls)
            yield Fact(run.GC_PAUSE, row.seconds / row.calls, source, samples=samples)
            yield Fact(run.GC_COLLECTIONS, row.calls, source)
            return
    if profile.own_code_s >= MOST * profile.own_s > 0 and not profile.of("data"):
        yield Fact(run.HOST_UNEXPLAINED_SHARE, profile.own_code_s / profile.own_s, Source(file))


def _take(profile: _Profile, kind: str, text: str, line: int) -> None:
    if total := _P[f"{kind}_total"].search(text):  # of several tables the longest run counts
        spent_s = parse(total["total"], Unit.SECOND)
        if "where" in total.groupdict() and total["where"].upper() != "CPU":
            profile.device_s = spent_s
        else:
            profile.total_s = max(profile.total_s, spent_s)
    elif unit := _P["line_unit"].search(text):
        profile.tick_s = float(unit[1])
    elif row := _P[f"{kind}_row"].match(text):
        seconds = float(row["seconds"]) * (profile.tick_s if kind == "line" else 1.0)
        if kind == "function":
            own_s = float(row["own"])
            profile.own_s, profile.longest_s = profile.own_s + own_s, max(profile.longest_s, seconds)
            profile.own_code_s += own_s if _P["own_code"].search(row["name"]) else 0.0
        _add(profile, kind, Row("", row["name"], float(row["calls"]), seconds, seconds, line))


def _add(profile: _Profile, kind: str, row: Row) -> None:
    kinds = entries("host_profile")
    asked = (name for name, entry in kinds.items() if kind in entry.get("of", ()))
    does = next((kinds[name].get("does", name) for name in asked if _P[name].search(row.name)), "")
    if row.calls and (does or kind == "action"):
        profile.rows.append(row._replace(does=does))


def _waits(profile: _Profile, file: str) -> Iterator[Fact]:
    """What synchronising took, and who called it."""
    waits = profile.of("sync")
    spent_s, calls = sum(row.own_s for row in waits), sum(row.calls for row in waits)
    if not spent_s:
        return
    source = Source(file, f"line {waits[-1].line}")
    yield Fact(run.SYNC_SHARE, spent_s / profile.total_s, source, samples=count_of(calls))
    callers = [row for row in profile.of("caller") if row.seconds > MOST * spent_s]
    if profile.titles:
        yield Fact(run.SYNC_TIME, spent_s / calls, source, samples=count_of(calls))
        order = list(entries("host_profile")["caller"]["order"])
        known = sorted((order.index(row.name), row.name) for row in callers)
        yield from (Fact(run.SYNC_CALLER, name, source) for _, name in known[:1])
