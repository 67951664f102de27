"""Where in a text stands what lines of a book set and clear: looked up at once, so that lines within it are read in columns."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, TypeAlias

from stallwise.evidence.skeletons import Skeletons
from stallwise.late import np
from stallwise.readers.text.gauge_book import Gauge, GaugeBook

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Marks: TypeAlias = (
    "tuple[NDArray[np.int64], NDArray[np.bool_]]"  # places of the text in order, and whether it stands from there on
)


class Flags:
    """What is set without a value and depends on no other line; what else is set is known line by line."""

    def __init__(self, book: GaugeBook, text: Skeletons, order: dict[int, list[Gauge]], given: Container[str]) -> None:
        self.numbers = {id(gauge): number for number, gauge in enumerate(book.gauges)}
        self.marks: dict[str, _Marks] = {}
        asked = {id(gauge): gauge for own in order.values() for gauge in own}.values()
        for name in {n for gauge in asked for n in (gauge.within, gauge.until) if n and not book.tables}:
            marking = [g for g in asked if name in g.sets or name in g.clears]
            bound = any(g.within or g.until or g.many or g.under or name in g.ready.groupindex for g in marking)
            if bound or any(name in told for gauge in asked for told in gauge.read):
                continue
            marks = {-1: name in given}
            for skeleton, own in order.items():
                for gauge in (g for g in own if g in marking):
                    lines = gauge.holding(text, skeleton)
                    marks |= dict.fromkeys(self._places(gauge, lines).tolist(), name in gauge.sets)
            self.marks[name] = np.array(sorted(marks)), np.array([marks[at] for at in sorted(marks)])

    def _places(self, gauge: Gauge, lines: Sequence[int]) -> NDArray[np.int64]:
        """In the text, those of one line as the book orders them."""
        return np.array(lines, dtype=np.int64) * len(self.numbers) + self.numbers[id(gauge)]

    def know(self, *names: str) -> bool:
        """Whether it is known beforehand where all of these stand."""
        return self.marks.keys() >= set(names) - {""}

    def speaks(self, gauge: Gauge, lines: Sequence[int]) -> NDArray[np.bool_]:
        """At which of these lines what it needs is set, and what ends it is not."""
        needed = self._stands(gauge.within, gauge, lines) if gauge.within else np.full(len(lines), True)
        return needed & ~self._stands(gauge.until, gauge, lines) if gauge.until else needed

    def _stands(self, name: str, gauge: Gauge, lines: Sequence[int]) -> NDArray[np.bool_]:
        """Set by a line above, or by an earlier gauge on the same one."""
        places, states = self.marks[name]
        found: NDArray[np.bool_] = states[np.searchsorted(places, self._places(gauge, lines)) - 1]
        return found
