"""Where in a text stands what lines of a book set and clear: looked up at once, so that lines within it are read in columns."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, TypeAlias

from stallwise.evidence.skeletons import Skeletons
from stallwise.late import np
from stallwise.readers.text.metric_catalogue import LogMetric, MetricCatalogue

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Changes: TypeAlias = (
    "tuple[NDArray[np.int64], NDArray[np.bool_]]"  # places of the text in order, and whether it stands from there on
)


class Flags:
    """What is set without a value and depends on no other line; what else is set is known line by line."""

    def __init__(
        self, catalogue: MetricCatalogue, text: Skeletons, order: dict[int, list[LogMetric]], given: Container[str]
    ) -> None:
        self.numbers = {id(metric): number for number, metric in enumerate(catalogue.metrics)}
        self.changes: dict[str, _Changes] = {}
        asked = {id(metric): metric for own in order.values() for metric in own}.values()
        for name in {n for metric in asked for n in (metric.within, metric.until) if n and not catalogue.tables}:
            marking = [g for g in asked if name in g.sets or name in g.clears]
            bound = any(g.within or g.until or g.many or g.under or name in g.ready.groupindex for g in marking)
            if bound or any(name in slot for metric in asked for slot in metric.read):
                continue
            changes = {-1: name in given}
            for skeleton, own in order.items():
                for metric in (g for g in own if g in marking):
                    lines = metric.holding(text, skeleton)
                    changes |= dict.fromkeys(self._places(metric, lines).tolist(), name in metric.sets)
            self.changes[name] = np.array(sorted(changes)), np.array([changes[at] for at in sorted(changes)])

    def _places(self, metric: LogMetric, lines: Sequence[int]) -> NDArray[np.int64]:
        """In the text, those of one line as the book orders them."""
        return np.array(lines, dtype=np.int64) * len(self.numbers) + self.numbers[id(metric)]

    def know(self, *names: str) -> bool:
        """Whether it is known beforehand where all of these stand."""
        return self.changes.keys() >= set(names) - {""}

    def holds(self, metric: LogMetric, lines: Sequence[int]) -> NDArray[np.bool_]:
        """At which of these lines what it needs is set, and what ends it is not."""
        needed = self._stands(metric.within, metric, lines) if metric.within else np.full(len(lines), True)
        return needed & ~self._stands(metric.until, metric, lines) if metric.until else needed

    def _stands(self, name: str, metric: LogMetric, lines: Sequence[int]) -> NDArray[np.bool_]:
        """Set by a line above, or by an earlier gauge on the same one."""
        places, states = self.changes[name]
        found: NDArray[np.bool_] = states[np.searchsorted(places, self._places(metric, lines)) - 1]
        return found
