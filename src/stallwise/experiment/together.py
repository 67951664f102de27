"""Two changes at once: whether their gains add."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from stallwise.experiment.change import Change, Undo


class Together(Change):
    """Both of a pair."""

    def __init__(self, one: Change, other: Change) -> None:
        self.both = (one, other)
        self.name = "%s + %s" % (one.name, other.name)
        self.title = "%s, and %s" % (one.title, other.title)
        self.causes = tuple(dict.fromkeys((*one.causes, *other.causes)))
        self.alters = one.alters or other.alters
        self.keeps_loss = one.keeps_loss and other.keeps_loss
        self.needs = "; ".join(text for text in (one.needs, other.needs) if text)
        self.risk = "; ".join(text for text in (one.risk, other.risk) if text)
        self.work_ratio = one.work_ratio * other.work_ratio

    def refuses(self, scene: Any) -> Optional[str]:
        return self.both[0].refuses(scene) or self.both[1].refuses(scene)

    def apply(self, scene: Any, undo: Undo) -> None:
        for change in self.both:
            change.apply(scene, undo)

    def begin(self, scene: Any, undo: Undo) -> None:
        for change in self.both:
            change.begin(scene, undo)

    def block_steps(self, scene: Any, steps: int) -> int:
        return max(change.block_steps(scene, steps) for change in self.both)

    def settle_steps(self, scene: Any) -> int:
        return max(change.settle_steps(scene) for change in self.both)

    def on_step(self, scene: Any) -> None:
        for change in self.both:
            change.on_step(scene)

    def adds(self, result: Any, alone: List[Any]) -> Dict[str, Any]:
        """What both would be worth if one left the other untouched, and what they are."""
        found: Dict[str, Any] = {"of": [c.name for c in self.both]}
        alone_ratios = {r.name: r.estimate for r in alone if r.estimate is not None}
        one, other = (alone_ratios[c.name] for c in self.both)
        product, low, high = one.ratio * other.ratio, one.low * other.low, one.high * other.high
        both = result.estimate
        if both is None or not both.conclusive():
            word = "whether they add is not known"
        elif both.high < low:
            word = "less than both: they win part of the same time"
        elif both.low > high:
            word = "more than both: one makes room for the other"
        else:
            word = "they add"
        return {**found, "if_independent_ratio": product, "adds": word}


def best_pair(tried: List[Change], found: List[Any]) -> List[Change]:
    """The two best that may be used at once; fewer where there are none."""
    gains = sorted((r for r in found if r.faster), key=lambda r: -r.estimate.ratio)
    by_name = {c.name: c for c in tried}
    best: List[Change] = []
    for result in gains:
        change = by_name.get(result.name)
        if change is None or any(
            change is b or change.name in b.instead_of or b.name in change.instead_of for b in best
        ):
            continue
        best.append(change)
        if len(best) == 2:
            return best
    return []
