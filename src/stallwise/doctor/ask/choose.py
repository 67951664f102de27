"""Which question to ask: the one whose answer is expected to say most about which cause is right."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from stallwise.doctor.ask.bank import SEEN, Bank, bank
from stallwise.doctor.findings.question import DONT_KNOW, NONE_OF_THESE, Choice, Question
from stallwise.doctor.fitting import fits
from stallwise.doctor.presence import Presence
from stallwise.evidence.evidence import Evidence

MOST_CHOICES = 6  # sentences that a person reads at a glance
CANDIDATES = 24  # causes whose sight may be offered
MOST_ANSWERED = 0.95  # nobody can answer everything
# Of the bits that its counts promise: who is asked in general words often cannot say, or says what fits many causes.
GENERAL = 0.7
LEAST_BITS = 0.02  # below it an answer would change nothing
MOST_SEPARATED = 6  # causes that are named
WHICH_SEEN = "Which of these do you see?"


@dataclass(frozen=True, slots=True)
class Asker:
    """What is likely so far, over the causes of the bank, and what is left for causes that it does not know."""

    bank: Bank
    chances: Sequence[float]  # by cause, something else last

    def rows(self, choices: Sequence[Choice]) -> list[list[float]]:
        """Choice x cause: how often each is the answer. What has another cause is answered as on average."""
        none = [0.0] * len(self.bank.causes)
        known = [self.bank.shares.get(c.key, none) for c in choices]
        rows = [[*map(float, row), math.fsum(row) / len(row)] for row in known]
        most = [max(sum(column) / MOST_ANSWERED, 1.0) for column in zip(*rows, strict=True)]
        return [[share / total for share, total in zip(row, most, strict=True)] for row in rows]

    def bits(self, choices: Sequence[Choice]) -> float:
        """Mutual information of cause and answer."""
        rows = self.rows(choices)
        rows.append([1.0 - sum(column) for column in zip(*rows, strict=True)] if rows else [1.0] * len(self.chances))
        left = (
            p * _entropy(column) for column, p in zip(zip(*rows, strict=True), self.chances, strict=True) if p > 0.0
        )
        return _entropy(self._expected(rows)) - math.fsum(left)

    def _expected(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """How often each answer is given, whatever the cause."""
        return [math.fsum(map(mul, row, self.chances)) for row in rows]

    def grown(self, candidates: Sequence[Choice]) -> list[Choice]:
        """The few of many choices that together say most, found one after another."""
        chosen: list[Choice] = []
        for _ in range(MOST_CHOICES):
            left = [c for c in candidates if c not in chosen]
            if not left:
                break
            chosen.append(max(left, key=lambda c: self.bits([*chosen, c])))
        likely = self._expected(self.rows(chosen))
        return [chosen[i] for i in _descending(likely)]

    def question(self, text: str, choices: Sequence[Choice], *rest: Choice) -> Question:
        """Put into words, with the likely causes whose answers differ."""
        rows, p = self.rows(choices), self.chances
        usual = self._expected(rows)
        columns = list(zip(*rows, strict=True))[:-1]
        separating_pairs = [
            chance * sum(abs(a - b) for a, b in zip(column, usual, strict=True))
            for column, chance in zip(columns, p, strict=False)
        ]
        order = _descending(separating_pairs)[:MOST_SEPARATED]
        causes = tuple(self.bank.causes[i] for i in order if separating_pairs[i] > 0.0)
        return Question(text, (*choices, *rest, Choice(DONT_KNOW)), causes, round(self.bits(choices), 3))


def best_question(
    chances: Mapping[str, float], evidence: Evidence, present: Presence, put: Collection[str], *, complained: bool
) -> Question | None:
    """Of everything that has not been put yet; None where no answer would say much."""
    known = bank()
    p = [chances.get(c, 0.0) for c in known.causes]
    p = p if sum(p) > 0.0 else [1.0 / (len(p) + 1)] * len(p)
    asker = Asker(known, [*p, max(0.0, 1.0 - math.fsum(p))])
    found = [
        asker.question(f.text, f.choices)
        for f in known.fixed
        if f.text not in put
        and not (f.complaint and complained)
        and not any(evidence.facts.get(name) for name in f.not_after)
        and not (f.needs and present.has(f.needs) is False)
    ]
    found += _sights(asker, put, present)
    general = {f.text for f in known.fixed if not f.complaint}
    best = max(found, key=lambda q: q.information_bits * (GENERAL if q.text in general else 1.0), default=None)
    return best if best is not None and best.information_bits >= LEAST_BITS else None


def _sights(asker: Asker, put: Collection[str], present: Presence) -> list[Question]:
    """What is to be seen of the likeliest causes: not what was offered before, nor what speaks of things that are not there."""
    likely = [asker.bank.causes[i] for i in _descending(asker.chances[:-1])[:CANDIDATES]]
    sights = [c for cause in likely if (c := asker.bank.seen.get(cause)) is not None]
    sights = [c for c in sights if c.key not in put and fits(c.text, present)]
    chosen = asker.grown(sights)
    if len(chosen) < 2:
        return []
    none = Choice(NONE_OF_THESE, tuple(f"not_seen={c.key.removeprefix(SEEN)}" for c in chosen))
    return [asker.question(WHICH_SEEN, chosen, none)]


def _descending(values: Sequence[float]) -> list[int]:
    """Places of the values, the largest first."""
    return sorted(range(len(values)), key=lambda i: -values[i])


def _entropy(shares: Iterable[float]) -> float:
    """In bits."""
    return -sum(share * math.log2(share) for share in shares if share > 1e-12)
