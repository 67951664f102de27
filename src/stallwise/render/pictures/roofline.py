"""The roofline with the kernels under it."""

from __future__ import annotations

import math

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Table
from stallwise.render.blocks import Picture, Tab
from stallwise.render.phrases import place
from stallwise.render.svg import WIDTH, dot, line, picture, short, text
from stallwise.units import Unit, show

PLACE = 20
TAB = Tab.KERNELS
KIND = "roofline"
LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 92.0, 150.0, 16.0, 44.0, 380.0
LABELLED = 6  # points with their name beside them, longest first
SMALLEST, LARGEST = 4.0, 15.0  # radius of a point


def draw(diagnosis: Diagnosis) -> Picture | None:
    """Kernels by operations a byte and by rate; size is time."""
    tables = diagnosis.evidence.table(KIND)
    if not tables:
        return None
    table = max(tables, key=len)
    c, meta = table.columns, table.meta
    rows = [("kernel", "operations a byte", "rate", "of its roof", "time", "arithmetic")]
    for name, dtype, x, y, s, ceiling in _points(table):
        rows.append((name, f"{x:.3g}", show(y, Unit.FLOP_PER_S), f"{y / ceiling:.0%}", show(s, Unit.SECOND), dtype))
    return Picture(
        "roofline",
        "Kernels under the roofline",
        picture(_drawn(table), HEIGHT, f"Roofline of {meta['gpu']} with {len(c['name'])} kernels"),
        f"Dense data-sheet roofs of {meta['gpu']}; a point's size is its time. Left of the ridge memory limits, "
        "right of it arithmetic; the distance to the roofline is what a better kernel could save.",
        place(table.source),
        (),
        tuple(rows),
    )


def _points(table: Table) -> list[tuple[str, str, float, float, float, float]]:
    c = table.columns
    keys = ("name", "dtype", "intensity", "rate_flop_per_s", "seconds", "roof_flop_per_s")
    return list(zip(*(c[k].tolist() for k in keys), strict=True))


class _Log:
    """Decades onto pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        self.start, self.scale = start, (end - start) / max(self.high - self.low, 1)

    def __call__(self, value: float) -> float:
        return self.start + (math.log10(max(value, 1e-30)) - self.low) * self.scale

    def decades(self) -> list[float]:
        return [10.0**k for k in range(self.low, self.high + 1)]


def _drawn(table: Table) -> list[str]:
    points, bandwidth = _points(table), float(table.meta["bandwidth_byte_per_s"])
    peaks: dict[str, float] = table.meta["peaks_flop_per_s"]
    ridges = [p / bandwidth for p in peaks.values()]
    xs, ys = [p[2] for p in points], [p[3] for p in points]
    x = _Log(min(*xs, 0.1), max(*xs, *ridges, 1000.0), LEFT, WIDTH - RIGHT)
    top = max(*ys, *peaks.values())
    y = _Log(max(min(*ys, *peaks.values()), top * 1e-7), top, HEIGHT - BOTTOM, TOP)
    parts = []
    for decade in x.decades():
        parts += [line(x(decade), TOP, x(decade), HEIGHT - BOTTOM), _tick(x(decade), HEIGHT - BOTTOM + 16, decade)]
    for decade in y.decades():
        parts += [line(LEFT, y(decade), WIDTH - RIGHT, y(decade))]
        parts += [text(LEFT - 8, y(decade) + 4, show(decade, Unit.FLOP_PER_S), "axis", "end")]
    low_x, high_x = 10.0**x.low, 10.0**x.high
    for dtype, peak in peaks.items():
        ridge = peak / bandwidth
        start = max(low_x, 10.0**y.low / bandwidth)
        if start < ridge:
            parts.append(line(x(start), y(start * bandwidth), x(ridge), y(peak), "roof"))
        parts.append(line(x(min(max(ridge, low_x), high_x)), y(peak), x(high_x), y(peak), "roof"))
        parts.append(text(WIDTH - RIGHT + 6, y(peak) + 4, f"{dtype} {show(peak, Unit.FLOP_PER_S)}", "axis"))
    most = max(p[4] for p in points)
    for name, dtype, px, py, seconds, ceiling in sorted(points, key=lambda p: -p[4]):
        radius = SMALLEST + (LARGEST - SMALLEST) * math.sqrt(seconds / most if most else 0.0)
        title = f"{name} ({dtype}): {show(py, Unit.FLOP_PER_S)}, {py / ceiling:.0%} of its roof, {show(seconds, Unit.SECOND)}"
        parts.append(dot(x(px), y(max(py, 10.0**y.low)), radius, "point", title))
    taken: list[tuple[float, float]] = []
    for name, _, px, py, _, _ in sorted(points, key=lambda p: -p[4])[:LABELLED]:
        at = (x(px), y(max(py, 10.0**y.low)) - 18)
        if all(
            abs(at[0] - a) > 190 or abs(at[1] - b) > 14 for a, b in taken
        ):  # a label that hides another says nothing
            taken.append(at)
            parts.append(text(*at, short(name.split("(")[0], 26), "t", "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "operations a byte of memory traffic", "axis", "middle"))
    return parts


def _tick(x: float, y: float, value: float) -> str:
    return text(x, y, f"{value:g}", "axis", "middle")
