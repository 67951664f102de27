"""A profile of sums or samples says where the time went. Whether that is too long it cannot say.

Refuted by: nothing, since it claims no health: a sum over a run hides what waited for what, and host time behind a launch may be the
device's. Only a list of kernels that move their bytes at one rate is in line by itself; one kernel far below the others refutes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.doctor.findings.words import long_seconds, short_name
from stallwise.evidence.capture import NCU, TORCH_TRACE, Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.profile import KIND
from stallwise.late import np
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_NAMED = 4
NEARLY_ALL = 0.9
OFTEN = 2  # calls: below, how often says nothing
MOST_TABLES = 4
A_MEMORY_BYTE_PER_S = (
    3e11  # the slowest memory of a card on which people profile Triton; below, sizes are too small to tell
)
MOST_OF_BEST = 0.5  # of the fastest kernel's rate over all bytes: launches and small sizes cost the rest
SHOWN = 0.03  # of the whole: a smaller part is nobody's first question
WITH_KERNELS = Capture(
    "the same recording over the part in which the GPU works",
    "nsys profile -t cuda,nvtx,osrt -o run python script.py && nsys export --type sqlite run.nsys-rep",
    "a run that lasts into the GPU's work",
    minutes=10,
)
WITH_DEVICE = Capture(
    "the same profile with the device's activities",
    "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)",
    "one short run",
    minutes=10,
)
ALL_THREADS = Capture(
    "the profile of all processes, workers included",
    "py-spy record --subprocesses --native -d 60 -o profile.svg --pid PID",
    "a minute, no restart",
    minutes=3,
)


def profile(evidence: Evidence) -> Proof | None:
    """What took most, of the host and of the device, and what kind of work it is."""
    tables = evidence.table(KIND)
    if not tables:
        return None
    first = max(tables, key=_device_share)
    ordered = [first, *(t for t in tables if t is not first)]
    because = tuple(Reason(category_of(t), (_source(t),)) for t in ordered[:MOST_TABLES])
    alike = all(_one_rate(t) for t in tables)
    return Proof(
        of="profile",
        says=because[0].text,
        because=because,
        confidence=0.7 if alike else 0.5,
        lacks="" if alike else f"{_most(first)}; {_limit(first)}.",
        next=_next(first),
        covers_run=False,
        describes=True,
    )


def _one_rate(table: Table) -> bool:
    """Kernels that move their bytes at about one rate, and a rate of a memory at that: the memory binds them all."""
    size, best = table.meta.get("moved_bytes", 0.0), table.meta.get("best_rate", 0.0)
    return bool(best >= A_MEMORY_BYTE_PER_S and size / table.meta["device_s"] >= MOST_OF_BEST * best)


def _device_share(table: Table) -> float:
    """A profile that is nearly all host set-up shows a start: the one with most of its time on the device leads."""
    host, device = table.meta["host_s"], table.meta["device_s"]
    return device / host if host > 0 and device > 0 else 0.0


def category_of(table: Table) -> str:
    """ "1,339.7 s of host time in functions: by own time ...; of it ..."."""
    host, device = table.meta["host_s"], table.meta["device_s"]
    parts = []
    if table.meta["unit"] == "samples":
        return f"{host:,.0f} samples of {table.meta['of']}; most of them in {_top(table, 'own_s', host)}"
    if host > 0:
        ratio = f", {percent(device / host)} of that" if device > 0 else ""
        both = f", {long_seconds(device)} of the device{ratio}" if device > 0 else ""
        parts.append(f"{long_seconds(host)} of the host in {table.meta['of']}{both}")
        parts.append(f"by own time {_top(table, 'own_s', host)}")
    if device > 0:
        if not host > 0:
            parts.append(f"{long_seconds(device)} of the device in {table.meta['of']}")
        moved = table.columns["moves"] > 0
        copied = float(table.columns["device_s"][moved].sum())
        of = f"kernels {long_seconds(device - copied)}" if copied else "on the device"
        parts.append(f"{of}: {_top(table, 'device_s', device - copied, ~moved)}")
        if copied:
            parts.append(f"copies {long_seconds(copied)}: {_top(table, 'device_s', copied, moved)}")
    whole = host if host > 0 else device
    kinds = [
        f"{kind} {long_seconds(s)} ({percent(s / whole)})"
        for kind, s in table.meta["doing"].items()
        if s >= SHOWN * whole > 0
    ]
    if kinds:
        parts.append(f"with what they call: {', '.join(kinds[:MOST_NAMED])}")
    parts.append(_holding(table, whole))
    if size := table.meta.get("moved_bytes"):
        rate, best = size / device, table.meta["best_rate"]
        parts.append(
            f"{show(size, Unit.BYTE)} moved at {rate / 1e9:,.0f} GB/s, {percent(rate / best)} of the fastest kernel's rate"
        )
    return "; ".join(part for part in parts if part and not part.endswith(" "))


def _holding(table: Table, whole: float) -> str:
    """Functions that hold time by what they call; the outermost, which hold nearly all, tell nothing."""
    own, held = table.columns["own_s"], table.columns["held_s"]
    inner = (held < NEARLY_ALL * whole) & (held > 2 * own) & (held >= SHOWN * whole)
    order = np.argsort(-held, kind="stable")
    names = [
        f"{short_name(str(table.columns['name'][i]))} {long_seconds(float(held[i]))}"
        for i in order.tolist()
        if inner[i]
    ]
    return f"holding others: {', '.join(names[:MOST_NAMED])}" if names and table.meta["unit"] != "samples" else ""


def _top(table: Table, column: str, whole: float, among: NDArray[np.bool_] | None = None) -> str:
    """The longest of these rows, each with its part of the whole and how often it came."""
    c = table.columns
    order = np.argsort(-c[column], kind="stable")
    order = order[(c[column] > 0)[order] & (True if among is None else among[order])][:MOST_NAMED]
    counted = table.meta["unit"] == "samples"
    named = []
    for at in order.tolist():
        spent, calls = float(c[column][at]), float(c["calls"][at])
        times = f", {calls:,.0f}x" if calls >= OFTEN else ""
        size = "" if counted else f"{long_seconds(spent)} "
        share = f"{spent / whole:.1%}" if whole > 0 else ""
        named.append(f"{short_name(str(c['name'][at]))} {size}" + (f"{share}" if counted else f"({share}{times})"))
    return ", ".join(named)


def _most(table: Table) -> str:
    """The headline: what takes most."""
    host, device = table.meta["host_s"], table.meta["device_s"]
    column, whole = ("own_s", host) if host > 0 else ("device_s", device)
    if not len(table) or not whole > 0:
        return f"no time is in the {table.meta['of']} of this file"
    at = int(table.columns[column].argmax())
    name, seconds = short_name(str(table.columns["name"][at])), float(table.columns[column][at])
    if table.meta["unit"] == "samples":
        return f"most of the samples are in {name}: {percent(seconds / whole)} of {whole:,.0f}"
    side = "the host's" if column == "own_s" else "the device's"
    share = f"{long_seconds(seconds)} of {long_seconds(whole)} ({percent(seconds / whole)})"
    return f"most of {side} time is {name}: {share}"


def _limit(table: Table) -> str:
    if table.meta["limit"]:
        return str(table.meta["limit"])
    if not table.meta["device_s"] > 0:
        return "what the GPU did meanwhile is not in this file"
    if not table.meta["host_s"] > 0:
        return "how near these kernels are to what the card can do is not in this file"
    return "sums do not show what waited for what"


def _next(table: Table) -> tuple[Capture, ...]:
    """What is missing in a file of this kind."""
    if table.meta["lacks"] == "kernels":
        return (WITH_KERNELS,)
    if table.meta["lacks"] == "device":
        return (WITH_DEVICE,)
    if not table.meta["host_s"] > 0:
        return (NCU,)
    waits = next(iter(table.meta["doing"]), "").startswith("waiting")
    return (ALL_THREADS, TORCH_TRACE) if waits and not table.meta["device_s"] > 0 else (TORCH_TRACE,)


def _source(table: Table) -> Source:
    """The line of what takes most, where rows have lines."""
    lines = table.columns["line"]
    column = "own_s" if table.meta["host_s"] > 0 else "device_s"
    at = int(table.columns[column].argmax()) if len(table) else -1
    return Source(table.source.file, f"line {int(lines[at])}") if at >= 0 and lines[at] > 0 else table.source
