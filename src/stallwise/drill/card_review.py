"""One card from question to mark: answered in the learner's own words, then the exact check, then how sure.

The words are read back as ideas found, missing and denied. They cannot earn a mark, since a wrong sentence holds the same words as a
right one; without a sentence, or with one that denies an idea of the answer, nothing is strong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.drill.claims.reader import Idea, claims_in, is_prose
from stallwise.drill.deck import Card
from stallwise.drill.lines_chosen import NOTHING, how_sure

STAGES = ("prose", "again", "check", "sure", "over")
VERY_SURE = 0.8  # a right answer that was believed is known; one that was guessed comes back sooner


@dataclass(slots=True)
class CardReview:
    """What was answered to one card so far; `seed` orders the lines of its check."""

    card: Card
    seed: int = 0
    prose: str = ""
    right: bool = False
    sure: float | None = None
    stage: str = "prose"

    @property
    def ideas(self) -> tuple[str, ...]:
        """The model answer, one idea a line."""
        parts = re.split(r"(?<=[a-z0-9)%][.;?])\s+(?=[A-Z0-9(\"'])", self.card.answer)
        return tuple(p.strip() for p in parts if p.strip())

    def asks(self) -> str:
        """What is put to the learner now."""
        if self.stage == "prose":
            return self.card.ask
        if self.stage == "again":
            return "I could not read an answer in that. Once more, in a whole sentence? (or: skip)"
        if self.stage == "sure":
            return "How sure are you? (like 80%, or: skip)"
        return self.card.check.question(self.seed)

    def _read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ideas of the answer that the prose affirms, and those that it only denies."""
        if not is_prose(self.prose):
            return (), ()
        wanted = [Idea(words[0], words[0], (("|".join(f"{w}*" for w in words),),)) for words in self.card.must]
        claims = claims_in(self.prose, wanted)
        found = {c.idea for c in claims if not c.denied}
        denied = {c.idea for c in claims} - found
        return tuple(i.name for i in wanted if i.name in found), tuple(i.name for i in wanted if i.name in denied)

    @property
    def found(self) -> tuple[str, ...]:
        """Ideas that were read from the prose."""
        return self._read()[0]

    def answer(self, text: str) -> str:
        """One answer; what it was taken for. Raises where it cannot be understood."""
        if self.stage in ("prose", "again"):
            first, given = self.stage == "prose", "" if text.strip().lower() in NOTHING else text.strip()
            self.prose = f"{self.prose} {given}".strip()
            self.stage = "again" if first and given and not is_prose(given) else "check"
            return ""
        if self.stage == "check":
            self.right = text.strip().lower() not in NOTHING and self.card.check.is_right(text, self.seed)
            self.stage = "over" if text.strip().lower() in NOTHING else "sure"
            return "" if self.stage == "sure" else self._reveal()
        self.sure = None if text.strip().lower() in NOTHING else how_sure(text)
        self.stage = "over"
        return self._reveal()

    def _reveal(self) -> str:
        found, denied = self._read()
        lines = [f"{'right' if self.right else 'wrong; right is'}: {self.card.check.answer}"]
        if self.prose:
            missing = [words[0] for words in self.card.must if words[0] not in (*found, *denied)]
            lines += [f"not found in your words: {', '.join(missing)}"] if missing else []
            lines += [f"denied in your words: {', '.join(denied)}"] if denied else []
        return "\n".join([*lines, "", *self.ideas])

    @property
    def verdict(self) -> str:
        """again, pass or strong: the exact check decides, then how sure a right answer was and what its words say."""
        if not self.right:
            return "again"
        stated = is_prose(self.prose) and not self._read()[1]
        return "strong" if stated and self.sure is not None and self.sure >= VERY_SURE else "pass"

    @property
    def share(self) -> float:
        """For the record: one less the quadratic loss of what was believed; without it, right or wrong."""
        return float(self.right) if self.sure is None else 1.0 - (self.sure - self.right) ** 2
