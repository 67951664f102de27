"""What the user asked for."""

from __future__ import annotations

from typing import List, Tuple

from stallwise.experiment.change import Change


class Options:
    """What the user asked for."""

    def __init__(
        self,
        only: Tuple[str, ...] = (),
        skip: Tuple[str, ...] = (),
        budget_s: float = 150.0,
        memory_share: float = 0.95,
        dry_run: bool = False,
        keep_training: bool = False,
        seed: int = 0,
        repeat: int = 1,
        trace: bool = True,
        max_steps: int = 0,
        verdict_s: float = 0.0,
    ) -> None:
        self.only = tuple(only)
        self.skip = tuple(skip)
        self.budget_s = budget_s
        self.memory_share = memory_share
        self.dry_run = dry_run
        self.keep_training = keep_training
        self.seed = seed
        self.repeat = repeat
        self.trace = trace
        self.max_steps = max_steps  # of the job, for all trials; 0 is as many as the seconds allow
        self.verdict_s = verdict_s  # to wait for a diagnosis of the first steps; 0 where nobody makes one

    def chosen(self, changes: List[Change]) -> List[Change]:
        """The trials that were asked for."""
        wanted = [c for c in changes if (c.name in self.only if self.only else not c.only_asked)]
        wanted = [c for c in wanted if c.name not in self.skip and not (self.keep_training and c.alters)]
        return sorted(wanted, key=lambda c: c.name)

    def rehearsal(self, changes: List[Change]) -> bool:
        """Some trial changes the training, so nothing of this run may be kept; a dry run ends early, too."""
        return self.dry_run or any(c.alters for c in self.chosen(changes))
