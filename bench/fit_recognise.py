"""Fits the classifier of `doctor.recognise` to the cases on record and compiles its weights: `make recognise`.

    python bench/fit_recognise.py FEATURES.jsonl [--write] [--scores OUT.json]

Text: ridge regression over tf-idf features in three blocks (stems, trigrams, manner), one column a cause and one for trouble. A
conditional logit of five weights puts it together with its family's mean, the cause's own page, clues and the provers' log odds.
Clues are log ratios of counts that lean on the mean of their word. Everything that is scored is scored out of fold: whole projects are
left out of every count, weight and scale. Texts written for this fit (`written`) teach and are not scored.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from stallwise.causes import all_rules, table_of
from stallwise.doctor.findings.clue import AGAINST_CAUSE, WHEN_SEEN, Strength
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.prove import ANSWERS, TRUSTED
from stallwise.doctor.recognise.model import (
    AGAINST,
    BLOCKS,
    FARTHEST,
    LEAST_LENGTH,
    Model,
    block_of,
    level_of,
    recalibrated,
    set_costs,
)
from stallwise.doctor.recognise.ranking import SPOKE
from stallwise.doctor.words import words_in
from stallwise.evidence.bag import DENIED, MANNER, TRIGRAM

FOLDS = 10
RIDGE = 1.0  # of 0.5 to 4 the least out-of-fold log loss
FEWEST_PROJECTS = {
    "": 4,
    TRIGRAM: 12,
    MANNER: 4,
}  # that must use a feature: half of the rows of 2 and 4 at 0.3 points of first answers
FINE = 3.0  # of weight: texts in which nothing is wrong are one in eight, and a false alarm is worse than a question
WELL = 1 / 3  # of the texts that people hand over, as assumed: on record are troubles alone
LEAN = 2.0  # cases that a clue borrows from others of its word
MOST_CLUE = 3.0  # log odds of one clue: clues of one cause are seldom independent
SATURATES, LENGTH, COMMON = 1.2, 0.4, 0.5  # BM25's k1 and b; words in more than half of the pages tell nothing apart
SECTIONS = {
    "What else looks so": 0.3,
    "Fix": 0.5,
    "How the gain is found": 0.5,
}  # a page speaks of rivals and remedies too
PHRASED = 2.0  # a word that people use of the cause counts like one that its page uses twice
WEIGHTS = {"composed": 1.0, "lines": 1.0, "wording": 1.0, "question": 0.7, "written": 0.6, "capture": 0.0}
UNSCORED = ("written",)
LEVELS = 40  # of idf, as stored
COVERED = 0.90  # of out-of-fold cases whose truth the set holds
OFFERED = 0.3  # of probability: a cause that a reader takes seriously
NOT_A_CAUSE = {"none", "unclear"}
OUT = Path(__file__).parents[1] / "src" / "stallwise" / "doctor" / "recognise"
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass
class Cases:
    """The cases as arrays."""

    rows: list[dict[str, Any]]
    causes: list[str]  # columns
    words: list[str]
    idf: Floats
    x: NDArray[np.float32]  # case x feature, each block of its share of length one
    right: Bools  # case x cause
    troubled: Bools  # whether any cause is right
    fold: NDArray[np.int64]
    weight: Floats

    @property
    def scored(self) -> Bools:
        """Cases that count where results are counted."""
        return np.array([r["kind"] not in UNSCORED for r in self.rows]) & (self.weight > 0)

    @property
    def open(self) -> Bools:
        """Scored cases with a trouble that no prover answers."""
        return self.scored & self.right.any(axis=1) & np.array([not r["proved"] for r in self.rows])


@dataclass
class Fitted:
    """What the fit found, out of fold and in all."""

    stack: Floats  # case x cause x what the final weights are for
    final: Floats
    chances: Floats  # case x cause, as the ranking gives them
    curve: tuple[float, float]
    trouble_curve: tuple[float, float, float]
    cut: float


def rows_of(path: str) -> list[dict[str, Any]]:
    """The features of all cases that were read."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return [r for r in rows if "refused" not in r]


def read(rows: list[dict[str, Any]]) -> Cases:
    """The cases as arrays."""
    causes = [r.cause for r in all_rules() if r.cause != "none" and not r.preview]
    place = {c: i for i, c in enumerate(causes)}
    right = np.zeros((len(rows), len(causes)), dtype=bool)
    for i, row in enumerate(rows):
        right[i, [place[c] for c in row["accept"] if c in place]] = True
    words, idf, x = _vectors(rows)
    fold = np.array([int(hashlib.sha256(r["project"].encode()).hexdigest(), 16) % FOLDS for r in rows])
    weight = np.array([WEIGHTS[r["kind"]] for r in rows])
    troubled = np.array([any(c not in NOT_A_CAUSE for c in r["accept"]) for r in rows])
    cases = Cases(rows, causes, words, idf, x, right, troubled, fold, weight)
    settle(cases)
    return cases


def _vectors(rows: list[dict[str, Any]]) -> tuple[list[str], Floats, NDArray[np.float32]]:
    users: dict[str, set[str]] = defaultdict(set)
    for row in (r for r in rows if WEIGHTS[r["kind"]]):
        for word in row["words"]:
            if not word.startswith(DENIED):
                users[word].add(row["project"])
    on_pages = {w for page in page_weights().values() for w in page}
    words = sorted(w for w, who in users.items() if len(who) >= FEWEST_PROJECTS[block_of(w)] or w in on_pages)
    at = {w: i for i, w in enumerate(words)}
    seen = Counter(w for r in rows for w in r["words"] if w in at)
    idf = np.array([1.0 + math.log(len(rows) / max(seen[w], 1)) for w in words])
    x = np.zeros((len(rows), len(words)), dtype=np.float32)
    blocks = np.array([list(BLOCKS).index(block_of(w)) for w in words])
    for i, row in enumerate(rows):
        for word in row["words"]:
            plain = word.removeprefix(DENIED)
            if plain in at:
                x[i, at[plain]] += idf[at[plain]] * (-AGAINST if word.startswith(DENIED) else 1.0)
    for n, (block, share) in enumerate(BLOCKS.items()):
        mine = np.flatnonzero(blocks == n)
        length = np.maximum(np.linalg.norm(x[:, mine], axis=1), max(LEAST_LENGTH[block], 1e-9))
        x[:, mine] *= (math.sqrt(share) / length)[:, None]
    return words, idf, x


def ridge(cases: Cases, kernel: NDArray[np.float32], y: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights by case, the mean of each column, and every case's scores by the other folds.

    One inverse serves all folds: what a held-out fold would be given follows from the fold's own block of it.
    """
    kept = np.flatnonzero(weight > 0)
    damped = kernel[np.ix_(kept, kept)].astype(np.float64)
    damped[np.diag_indices(len(kept))] += RIDGE / weight[kept]
    inverse = np.linalg.inv(damped)
    mean = np.average(y[kept], axis=0, weights=weight[kept])
    alpha = inverse @ (y[kept] - mean)
    scores = kernel[:, kept] @ alpha + mean
    for f in range(FOLDS):
        mine = np.flatnonzero(cases.fold[kept] == f)
        scores[kept[mine]] = y[kept[mine]] - np.linalg.solve(inverse[np.ix_(mine, mine)], alpha[mine])
    whole = np.zeros((len(cases.rows), y.shape[1]))
    whole[kept] = alpha
    return whole, mean, scores


def first_label(cases: Cases) -> Floats:
    """One column a case: the cause that its record puts first."""
    place = {c: i for i, c in enumerate(cases.causes)}
    y = np.zeros(cases.right.shape)
    for i, row in enumerate(cases.rows):
        named = [c for c in row["accept"] if c in place]
        if named:
            y[i, place[named[0]]] = 1.0
    return y


def families(causes: Sequence[str]) -> Floats:
    """Cause x cause: 1 where both are of one family."""
    of = {r.cause: r.family for r in all_rules()}
    return np.array([[float(of[a] == of[b]) for b in causes] for a in causes])


def page_weights() -> dict[str, dict[str, float]]:
    """Cause -> word -> weight of its page and phrases (BM25)."""
    raw = {r.cause: _counted(r) for r in all_rules() if r.cause != "none" and not r.preview}
    spread = Counter(word for page in raw.values() for word in page)
    sizes = {cause: math.fsum(page.values()) for cause, page in raw.items()}
    mean = math.fsum(sizes.values()) / len(sizes)
    found = {}
    for cause, page in raw.items():
        length = 1.0 - LENGTH + LENGTH * sizes[cause] / mean
        found[cause] = {
            word: math.log((len(raw) + 1) / (spread[word] + 0.5)) * count / (count + SATURATES) / length
            for word, count in page.items()
            if spread[word] < COMMON * len(raw)
        }
    return found


def _counted(rule: Rule) -> dict[str, float]:
    counts: Counter[str] = Counter()
    parts = re.split(r"^## +([^\n]*)\n", f"{rule.page}\n", flags=re.MULTILINE)
    for title, text in [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]:
        _add(counts, text, SECTIONS.get(title, 1.0))
    _add(
        counts,
        ". ".join([rule.cause.replace("-", " "), *(s.value for s in rule.explains), *(c.says for c in rule.clues)]),
        1.0,
    )
    _add(counts, ". ".join(table_of(rule.cause).get("phrases", ())), PHRASED)
    floats: dict[str, float] = dict(counts)
    for quantity in {*rule.needs, *(q for c in rule.clues for q in c.reads)}:
        floats[f"q:{quantity.name}"] = PHRASED
    floats.update({f"s:{symptom.name}": PHRASED for symptom in rule.explains})
    return floats


def _add(counts: Counter[str], text: str, weight: float) -> None:
    for sentence in text.replace("\n", " ").split(". "):
        for word in words_in(sentence):
            counts[word] += weight * (not block_of(word))  # type: ignore[assignment]


def page_matrix(cases: Cases) -> Floats:
    """Word x cause. What x holds is idf over its norm; a page's word counts by its rarity among the cases."""
    found = np.zeros((len(cases.words), len(cases.causes)), dtype=np.float32)
    at = {w: i for i, w in enumerate(cases.words)}
    for cause, page in page_weights().items():
        for word, value in page.items():
            if word in at:
                found[at[word], cases.causes.index(cause)] = value
    return found


def clue_tables(
    cases: Cases, chosen: NDArray[np.bool_]
) -> tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float]]]:
    """Log odds of each clue where it holds and where not, and by word P(holds | cause) and P(holds | another)."""
    tells = {f"{r.cause}: {c.says}": c.strength for r in all_rules() for c in r.clues}
    counts: dict[str, list[float]] = defaultdict(
        lambda: [0.0] * 4
    )  # held with, denied with, held without, denied without
    place = {c: i for i, c in enumerate(cases.causes)}
    for i in np.flatnonzero(chosen & (cases.weight > 0)):
        for cause, key, held, _ in cases.rows[i]["clues"]:
            if cause in place:
                counts[key][(0 if held else 1) + (0 if cases.right[i, place[cause]] else 2)] += 1.0
    pooled: dict[str, list[float]] = {word: [1.0] * 4 for word in get_args(Strength)}
    for key, sides in counts.items():
        for n, count in enumerate(sides):
            pooled[tells[key]][n] += count
    means = {w: (s[0] / (s[0] + s[1]), s[2] / (s[2] + s[3])) for w, s in pooled.items()}
    weights = {}
    for key, word in tells.items():
        held_with, denied_with, held_without, denied_without = counts[key]
        under = (held_with + LEAN * means[word][0]) / (held_with + denied_with + LEAN)
        other = (held_without + LEAN * means[word][1]) / (held_without + denied_without + LEAN)
        weights[key] = _signed(word, math.log(under / other), math.log((1 - under) / (1 - other)))
    return weights, means


def _signed(word: str, yes: float, no: float) -> tuple[float, float]:
    """What a clue means is known from how things work; few cases cannot turn it around, and "when seen" is silent otherwise."""
    yes, no = max(-MOST_CLUE, min(MOST_CLUE, yes)), max(-MOST_CLUE, min(MOST_CLUE, no))
    yes, no = (min(yes, 0.0), max(no, 0.0)) if word in AGAINST_CAUSE else (max(yes, 0.0), min(no, 0.0))
    return (yes, 0.0) if word.endswith(WHEN_SEEN) else (yes, no)


def clue_scores(cases: Cases, weights: dict[str, tuple[float, float]], rows: NDArray[np.intp]) -> Floats:
    """Case x cause: the sum of its clues."""
    found = np.zeros((len(rows), len(cases.causes)))
    place = {c: i for i, c in enumerate(cases.causes)}
    for n, i in enumerate(rows):
        for cause, key, held, out in cases.rows[i]["clues"]:
            if cause in place and not out:
                found[n, place[cause]] += weights[key][0 if held else 1]
    return found


def rule_scores(cases: Cases) -> Floats:
    """Log odds of the provers."""
    found = np.zeros(cases.right.shape)
    place = {c: i for i, c in enumerate(cases.causes)}
    for i, row in enumerate(cases.rows):
        for cause, odds in row["rules"].items():
            if cause in place:
                found[i, place[cause]] = odds
    return found


def prover_rates(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How often the cause was right where its prover spoke without a trace, and at each level of its confidence.

    Few cases of a cause lean on the usual rate of all, few of a level on that of their cause.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if row["kind"] not in UNSCORED and not row["measured"] and any(c not in NOT_A_CAUSE for c in row["accept"]):
            for cause in row["found"][:1]:
                for name in (cause, leveled(row, cause)):
                    counts[name][0] += cause in row["accept"]
                    counts[name][1] += 1
    causes = {name: own for name, own in counts.items() if " " not in name}
    usual = sum(r for r, _ in causes.values()) / max(sum(n for _, n in causes.values()), 1)
    rates = {cause: (right + LEAN * usual) / (n + LEAN) for cause, (right, n) in sorted(causes.items())}
    levels = {name: own for name, own in sorted(counts.items()) if " " in name}
    return rates | {name: (r + LEAN * rates[name.split()[0]]) / (n + LEAN) for name, (r, n) in levels.items()}


def leveled(row: dict[str, Any], cause: str) -> str:
    """The cause with how sure its prover is."""
    odds = row["rules"].get(cause, 0.0) - SPOKE
    return f"{cause} {level_of(round(1.0 / (1.0 + math.exp(-odds)), 6))}"


def settle(cases: Cases) -> None:
    """Which cases a prover answers, by reliabilities that were counted on other projects."""
    for f in range(FOLDS):
        rates = prover_rates([r for r, own in zip(cases.rows, cases.fold, strict=True) if own != f])
        for row in (r for r, own in zip(cases.rows, cases.fold, strict=True) if own == f):
            trusted = [
                c
                for c in row["found"]
                if row["measured"] or c in row["compared"] or rates.get(leveled(row, c), rates.get(c, 1.0)) >= TRUSTED
            ]
            row["proved"], row["first"] = bool(trusted), trusted[0] if trusted else ""


def ruled_out(cases: Cases) -> NDArray[np.bool_]:
    """Case x cause: what by definition cannot be."""
    found = np.zeros(cases.right.shape, dtype=bool)
    place = {c: i for i, c in enumerate(cases.causes)}
    for i, row in enumerate(cases.rows):
        for cause, _, _, out in row["clues"]:
            if cause in place and out:
                found[i, place[cause]] = True
    return found


def stacked(cases: Cases, text: Floats, pages: Floats, clues: Floats) -> Floats:
    """Case x cause x what the final weights are for."""
    return np.stack([text, text @ families(cases.causes), pages, clues, rule_scores(cases)], axis=-1)


NAMES = ("text", "family", "page", "clues", "rule")
FROM = (16.0, 6.0, 1.2, 0.9, 0.5)  # where the fit of these begins


def logit(z: Floats, right: NDArray[np.bool_], weight: Floats) -> Floats:
    """Weights that make the right causes likeliest: Newton on the expected information, with halved steps where it overshoots."""
    w = np.array(FROM)
    gain, slope, info = _slope(z, right, weight, w)
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(info + PRIOR * np.eye(len(w)), slope)
        size = 1.0
        while size > 1e-3:
            after = _slope(z, right, weight, w + size * step)
            if after[0] > gain:
                break
            size /= 2.0
        else:
            return w
        w, better = w + size * step, after[0] - gain
        gain, slope, info = after
        if better < 1e-3:
            return w
    return w


MOST_STEPS = 60
PRIOR = 0.01  # of the final weights: five numbers, five thousand cases


def _slope(z: Floats, right: NDArray[np.bool_], weight: Floats, w: Floats) -> tuple[float, Floats, Floats]:
    """Log likelihood, its slope, and the expected information."""
    p = softmax(z @ w)
    q = np.maximum((p * right).sum(axis=1), 1e-12)
    gain = float((weight * np.log(q)).sum() - 0.5 * PRIOR * (w**2).sum())
    slope = np.tensordot(weight[:, None] * (p * right / q[:, None] - p), z, axes=2) - PRIOR * w
    mean = np.matmul(p[:, None, :], z)[:, 0]
    weighed = (z * (weight[:, None] * p)[:, :, None]).reshape(-1, z.shape[-1])
    return gain, slope, weighed.T @ z.reshape(-1, z.shape[-1]) - (mean * weight[:, None]).T @ mean


def softmax(scores: Floats) -> Floats:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def fit(cases: Cases, *, without: Sequence[str] = ()) -> Fitted:
    """Everything that is learned; `without`: parts of NAMES that are left out, to see what they are worth."""
    kernel = cases.x @ cases.x.T
    text = ridge(cases, kernel, first_label(cases), cases.weight * cases.troubled)[2]
    both = np.where(cases.troubled, 1.0, FINE) * cases.weight
    trouble = ridge(cases, kernel, cases.troubled[:, None].astype(float), both)[2][:, 0]
    clues = np.zeros(cases.right.shape)
    for f in range(FOLDS):
        held, rest = np.flatnonzero(cases.fold == f), cases.fold != f
        clues[held] = clue_scores(cases, clue_tables(cases, rest)[0], held)
    stack = stacked(cases, text, cases.x @ page_matrix(cases), clues)
    for name in without:
        stack[..., NAMES.index(name)] = 0.0
    open_ = cases.open
    shares = np.zeros(cases.right.shape)
    for f in range(FOLDS):
        rest, held = open_ & (cases.fold != f), cases.fold == f
        shares[held] = softmax(stack[held] @ logit(stack[rest], cases.right[rest], cases.weight[rest]))
    shares[ruled_out(cases)] = 0.0
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    trouble_curve = _trouble_curve(cases, trouble)
    some = troubles(cases, trouble, trouble_curve)
    curve = _curve(cases, shares)
    chances = np.array([recalibrated(row, t, curve) for row, t in zip(shares.tolist(), some.tolist(), strict=True)])
    final = logit(stack[open_], cases.right[open_], cases.weight[open_])
    return Fitted(stack, final, chances, curve, trouble_curve, threshold(cases, chances))


def troubles(cases: Cases, scores: Floats, curve: tuple[float, float, float]) -> Floats:
    """How likely each case has any trouble."""
    offset, slope, shown = curve
    return np.asarray(1.0 / (1.0 + np.exp(-(offset + slope * scores + shown * _in_numbers(cases)))))


def _in_numbers(cases: Cases) -> Floats:
    return np.array([float(r["in_numbers"]) for r in cases.rows])


def _trouble_curve(cases: Cases, scores: Floats) -> tuple[float, float, float]:
    """Offset, weight of the score and of numbers that complain: how often texts like these have trouble (logistic regression)."""
    mine = cases.weight > 0  # of the written ones, too: nobody else writes of what is well
    x = np.stack([np.ones_like(scores), scores, _in_numbers(cases)], axis=1)[mine]
    some = cases.troubled[mine]
    weight = np.where(some, (1.0 - WELL) / some.mean(), WELL / (1.0 - some.mean()))
    offset, slope, shown = logistic(x, some.astype(float), weight)
    return offset, slope, shown


def _curve(cases: Cases, shares: Floats) -> tuple[float, float]:
    """Offset and slope of the first answer's log odds that make its probability a frequency, where there is trouble."""
    top, right = first_of(cases, shares, np.flatnonzero(cases.open))
    logits = np.log(top / (1.0 - top)).clip(-FARTHEST, FARTHEST)
    offset, slope = logistic(np.stack([np.ones_like(logits), logits], axis=1), right.astype(float))
    return offset, slope


def logistic(x: Floats, right: NDArray[Any], weight: Floats | float = 1.0) -> tuple[float, ...]:
    """Weights that make a sum the log odds of being right (Newton)."""
    found = np.zeros(x.shape[1])
    for _ in range(MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-x @ found))
        info = (x * (weight * p * (1.0 - p))[:, None]).T @ x + 1e-3 * np.eye(len(found))
        step = np.linalg.solve(info, x.T @ (weight * (right - p)))
        found = found + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-9))
    return tuple(map(float, found))


def first_of(cases: Cases, chances: Floats, rows: NDArray[np.intp]) -> tuple[Floats, Bools]:
    """How sure each first answer is, and whether it is right."""
    return np.clip(chances[rows].max(axis=1), 1e-6, 1 - 1e-6), cases.right[rows, chances[rows].argmax(axis=1)]


def threshold(cases: Cases, chances: Floats) -> float:
    """Where the set is cut so that it holds the truth in the share of open cases that is asked for."""
    needed = []
    for i in np.flatnonzero(cases.open):
        order = np.argsort(-chances[i])
        cost = set_costs(chances[i][order])
        needed.append(min(cost[n] for n, c in enumerate(order) if cases.right[i, c]))
    return float(np.quantile(needed, COVERED))


def report(cases: Cases, fitted: Fitted) -> dict[str, Any]:
    """First answers, three, family, calibration and sets, by set of cases; provers speak where they answer."""
    found: dict[str, Any] = {}
    scored = cases.scored | np.array([r["kind"] == "capture" for r in cases.rows])
    for name in [*dict.fromkeys(r["set"] for r in cases.rows), "all"]:
        mine = [i for i in np.flatnonzero(cases.troubled & scored) if name in (cases.rows[i]["set"], "all")]
        if mine:
            found[name] = _counted_set(cases, fitted, mine)
            shares = "  ".join(f"{key} {found[name][key]:.3f}" for key in ("first", "three", "family"))
            print(f"{name:16s} {len(mine):5d}  {shares}  set {found[name]['set']:.2f} of {found[name]['size']:.1f}")
    found["fine"] = _fine(cases, fitted.chances)
    open_ = np.flatnonzero(cases.open)
    top, hit = first_of(cases, fitted.chances, open_)
    found["bands"] = []
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (top >= low) & (top < low + 0.1)
        if inside.any():
            found["bands"].append([float(low), int(inside.sum()), float(top[inside].mean()), float(hit[inside].mean())])
            print(f"  said {top[inside].mean():.2f}  right {hit[inside].mean():.2f}  of {inside.sum()}")
    found["brier"] = float(((top - hit) ** 2).mean())
    found["log_loss"] = float(-np.log(np.maximum((fitted.chances * cases.right).sum(1), 1e-9))[open_].mean())
    print(f"Brier {found['brier']:.4f}  log loss {found['log_loss']:.4f}  of {len(open_)}")
    return found


def _counted_set(cases: Cases, fitted: Fitted, mine: Sequence[int]) -> dict[str, Any]:
    of = {r.cause: r.family for r in all_rules()}
    first = three = family = held = 0
    sizes = []
    for i in mine:
        row, ranked = cases.rows[i], np.argsort(-fitted.chances[i])
        order = [cases.causes[c] for c in ranked]
        if row["proved"]:
            order = list(dict.fromkeys([row["first"], *order]))
        else:
            n = max(1, int((np.array(set_costs(fitted.chances[i][ranked])) <= fitted.cut).sum()))
            sizes.append(n)
            held += bool(cases.right[i, ranked[:n]].any())
        first += order[0] in row["accept"]
        three += any(c in row["accept"] for c in order[:3])
        family += of.get(order[0]) in {of.get(c) for c in row["accept"]}
    return {
        "cases": len(mine), "first": first / len(mine), "three": three / len(mine), "family": family / len(mine),
        "set": held / max(len(sizes), 1), "size": float(np.mean(sizes)) if sizes else 0.0,
    }  # fmt: skip


def _fine(cases: Cases, chances: Floats) -> dict[str, list[float]]:
    """Where nothing is wrong: how many cases, and the shares that are offered a cause at 30% and given one as the answer."""
    found = {}
    for name in [*dict.fromkeys(r["set"] for r in cases.rows), "all"]:
        mine = [i for i in np.flatnonzero(~cases.troubled) if name in (cases.rows[i]["set"], "all")]
        if mine:
            top, spoke = chances[mine].max(axis=1), np.array([cases.rows[i]["proved"] for i in mine])
            found[name] = [len(mine), float((top >= OFFERED).mean()), float(((top >= ANSWERS) | spoke).mean())]
            print(
                f"nothing wrong    {name:16s} {len(mine):5d}  offered {found[name][1]:.3f}  answered {found[name][2]:.3f}"
            )
    return found


def compiled(cases: Cases, final: Floats, kept: Bools) -> tuple[Floats, Floats]:
    """Feature x column and column: what the final weights make of the kept cases' words; the last column is for trouble."""
    of = dict(zip(NAMES, map(float, final), strict=True))
    kernel, weight = cases.x @ cases.x.T, cases.weight * kept
    alpha, mean, _ = ridge(cases, kernel, first_label(cases), weight * cases.troubled)
    both = np.where(cases.troubled, 1.0, FINE) * weight
    of_trouble, level, _ = ridge(cases, kernel, cases.troubled[:, None].astype(float), both)
    text, same = cases.x.T @ alpha, families(cases.causes)
    weights = of["text"] * text + of["family"] * (text @ same) + of["page"] * page_matrix(cases)
    weights -= weights.mean(axis=1, keepdims=True)  # what a word adds to every cause alike changes nothing
    bias = np.append(of["text"] * mean + of["family"] * (mean @ same), level)
    return np.hstack([weights, cases.x.T @ of_trouble]), bias


def model_of(cases: Cases, fitted: Fitted, kept: Bools) -> Model:
    """The classifier as if the kept cases were all there are; the final weights and curves are of all, out of fold."""
    weights, bias = compiled(cases, fitted.final, kept)
    scale = np.maximum(np.abs(weights).max(axis=0), 1e-9) / 127
    of = dict(zip(NAMES, map(float, fitted.final), strict=True))
    clues, answers = clue_tables(cases, kept)
    return Model(
        causes=tuple(cases.causes), words={w: i for i, w in enumerate(cases.words)}, weights=np.round(weights / scale).astype(np.int8),
        idf=cases.idf.tolist(), scale=scale.tolist(), bias=bias.tolist(), rule=of["rule"],
        clues={key: (of["clues"] * yes, of["clues"] * no) for key, (yes, no) in sorted(clues.items())},
        trouble=fitted.trouble_curve, curve=fitted.curve, threshold=fitted.cut, answers=answers,
        provers=prover_rates([r for r, keep in zip(cases.rows, kept, strict=True) if keep]),
    )  # fmt: skip


def write(cases: Cases, fitted: Fitted) -> None:
    """Everything in one matrix of whole numbers, and what goes with it."""
    found = model_of(cases, fitted, np.ones(len(cases.rows), dtype=bool))
    stored = np.asarray(found.weights)
    used = np.flatnonzero(np.abs(stored).max(axis=1) > 1)
    levels = np.linspace(cases.idf.min(), cases.idf.max(), LEVELS)
    codes = np.abs(cases.idf[used, None] - levels[None, :]).argmin(axis=1)
    meta = {
        "cases": int((cases.weight > 0).sum()),
        "causes": cases.causes,
        "scale": [round(s, 7) for s in found.scale],
        "bias": [round(b, 5) for b in found.bias],
        "idf": [round(float(v), 4) for v in levels],
        "idf_of": "".join(chr(ord("0") + c) for c in codes),
        "clues": {key: [round(v, 4) for v in pair] for key, pair in found.clues.items()},
        "rule": round(found.rule, 4),
        "trouble": [round(v, 4) for v in found.trouble],
        "curve": [round(v, 4) for v in found.curve],
        "threshold": round(found.threshold, 4),
        "provers": {cause: round(rate, 3) for cause, rate in found.provers.items()},
        "answers": {word: [round(v, 4) for v in pair] for word, pair in found.answers.items()},
    }
    np.save(OUT / "weights.npy", stored[used])
    (OUT / "words.txt").write_text("\n".join(cases.words[i] for i in used), encoding="utf-8")
    (OUT / "model.json").write_text(json.dumps(meta, ensure_ascii=False, indent=0), encoding="utf-8")
    rounded = dict(zip(NAMES, np.round(fitted.final, 3), strict=True))
    print(f"{len(used)} features, {len(cases.causes)} causes, {meta['cases']} cases; weights {rounded}")


def empty() -> None:
    """A model that knows nothing, so that features can be computed before the first fit."""
    causes = [r.cause for r in all_rules() if r.cause != "none" and not r.preview]
    np.save(OUT / "weights.npy", np.zeros((1, len(causes) + 1), dtype=np.int8))
    (OUT / "words.txt").write_text("nothing", encoding="utf-8")
    meta = {
        "cases": 0, "causes": causes, "scale": [1.0] * (len(causes) + 1), "bias": [0.0] * (len(causes) + 1), "idf": [1.0],
        "idf_of": "0", "clues": {}, "rule": 1.0, "trouble": [9.0, 0.0, 0.0], "curve": [0.0, 1.0], "threshold": 0.9, "provers": {},
        "answers": {word: [0.7, 0.2] for word in get_args(Strength)},
    }  # fmt: skip
    (OUT / "model.json").write_text(json.dumps(meta), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", help="of bench/case_features.py, or 'empty'")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--scores", default="")
    args = parser.parse_args()
    if args.features == "empty":
        return empty()
    cases = read(rows_of(args.features))
    fitted = fit(cases)
    scores = report(cases, fitted)
    if args.scores:
        Path(args.scores).write_text(json.dumps(scores, indent=1), encoding="utf-8")
    if args.write:
        write(cases, fitted)
    return None


if __name__ == "__main__":
    main()
