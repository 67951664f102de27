"""Where one step ends and the next begins, in a loop that nobody described.

Whatever repeats is a candidate, and the one that says most wins: the user's own `step()`, an optimizer that steps, a backward
pass, a forward pass, the replay of a CUDA graph, a batch, a span. A weaker sign is believed only after it has repeated for a
while and nothing stronger was seen, since a training loop shows batches and forward passes before its optimizer first steps.
A loop that has been captured into a graph shows replays alone from then on: they take over from what has fallen silent.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, Optional

USER = "user"
OPTIMIZER = "optimizer"
BACKWARD = "backward"
ANSWER = "answer"  # a whole `generate()`; only trials listen for it
FORWARD = "forward"
REPLAY = "replay"
BATCH = "batch"
SPAN = "span"
STRENGTH = {SPAN: 1, BATCH: 2, REPLAY: 3, FORWARD: 4, ANSWER: 5, BACKWARD: 6, OPTIMIZER: 7, USER: 8}
AT_ONCE = (USER, OPTIMIZER)
# How often a weaker sign repeats before it is believed: gradient accumulation runs up to some dozens of backward passes
# before its first optimizer step. A slow program is believed sooner: after a few repeats over some seconds.
ENOUGH = {BACKWARD: 48, ANSWER: 4, FORWARD: 16, REPLAY: 16, BATCH: 16, SPAN: 8}
FEW, SLOW_S = 4, 5.0
SILENT_FOR_S = 1.0  # longer than any one step that itself replays graphs: after it, what used to end steps has stopped
REPEATS = 8  # another optimizer (or model) that came so often since the leader last did has taken its place


class Leader:
    """Of several optimizers or models, the one whose turn ends a step. Held weakly: it may be freed at any time."""

    def __init__(self) -> None:
        self._ref: Callable[[], Any] = lambda: None
        self._turns: Dict[int, int] = {}

    def is_led_by(self, candidate: Any) -> bool:
        """True if this one's turn is a border."""
        leader = self._ref()
        if candidate is leader:
            if self._turns:
                self._turns.clear()
            return True
        turns = self._turns.get(id(candidate), 0) + 1
        self._turns[id(candidate)] = turns
        if leader is not None and turns < REPEATS:
            return False
        self._turns.clear()
        try:
            self._ref = weakref.ref(candidate)
        except TypeError:  # not weakly referable: every turn of such a one counts
            self._ref = lambda: None
        return True


class Borders:
    """Hears signs and says which of them end a step."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.kind: Optional[str] = None
        self._now = now
        self._leaders = {OPTIMIZER: Leader(), FORWARD: Leader(), REPLAY: Leader()}
        self._seen: Dict[str, int] = {}
        self._first_s: Dict[str, float] = {}
        self._last_s = 0.0  # when the current kind last came

    def ends(self, kind: str, who: Any = None) -> Optional[bool]:
        """True: a step ends here. None: from here on this kind counts, the first step begins. False: nothing."""
        current = self.kind
        if current is not None and STRENGTH[kind] < STRENGTH[current]:
            if kind != REPLAY or current == USER or self._now() - self._last_s < SILENT_FOR_S:
                return False
        leader = self._leaders.get(kind)
        if leader is not None and not leader.is_led_by(who):
            return False
        if kind == current:
            self._last_s = self._now()
            return True
        if kind in AT_ONCE:
            self.kind, self._last_s = kind, self._now()
            return True
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        first_s = self._first_s.setdefault(kind, self._now())
        if seen >= ENOUGH[kind] or (seen >= FEW and self._now() - first_s >= SLOW_S):
            self.kind, self._last_s = kind, self._now()
            self._seen.clear()
            return None
        return False
