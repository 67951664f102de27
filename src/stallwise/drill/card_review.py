"""One card from question to mark: prose first, then the exact check, then the learner ticks what the prose held."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.drill.commitments import NOTHING, ticked
from stallwise.drill.deck import Card
from stallwise.drill.hints import not_found

STAGES = ("prose", "check", "ticks", "over")


@dataclass(slots=True)
class CardReview:
    """What was said to one card so far; `seed` orders the lines of its check."""

    card: Card
    seed: int = 0
    prose: str = ""
    right: bool = False
    ticks: tuple[bool, ...] = ()
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
        if self.stage == "check":
            return self.card.check.question(self.seed)
        listed = "\n".join(f"  {n}. {idea}" for n, idea in enumerate(self.ideas, start=1))
        missing = self.hints()
        hint = f"\n(a text check did not find: {', '.join(missing)}; a hint, not a mark)" if missing else ""
        return f"A good answer says this. Which of it did you say? (1 3, all, none){hint}\n{listed}"

    def hints(self) -> tuple[str, ...]:
        """Ideas whose words the text check did not find unnegated; nothing where nothing was written."""
        return tuple(idea[0] for idea in self.card.must if not_found(self.prose, idea)) if self.prose else ()

    def answer(self, text: str) -> str:
        """One answer; what it was taken for. Raises where it cannot be understood."""
        if self.stage == "prose":
            self.prose = "" if text.strip().lower() in NOTHING else text.strip()
            self.stage = "check"
            return ""
        if self.stage == "check":
            self.right = text.strip().lower() not in NOTHING and self.card.check.is_right(text, self.seed)
            self.stage = "ticks" if self.right and self.prose else "over"
            verdict = f"{'right' if self.right else 'no'}: {self.card.check.answer}"
            return verdict if self.stage == "ticks" else "\n".join([verdict, "", *self.ideas])
        self.ticks = ticked(text, len(self.ideas))
        self.stage = "over"
        return f"{sum(self.ticks)} of {len(self.ideas)} ticked"

    @property
    def verdict(self) -> str:
        """again, pass or strong: the exact check decides between the first two, the ticks only between the last two."""
        if not self.right:
            return "again"
        return "strong" if self.ticks and all(self.ticks) else "pass"

    @property
    def share(self) -> float:
        """For the record: what was right and told."""
        ticked = sum(self.ticks) / len(self.ticks) if self.ticks else 0.0
        return (0.5 + 0.5 * ticked) if self.right else 0.0
