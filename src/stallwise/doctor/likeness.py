"""Suspects by likeness: which cause's own page shares most with what the inputs say.

Every rule has a page that tells in plain words what its cause means, costs, is mistaken for and asks for, and declares
the quantities it reads and the symptoms it explains. Where no rule and no clue has spoken, the cause whose page has most
in common with the inputs (words, named quantities, symptoms; rare ones weigh more) is the first to suspect. Nothing is
learnt from cases, so nothing is remembered. Likeness alone never makes a verdict: it shares out what base rates and
"something else" hold, and stays below even odds.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from stallwise.doctor.differential import LOOKED_AND_SAW_NOT, SOMETHING_ELSE, UNPROMPTED, fits_the_trade, speaks_against
from stallwise.evidence.bag import stem, stems_of
from stallwise.evidence.evidence import Evidence
from stallwise.findings.diagnosis import Hypothesis
from stallwise.findings.finding import Reason
from stallwise.findings.rule import Rule
from stallwise.findings.symptom import Symptom
from stallwise.rules import all_rules

SATURATES = 1.2  # a word that a page uses often says little more than one used twice (BM25's k1)
LENGTH = 0.5  # how much a page's length is held against it (BM25's b)
COMMON = 0.5  # of all pages: words in more of them tell nothing apart
DECLARED = 2  # a quantity that a rule reads counts like a word that its page uses twice
# Long texts share more words with every page: a difference in score counts against the root of the number of words. This much of
# it multiplies the odds by e (chosen on the looked-at half of the incidents, where 0.15 to 0.4 differ by two cases).
SHARPNESS = 0.4
FEW_WORDS = 25.0  # a sentence is no surer than this many words make it
# Score over the root of the number of words: 90 of 100 texts of other trades (changelogs, headers, licences) lie below, 90
# of 100 incidents above.
LEAST_ALIKE = 0.9
LEAST_LEFT = 0.1  # of a base rate, however little the words agree: people leave out what they do not suspect
REFUTED = 0.5  # what the clues leave of a cause's odds: below, words do not bring it back
MOST_TOGETHER = 0.75  # of what is left to something else: the rest stays unknown
MOST_ALONE = 0.45  # words alone are never even odds
SHOWN = 5  # words in common that the reason names
LEAST_SHARE = 0.02


def suspects(
    evidence: Evidence, heard: Iterable[Symptom], weighed: Iterable[Hypothesis], silent: frozenset[str] = frozenset()
) -> tuple[Hypothesis, ...]:
    """The table with likeness in it: what base rates and "something else" hold is shared anew.

    Causes that a rule or a clue speaks for keep their odds. Of the rest, a base rate is the prior and likeness the likelihood; a
    cause without a rate has the prior of one that nobody complains of. A rule that had all it needs and stayed silent makes its
    cause less likely here as well.
    """
    said = _said(evidence, heard)
    scores = _scores(said)
    top = max(scores.values(), default=0.0)
    table = tuple(weighed)
    if not said or top < _least(evidence):
        return table
    pages, by_cause = _pages(), {r.cause: r for r in all_rules()}
    kept = [h for h in table if h.cause != SOMETHING_ELSE and not h.by_rate_alone]
    rates = {h.cause: h for h in table if h.by_rate_alone}
    spoken = {h.cause for h in kept}
    unit = SHARPNESS * math.sqrt(FEW_WORDS + len(evidence.stems))
    weights = {
        cause: (rates[cause].probability if cause in rates else UNPROMPTED)
        * max(math.exp((score - top) / unit), LEAST_LEFT if cause in rates else 0.0)
        * (LOOKED_AND_SAW_NOT if cause in silent else 1.0)
        * fits_the_trade(by_cause[cause], evidence)
        for cause, score in scores.items()
        if cause not in spoken and speaks_against(by_cause[cause], evidence) >= REFUTED
    }
    total = sum(weights.values())
    left = max(0.0, 1.0 - sum(h.probability for h in kept)) * MOST_TOGETHER
    found = list(kept)
    for cause, weight in weights.items():
        p = min(MOST_ALONE, left * weight / total)
        if p >= LEAST_SHARE:
            words = Reason(_in_common(pages[cause], said))
            old = rates.get(cause)
            found.append(
                Hypothesis(cause, p, (words, *old.because), old.against, by_rate_alone=True)
                if old is not None
                else Hypothesis(cause, p, (words,), by_words_alone=True)
            )
    rest = max(0.0, 1.0 - sum(h.probability for h in found))
    return tuple(sorted([*found, Hypothesis(SOMETHING_ELSE, rest)], key=lambda h: (-h.probability, h.cause)))


def alike(evidence: Evidence) -> bool:
    """Whether the words of the inputs are those of some cause's page, rather than of another trade."""
    return bool(evidence.stems) and max(_scores(_said(evidence)).values(), default=0.0) >= _least(evidence)


def _said(evidence: Evidence, heard: Iterable[Symptom] = ()) -> set[str]:
    said = evidence.stems | {f"q:{name}" for name, facts in evidence.facts.items() if facts}
    return said | {f"q:{s.quantity.name}" for s in evidence.all_series} | {f"s:{s.name}" for s in heard}


def _scores(said: set[str]) -> dict[str, float]:
    return {cause: sum(page[w] for w in page.keys() & said) for cause, page in _pages().items()}


def _least(evidence: Evidence) -> float:
    return LEAST_ALIKE * math.sqrt(1.0 + len(evidence.stems))


def _in_common(page: Mapping[str, float], said: frozenset[str] | set[str]) -> str:
    shared = sorted(page.keys() & said, key=lambda w: (-page[w], w))
    words = [" ".join(_whole(part) for part in w.removeprefix("q:").split()) for w in shared if not w.startswith("s:")]
    return f"what its page and the inputs both speak of: {', '.join(dict.fromkeys(words[:SHOWN]))}"


def _whole(word: str) -> str:
    return _whole_words().get(word, word)


@cache
def _whole_words() -> dict[str, str]:
    """A word for each stem, as the pages write it."""
    words = (w for rule in all_rules() for w in re.findall(r"[a-z]{3,40}", rule.page.lower()))
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(stem(word), word)
    return found


@cache
def _pages() -> dict[str, dict[str, float]]:
    """What each page holds, with its weight there."""
    raw = {r.cause: _counted(r) for r in all_rules() if r.explains or r.needs or r.clues}
    spread = Counter(word for page in raw.values() for word in page)
    sizes = {cause: sum(page.values()) for cause, page in raw.items()}
    mean = sum(sizes.values()) / len(sizes)
    found = {}
    for cause, page in raw.items():
        length = 1.0 - LENGTH + LENGTH * sizes[cause] / mean
        found[cause] = {
            word: math.log((len(raw) + 1) / (spread[word] + 0.5)) * count / (count + SATURATES) / length
            for word, count in page.items()
            if spread[word] < COMMON * len(raw)
        }
    return found


def _counted(rule: Rule) -> Counter[str]:
    text = " ".join(
        [rule.page, rule.cause.replace("-", " "), *(s.value for s in rule.explains), *(c.says for c in rule.clues)]
    )
    counts: Counter[str] = Counter()
    counts.update(_repeated(text))
    for quantity in {*rule.needs, *(q for c in rule.clues for q in c.reads)}:
        counts[f"q:{quantity.name}"] += DECLARED
    counts.update({f"s:{symptom.name}": DECLARED for symptom in rule.explains})
    return counts


def _repeated(text: str) -> Counter[str]:
    """Stems with how many sentences hold each."""
    counts: Counter[str] = Counter()
    for sentence in text.replace("\n", " ").split(". "):
        counts.update(stems_of(sentence))
    return counts
