"""Where one step ends and the next begins, in a loop that nobody described.

Whatever repeats is a candidate, and the one that says most wins: the user's own `step()`, an optimizer that steps, a backward
pass, a forward pass, the replay of a CUDA graph, a batch, a span. A weaker sign is believed only after it has repeated for a
while and nothing stronger was seen, since a training loop shows batches and forward passes before its optimizer first steps.
A loop that has been captured into a graph shows replays alone from then on: they take over from what has fallen silent.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, Optional

from stallwise.recorder import schema

USER = "user"
OPTIMIZER = "optimizer"
BACKWARD = "backward"
ANSWER = "answer"  # a whole `generate()`; only trials listen for it
FORWARD = "forward"
REPLAY = "replay"
BATCH = "batch"
SPAN = "span"
STRENGTH = {SPAN: 1, BATCH: 2, REPLAY: 3, FORWARD: 4, ANSWER: 5, BACKWARD: 6, OPTIMIZER: 7, USER: 8}
# Inside a span of its own stage the sign ends the step with that span: `zero_grad` after the step belongs to it.
STAGE_OF = {OPTIMIZER: schema.OPTIMIZER, BACKWARD: schema.BACKWARD}
AT_ONCE = (USER, OPTIMIZER)
# How often a weaker sign repeats before it is believed: gradient accumulation runs up to some dozens of backward passes
# before its first optimizer step. A slow program is believed sooner: after a few repeats over some seconds.
ENOUGH = {BACKWARD: 48, ANSWER: 4, FORWARD: 16, REPLAY: 16, BATCH: 16, SPAN: 8}
FEW, SLOW_S = 4, 5.0
SILENT_FOR_S = 1.0  # longer than any one step that itself replays graphs: after it, what used to end steps has stopped
# Another optimizer (or model) that came so often since the leader last did has taken its place. Adversarial training has one
# generator step to 5, in the first rounds to 100 critic steps (Arjovsky et al. 2017): these are rounds, not a new leader.
REPEATS = 128
LONGER = 4  # or so many times the longest round seen
FEW_REPEATS, LONG_S = 8, 60.0  # slow steps are not waited for so long

# What a sign means.
NOTHING = ""
ENDS = "ends"  # a step ends here
BEGINS = "begins"  # from here on this kind counts, the first step begins
PART = "part"  # of a round: another one's turn is over, the step goes on
TAKES_OVER = "takes over"  # the parts since the leader's last turn were steps of their own, and so is this


class Leader:
    """Of several optimizers or models, the one whose turn ends a step. Held weakly: it may be freed at any time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ref: Callable[[], Any] = lambda: None
        self._former: Callable[[], Any] = lambda: None  # the leader that was thought to have gone
        self._turns: Dict[int, int] = {}
        self._longest = 0  # turns of another one in one round
        self._last_s = 0.0

    def turn(self, candidate: Any, patient: bool = True) -> str:
        """What it means that this one has had its turn. Not `patient`: no steps are counted by it so far."""
        leader = self._ref()
        if candidate is leader and not self._turns:
            self._last_s = self._now()
            return ENDS
        if candidate is leader or candidate is self._former():
            if self._turns:
                self._longest = max(self._longest, max(self._turns.values()))
                self._turns.clear()
            if candidate is not leader:
                self._longest = max(self._longest, REPEATS)  # it had not gone: its rounds are long
                self._ref, self._former = self._former, lambda: None
            self._last_s = self._now()
            return ENDS
        turns = self._turns.get(id(candidate), 0) + 1
        self._turns[id(candidate)] = turns
        if leader is not None and not self._gone(turns, patient):
            return PART
        self._turns.clear()
        self._former, self._last_s = self._ref, self._now()
        try:
            self._ref = weakref.ref(candidate)
        except TypeError:  # not weakly referable: every turn of such a one counts
            self._ref = lambda: None
        return ENDS if leader is None else TAKES_OVER

    def _gone(self, turns: int, patient: bool) -> bool:
        if turns >= max(REPEATS if patient else FEW_REPEATS, LONGER * self._longest):
            return True
        return turns >= max(FEW_REPEATS, LONGER * self._longest) and self._now() - self._last_s > LONG_S


class StepBoundaries:
    """Hears signs and says which of them end a step."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.kind: Optional[str] = None
        self.strength = 0  # of the current kind: what is weaker need not be asked
        self._now = now
        self._leaders = {OPTIMIZER: Leader(now), FORWARD: Leader(now), REPLAY: Leader(now)}
        self._seen: Dict[str, int] = {}
        self._first_s: Dict[str, float] = {}
        self._last_s = 0.0  # when the current kind last came

    def lead(self, kind: str) -> None:
        """From here on this kind ends steps."""
        self.kind, self.strength, self._last_s = kind, STRENGTH[kind], self._now()

    def sign(self, kind: str, who: Any = None) -> str:
        """What this sign means for the steps."""
        current = self.kind
        if STRENGTH[kind] < self.strength:
            if kind != REPLAY or current == USER or self._now() - self._last_s < SILENT_FOR_S:
                return NOTHING
        leader = self._leaders.get(kind)
        turn = leader.turn(who, patient=kind == current) if leader is not None else ENDS
        if turn == PART:
            return PART if kind == current else NOTHING
        if kind == current:
            self._last_s = self._now()
            return turn
        if kind in AT_ONCE:
            self.lead(kind)
            return ENDS
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        first_s = self._first_s.setdefault(kind, self._now())
        if seen >= ENOUGH[kind] or (seen >= FEW and self._now() - first_s >= SLOW_S):
            self.lead(kind)
            self._seen.clear()
            return BEGINS
        return NOTHING
