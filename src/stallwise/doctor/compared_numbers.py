"""The scenario's own numbers in one line: what each quantity was, what it is, and by how much they differ.

Every cause argues with the facts it needs; whoever gave two values of anything else finds them here, with their ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.evidence.catalog import autotune, change, kernel, quantities, run, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Fact
from stallwise.evidence.quantity import Quantity
from stallwise.late import np
from stallwise.units import Unit, show

BEFORE = "before"
MOST = 5  # pairs of one line
LEAST = 3  # steps on either side of a drop
SAME = 1.05  # times: two runs of one job differ by as much
AS_POINTS = (stated.ACCURACY.name,)  # shares that people subtract
AS_DIFFERENCE = (run.LOSS.name, run.EVAL_LOSS.name)
LOADS = (serving.OFFERED_RATE, serving.CONCURRENCY)
Shown = Callable[[str], bool]


def with_numbers(findings: Sequence[Finding], evidence: Evidence) -> tuple[Finding, ...]:
    """The first finding, begun by the comparisons that its own arithmetic does not make."""
    if not findings:
        return ()
    first = findings[0]
    shown = " ".join((first.headline, first.summary, *(r.text for r in first.because)))
    lines = _compared(evidence, lambda text: text in shown)
    if not lines:
        return tuple(findings)
    return (replace(first, because=(*lines, *first.because)), *findings[1:])


def _compared(evidence: Evidence, stands: Shown) -> list[Reason]:
    """Before against now, or the lowest load against the highest; and the rate of the library against the own."""
    cells: list[str] = []
    facts: list[Fact] = []
    for then, now in (*_hoped(evidence), *_pairs(evidence), *_kernel_and_library(evidence)):
        text = _cell(then, now)
        if text and not (stands(str(then)) and stands(str(now)) and stands(_times(then, now))):
            cells.append(text)
            facts += [then, now]
    steps = [_cell(then, now) for then, now in _at_the_drop(evidence)]
    if steps and (at := evidence.get(change.DROP_STEP)):
        cells.insert(0, f"from step {at.number:,.0f} on: " + "; ".join(x for x in steps if x))
        facts.insert(0, at)
    return [Reason.of("; ".join(cells[:MOST]), *facts[:2])] if cells else []


def _pairs(evidence: Evidence) -> Iterator[tuple[Fact, Fact]]:
    for name, facts in list(evidence.facts.items()):
        quantity = quantities()[name]
        if not (quantity.better or name in AS_DIFFERENCE) or quantity.unit in (Unit.FLAG, Unit.TEXT):
            continue
        pair = _in_time(evidence, quantity) or _by_load(evidence, facts)
        if pair and pair[0].number > 0 and pair[1].number > 0:
            yield pair


def _hoped(evidence: Evidence) -> Iterator[tuple[Fact, Fact]]:
    """What was expected and what was measured of the same."""
    for name, facts in list(evidence.facts.items()):
        other = quantities()[name].expected
        hoped = evidence.get(quantities()[other]) if other in quantities() else None
        now = next((f for f in facts if f.scope.run is None), None)
        if hoped is not None and now is not None and hoped.number > 0 and now.number > 0:
            yield hoped, now


def _at_the_drop(evidence: Evidence) -> Iterator[tuple[Fact, Fact]]:
    """The usual value of every measured series before the step at which the run became slower, and since."""
    at = evidence.value(change.DROP_STEP)
    for series in evidence.all_series if at == at else ():
        early, late = series.values[series.x < at], series.values[series.x >= at]
        if series.over == "step" and series.quantity.better and len(early) >= LEAST and len(late) >= LEAST:
            then, now = (float(np.nanmedian(part)) for part in (early, late))
            if then > 0 and now > 0 and series.quantity.unit is not Unit.FLAG and series.scope == WHOLE:
                yield Fact(series.quantity, then, series.source), Fact(series.quantity, now, series.source)


def _kernel_and_library(evidence: Evidence) -> Iterator[tuple[Fact, Fact]]:
    """The library's time as somebody states it, and the kernel's as a profiler measured it."""
    library, own = evidence.get(autotune.LIBRARY), evidence.get(kernel.TIME)
    if library is not None and own is not None and not evidence.all(autotune.BEST) and own.number > library.number > 0:
        yield library, own


def _in_time(evidence: Evidence, quantity: Quantity) -> tuple[Fact, Fact] | None:
    then = evidence.get(quantity, run=BEFORE)
    now = next((f for f in evidence.all(quantity) if f.scope == WHOLE), None)
    return (then, now) if then is not None and now is not None else None


def _by_load(evidence: Evidence, facts: list[Fact]) -> tuple[Fact, Fact] | None:
    """The runs of a sweep: the one under the least load and the one under the most."""
    for load in LOADS:
        loads = {f.scope.run: f.number for f in evidence.all(load) if f.scope.run not in (None, BEFORE)}
        first = {f.scope.run: f for f in reversed(facts) if f.scope.run in loads}
        if len(first) >= 2:
            ends = sorted(first, key=lambda label: loads[label])
            return first[ends[0]], first[ends[-1]]
    return None


def _cell(then: Fact, now: Fact) -> str:
    """ "time to the first token 120 ms -> 4.20 s (35.0x)"; a share of results in points, a loss as a difference."""
    name = now.quantity.name
    ratio = max(now.number / then.number, then.number / now.number)
    meaning = now.quantity.meaning.split(",")[0].split(" as ")[0].split(" over ")[0]
    if name in AS_DIFFERENCE:
        change = now.number - then.number
        return (
            f"{meaning} {then.number:.4g} -> {now.number:.4g} ({change:+.3g}, {change / then.number:+.1%})"
            if change
            else ""
        )
    if ratio < SAME:
        return ""
    if then.quantity is not now.quantity:
        if then.quantity is autotune.LIBRARY:
            return f"the library path takes {then}, the kernel {now}, {_times(then, now)} as long"
        points = f"; {100 * (now.number - then.number):+.3g} points" if now.quantity.unit is Unit.SHARE else ""
        return f"{meaning}: {then} expected, {now} measured ({_times(then, now)}{points})"
    if name in AS_POINTS:
        return f"{meaning} {then} -> {now} ({100 * (now.number - then.number):+.3g} points)"
    a_token = f", {show(1 / now.number, Unit.SECOND)} a token" if now.quantity is serving.PER_REQUEST_RATE else ""
    return f"{meaning} {then} -> {now} ({_times(then, now)}{a_token})"


def _times(then: Fact, now: Fact) -> str:
    return f"{max(now.number / then.number, then.number / now.number):.3g}x"
