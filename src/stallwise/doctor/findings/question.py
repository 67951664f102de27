"""A question to the user: choices to pick from, and what each would add to the evidence."""

from __future__ import annotations

from dataclasses import dataclass

DONT_KNOW = "don't know"
NONE_OF_THESE = "none of these"


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that is offered."""

    text: str
    states: tuple[str, ...] = ()  # WORD=VALUE, as with --fact
    key: str = ""  # its row in the table of answers


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask next, and which causes the answers separate."""

    text: str
    choices: tuple[Choice, ...]  # "don't know" last
    separates: tuple[str, ...] = ()
    information_bits: float = 0.0

    @property
    def keys(self) -> frozenset[str]:
        """What has been asked, once this has."""
        return frozenset(filter(None, (self.text, *(c.key for c in self.choices))))
