"""Speculative decoding: what a draft gains, and what checking it costs (Leviathan 2023)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Speculation:
    """A draft of so many tokens, each right with this probability given that those before it were."""

    tokens: int = 0
    acceptance: float = 0.0
    draft_share: float = 0.1  # of a decode iteration that drafting takes

    @property
    def gain(self) -> float:
        """Tokens an iteration yields: the accepted part of the draft and one more."""
        if not self.tokens or self.acceptance >= 1:
            return 1.0 + self.tokens
        return float((1 - self.acceptance ** (self.tokens + 1)) / (1 - self.acceptance))

    def token_s(self, plain_s: float, verified_s: float) -> float:
        """Seconds a token: the iteration that checks the draft and the drafting itself, over what they yield."""
        return (verified_s + self.tokens * self.draft_share * plain_s) / self.gain


NO_SPECULATION = Speculation()
