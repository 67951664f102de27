"""What a training run asks for: lengths, batch, and how much of it in all."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.errors import BadRequest

MOST_SEQUENCES = 10_000_000  # a step of 10^7 sequences has more tokens than most corpora
MOST_TOKENS_PER_SEQUENCE = 100_000_000


@dataclass(frozen=True)
class Workload:
    """One optimizer step is `global_batch` sequences of `seq` tokens."""

    seq: int
    global_batch: int
    tokens: float = 0.0  # the whole run; 0: not asked
    moe_imbalance_ratio: float = 1.0  # busiest expert group over the mean; 1 = forced balance, as benchmarks run

    def __post_init__(self) -> None:
        if not 1 <= self.seq <= MOST_TOKENS_PER_SEQUENCE:
            nearest = min(max(self.seq, 1), MOST_TOKENS_PER_SEQUENCE)
            raise BadRequest(f"a sequence of {self.seq:,} tokens cannot be", hint=f"the nearest is {nearest:,}")
        if not 1 <= self.global_batch <= MOST_SEQUENCES:
            nearest = min(max(self.global_batch, 1), MOST_SEQUENCES)
            raise BadRequest(
                f"a global batch of {self.global_batch:.3g} sequences cannot be",
                hint=f"the nearest that can is {nearest:,}",
            )
        if self.moe_imbalance_ratio < 1:
            raise BadRequest("the busiest expert cannot have less than the mean", hint="1 is perfect balance")

    @property
    def tokens_per_step(self) -> int:
        """Tokens one optimizer step consumes."""
        return self.seq * self.global_batch
