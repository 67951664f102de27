"""A failed allocation at hand for a rule: its sizes, what they add up to, and the plan that would make it fit."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, show

# Unused reserve beyond this part of the device is more than the allocator's usual rounding.
SPLIT_SHARE = 0.08
UNFINISHED = 10.0  # times the shortfall, below which a pass that is not over may fail again


@dataclass(frozen=True, slots=True)
class Failure:
    """A view on the evidence of an out-of-memory error."""

    evidence: Evidence

    def get(self, quantity: Quantity, default: float = 0.0) -> float:
        """The number, or the default."""
        value = self.evidence.value(quantity, default)
        return default if value != value else value

    def knows(self, quantity: Quantity) -> bool:
        """True where it is known."""
        return self.evidence.get(quantity) is not None

    @property
    def phase(self) -> str:
        """What the program was doing."""
        return self.evidence.text(m.PHASE)

    @property
    def request(self) -> float:
        """Bytes asked for."""
        return self.get(m.REQUEST)

    @property
    def capacity(self) -> float:
        """Bytes of the device, as far as they are known."""
        return self.get(m.CAPACITY) or self.get(m.RESERVED) + self.get(m.FREE)

    @property
    def fits_in_pieces(self) -> bool:
        """What is free and what is reserved without a tensor would hold the request, were they one piece."""
        return self.request <= self.get(m.FREE) + self.get(m.UNUSED_RESERVED)

    @property
    def fragmented(self) -> bool:
        """Free pieces would have sufficed together, and are far more than rounding."""
        unused, free = self.get(m.UNUSED_RESERVED), self.get(m.FREE)
        if not self.request or not self.knows(m.UNUSED_RESERVED):
            return False
        return free < self.request <= free + unused and unused >= SPLIT_SHARE * max(self.capacity, 1.0)

    @property
    def foreign(self) -> bool:
        """Other processes hold what was lacking, and a good part of the device."""
        elsewhere = self.get(m.ELSEWHERE)
        return elsewhere >= max(self.get(m.SHORTFALL), 0.10 * self.capacity) > 0

    @property
    def inexplicable(self) -> bool:
        """More was free than was asked for: the sizes do not explain the failure."""
        return self.knows(m.FREE) and 0 < 1.05 * self.request < self.get(m.FREE)

    @property
    def oversized(self) -> bool:
        """Asked for more than the whole device has, with little in it."""
        return self.request > self.capacity > 0 and self.get(m.ALLOCATED) < 0.5 * self.capacity

    @property
    def absurd(self) -> bool:
        """No device could hold the request."""
        return self.request > 4 * max(self.capacity, 2e10)

    def show(self, quantity: Quantity) -> str:
        """The number as people write it."""
        return show(self.get(quantity), Unit.BYTE)

    def reason(self, text: str, *quantities: Quantity) -> Reason:
        """A sentence with its places."""
        return Reason.of(text, *(f for q in quantities if (f := self.evidence.get(q)) is not None))

    def sizes(self) -> Reason:
        """The message in one sentence."""
        parts = [f"{self.show(m.REQUEST)} asked"] if self.knows(m.REQUEST) else ["an allocation failed"]
        words = {
            m.FREE: "free",
            m.SHORTFALL: "short",
            m.ALLOCATED: "in tensors",
            m.UNUSED_RESERVED: "reserved but unused",
            m.CAPACITY: "in all",
        }
        for quantity, word in words.items():
            if self.knows(quantity):
                parts.append(f"{self.show(quantity)} {word}")
        return self.reason(", ".join(parts), m.REQUEST, m.FAILED)

    def composition(self) -> tuple[Reason, ...]:
        """What the peak is made of, largest first, where a snapshot tells."""
        peak = self.get(m.PEAK)
        parts = {m.WEIGHTS: "weights", m.GRADIENTS: "gradients", m.OPTIMIZER: "optimizer", m.ACTIVATIONS: "activations",
                 m.LOGITS: "loss", m.TEMPORARY: "temporary", m.OTHER: "other code", m.UNEXPLAINED: "unexplained"}  # fmt: skip
        known = sorted(((self.get(q), word) for q, word in parts.items() if self.get(q) > 0.005 * peak), reverse=True)
        if not peak or not known:
            return ()
        text = ", ".join(f"{word} {show(size, Unit.BYTE)}" for size, word in known)
        return (self.reason(f"the {self.show(m.PEAK)} alive were: {text}", m.PEAK),)

    def place(self) -> tuple[Reason, ...]:
        """Where it failed."""
        where = self.evidence.text(m.PLACE)
        if not where:
            return ()
        during = f" during {self.phase}" if self.phase else ""
        return (self.reason(f"it failed{during}, at {where}", m.PLACE, m.PHASE),)

    def _enough(self, freed: float) -> str:
        """In the middle of a forward pass later layers will ask for more than the allocation that failed."""
        if self.phase == "forward" and freed < UNFINISHED * self.get(m.SHORTFALL):
            return ": covers this request, later layers need more"
        return ": fits"

    def plan(self, *first: str) -> tuple[Fix, ...]:
        """What would make it fit, cheapest first; options whose name starts with one of `first` lead."""
        fixes = []
        for table in self.evidence.table("memory.plan"):
            columns = table.columns
            for action, size, fits, cost, risk in zip(
                columns["action"],
                columns["saves_bytes"],
                columns["fits"],
                columns["cost"],
                columns["risk"],
                strict=True,
            ):
                worth = f"frees {show(float(size), Unit.BYTE)}" + (
                    self._enough(float(size)) if fits else ": not enough alone"
                )
                fixes.append(Fix(str(action), worth=worth, cost=str(cost), risk=str(risk)))
        return tuple(sorted(fixes, key=lambda f: not f.action.startswith(first))) if first else tuple(fixes)
