"""What samples say of each card, in numbers: load, power, heat, clocks, throttle reasons, memory, errors and its PCIe link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from stallwise.evidence.catalog.hardware import PCIE_LIMITED
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.gpu_load import LOADED_SHARE
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIB, MHZ = float(1 << 20), 1e6
IDLE_BIT = 0x1
UNSTEADY = 1.25  # highest over middle value: below, one number says it
# nvml.h, nvmlClocksEventReason*; what an application or a display asked for holds no card back against its will.
REASONS = (
    (0x4, "SW power cap"),
    (0x8, "HW slowdown"),
    (0x20, "SW thermal slowdown"),
    (0x40, "HW thermal slowdown"),
    (0x80, "HW power brake"),
)
NOT_HERE = (
    ("utilisation_share", "load"),
    ("clock_sm_hz", "clocks"),
    ("reasons", "throttle reasons"),
    ("pcie_width", "PCIe link"),
    ("ecc_uncorrected", "ECC counters"),
)
Values: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, eq=False)
class Card:
    """All samples of one card."""

    scope: Scope
    name: str
    columns: dict[str, Values]
    sources: tuple[Source, ...]

    @property
    def label(self) -> str:
        """ "GPU 3", with its node where there is one."""
        node = f" of {self.scope.node}" if self.scope.node else ""
        return f"GPU {self.scope.gpu}{node}" if self.scope.gpu is not None else f"the GPU{node}"

    def known(self, column: str) -> Values:
        """The values of a column that say something."""
        values = self.columns.get(column, np.empty(0))
        return values[~np.isnan(values)]

    def typical(self, column: str) -> float:
        """Its median; NaN where the column is not there."""
        values = self.known(column)
        return float(np.median(values)) if len(values) else float("nan")

    def mean(self, column: str) -> float:
        """Its mean; NaN where the column is not there."""
        return float(self.known(column).mean()) if len(self.known(column)) else float("nan")

    def most(self, column: str) -> float:
        """Its highest value; NaN where the column is not there."""
        return float(self.known(column).max(initial=-np.inf)) if len(self.known(column)) else float("nan")

    @cached_property
    def samples(self) -> int:
        """How often it was looked at."""
        return len(next(iter(self.columns.values()), ()))

    @cached_property
    def busy_share(self) -> float:
        """Of the samples, those in which it was at least half busy; NaN where its load is not known."""
        use = self.known("utilisation_share")
        return float((use >= LOADED_SHARE).mean()) if len(use) else float("nan")

    @cached_property
    def bits(self) -> NDArray[np.int64]:
        """Its throttle reasons, sample by sample."""
        return self.known("reasons").astype(np.int64)

    @property
    def held(self) -> list[str]:
        """Reasons that were active, each with its share of the samples where there are several."""
        found = []
        for bit, title in REASONS:
            share = float(((self.bits & bit) != 0).mean()) if len(self.bits) else 0.0
            if share:
                found.append(title + (f" in {share:.0%} of the samples" if len(self.bits) > 1 else ""))
        return found


def cards_in(evidence: Evidence) -> list[Card]:
    """One for each card, whatever files its samples lie in."""
    groups: dict[tuple[Scope, str], list[Table]] = {}
    for table in evidence.table("gpu.samples"):
        groups.setdefault((table.scope, str(table.meta.get("name", ""))), []).append(table)
    return [_card(scope, name, tables) for (scope, name), tables in groups.items()]


def _card(scope: Scope, name: str, tables: Sequence[Table]) -> Card:
    names = dict.fromkeys(n for t in tables for n in t.columns)
    columns = {
        n: np.concatenate([t.columns.get(n, np.full(len(t), np.nan)) for t in tables]).astype(float) for n in names
    }
    return Card(scope, name, columns, tuple(dict.fromkeys(t.source for t in tables)))


def limited_links(evidence: Evidence) -> list[Fact]:
    """What the kernel says of narrow links; of a machine whose cards are listed only what concerns these or says itself what it is."""
    known = {str(t.meta["bus_id"])[-10:] for t in evidence.table("gpu.samples") if t.meta.get("bus_id")}
    found = evidence.all(PCIE_LIMITED)
    return [
        f
        for f in found
        if not known or not (line := str(f.value).lower()).startswith("pci ") or any(i in line for i in known)
    ]


def described(cards: Sequence[Card]) -> str:
    """The numbers of these cards, as ranges where they differ; what nobody sampled is left out."""
    parts = [
        spread(cards, lambda c: 100 * c.typical("utilisation_share"), "% busy")
        + _over_time(cards, "utilisation_share", 100, "%"),
        _of(cards, "power_w", "power_limit_w", "W", 1.0) + _over_time(cards, "power_w", 1, " W"),
        spread(cards, lambda c: c.most("temperature_c"), " C"),
        _of(cards, "clock_sm_hz", "clock_sm_max_hz", "MHz", MHZ),
        _memory(cards),
        _throttle(cards),
        _link(cards),
        _errors(cards),
    ]
    return ", ".join(part for part in parts if part)


def not_sampled(cards: Sequence[Card]) -> str:
    """What these files do not hold of any card."""
    missing = [title for column, title in NOT_HERE if not any(len(c.known(column)) for c in cards)]
    return f"not in this file: {', '.join(missing)}" if missing else ""


def spread(cards: Iterable[Card], value: Callable[[Card], float], unit: str) -> str:
    """ "74-76 W", or "74 W" where all are alike."""
    known = sorted(v for c in cards if (v := value(c)) == v)
    if not known:
        return ""
    low, high = f"{known[0]:.0f}", f"{known[-1]:.0f}"
    return f"{low}{unit}" if low == high else f"{low}-{high}{unit}"


def _of(cards: Sequence[Card], column: str, limit: str, unit: str, scale: float) -> str:
    """A value against its limit."""
    have = spread(cards, lambda c: c.typical(column) / scale, f" {unit}")
    most = spread(cards, lambda c: c.most(limit) / scale, f" {unit}")
    return f"{have} of {most}" if have and most else have


def _over_time(cards: Sequence[Card], column: str, scale: float, unit: str) -> str:
    """Of recordings whose middle value says little: the mean and the highest."""
    mean = spread(cards, lambda c: scale * c.mean(column), "")
    most = spread(cards, lambda c: scale * c.most(column), "")
    far = [c for c in cards if c.samples > 1 and c.most(column) > UNSTEADY * max(c.typical(column), 1 / scale)]
    return f" ({mean}{unit} in the mean, at most {most}{unit})" if far else ""


def _memory(cards: Sequence[Card]) -> str:
    have = spread(cards, lambda c: c.most("memory_used_bytes") / MIB, "")
    most = spread(cards, lambda c: c.most("memory_total_bytes") / MIB, "")
    if not have:
        return spread(cards, lambda c: 100 * c.most("memory_used_share"), "% of its memory held")
    return f"{have} of {most} MiB held" if most else f"{have} MiB held"


def _throttle(cards: Sequence[Card]) -> str:
    with_bits = [c for c in cards if len(c.bits)]
    if not with_bits:
        return ""
    held = {c.label: c.held for c in with_bits if c.held}
    if not held:
        return "no throttle reason active"
    reasons = list(dict.fromkeys(reason for found in held.values() for reason in found))
    idle = all(c.typical("power_w") < LOADED_SHARE * c.most("power_limit_w") for c in with_bits if c.held)
    means = " (far below their power limit, where it means nothing)" if reasons == ["SW power cap"] and idle else ""
    who = "" if len(held) == len(cards) else f" on {', '.join(list(held)[:4])}{' and others' if len(held) > 4 else ''}"
    return f"{' and '.join(reasons[:3])}{who}{means}, no other throttle reason"


def _link(cards: Sequence[Card]) -> str:
    gen, width = spread(cards, lambda c: c.most("pcie_gen"), ""), spread(cards, lambda c: c.typical("pcie_width"), "")
    most = spread(cards, lambda c: c.most("pcie_gen_max"), "")
    lanes = spread(cards, lambda c: c.most("pcie_width_max"), "")
    words = [
        f"Gen{gen}" + (f" of Gen{most}" if most and most != gen else "") if gen else "",
        f"x{width}" + (f" of x{lanes}" if lanes and lanes != width else "") if width else "",
    ]
    return f"PCIe {' '.join(w for w in words if w)}" if any(words) else ""


def _errors(cards: Sequence[Card]) -> str:
    parts = []
    for columns, title in (
        (("ecc_uncorrected", "ecc_uncorrected_ever"), "uncorrected ECC errors"),
        (("ecc_corrected", "ecc_corrected_ever"), "corrected ECC errors"),
        (("remapped_uncorrectable", "remapped_correctable"), "rows remapped"),
        (("pages_retired",), "pages retired"),
        (("pcie_replays",), "PCIe replays"),
    ):
        known = [c.most(column) for c in cards for column in columns if len(c.known(column))]
        if known and (max(known) > 0 or title != "PCIe replays"):
            parts.append(f"{max(known):.0f} {title}")
    return ", ".join(parts)
