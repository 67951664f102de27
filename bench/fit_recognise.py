"""Fits the classifier of `doctor.recognise` to the cases on record and compiles its weights: `make recognise`.

    python bench/fit_recognise.py FEATURES.jsonl [--write] [--scores OUT.json]

Text: ridge regression over tf-idf words, one column a cause, plus its family's mean and the cause's own page and phrases. Clues: log
ratios of counts that lean on the mean of their word. Five weights put these and the provers' log odds together (conditional
logit). Everything that is scored is scored out of fold: whole projects are left out of every count, weight and scale.
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
from stallwise.doctor.recognise.model import AGAINST, level_of, recalibrated, set_costs
from stallwise.doctor.recognise.ranking import SPOKE
from stallwise.doctor.words import words_in
from stallwise.evidence.bag import DENIED, MANNER

FOLDS = 10
RIDGE = 1.0  # of 0.5 to 4 the least out-of-fold log loss
HEALTHY_RIDGE = 0.5  # of 0.5 to 5 the best at telling healthy from troubled texts of another author
TWO_PROJECTS = 2  # that must use a word
FARTHEST = 7.0  # log odds: beyond, one answer in a thousand, nothing can be counted
LEAN = 2.0  # cases that a clue borrows from others of its word
MOST_CLUE = 3.0  # log odds of one clue: clues of one cause are seldom independent
SATURATES, LENGTH, COMMON = 1.2, 0.4, 0.5  # BM25's k1 and b; words in more than half of the pages tell nothing apart
SECTIONS = {
    "What else looks so": 0.3,
    "Fix": 0.5,
    "How the gain is found": 0.5,
}  # a page speaks of rivals and remedies too
PHRASED = 2.0  # a word that people use of the cause counts like one that its page uses twice
WEIGHTS = {"composed": 1.0, "lines": 1.0, "wording": 1.0, "question": 0.7, "capture": 0.0}
LEVELS = 40  # of idf, as stored
COVERED = 0.90  # of out-of-fold cases whose truth the set holds
ELSE = "something-else"
NOT_A_CAUSE = {"none", "unclear"}
OUT = Path(__file__).parents[1] / "src" / "stallwise" / "doctor" / "recognise"
Floats = NDArray[np.float64]


@dataclass
class Cases:
    """The cases as arrays."""

    rows: list[dict[str, Any]]
    causes: list[str]  # columns, "something else" last
    words: list[str]
    idf: Floats
    x: Floats  # case x word, rows of length one
    manner: Floats  # the same with the words that say how a text speaks; rows of length one
    right: NDArray[np.bool_]  # case x cause
    fold: NDArray[np.int64]
    weight: Floats


def rows_of(path: str) -> list[dict[str, Any]]:
    """The features of all cases that were read."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return [r for r in rows if "refused" not in r]


def read(rows: list[dict[str, Any]]) -> Cases:
    """The cases as arrays."""
    causes = [r.cause for r in all_rules() if r.cause != "none" and not r.preview] + [ELSE]
    place = {c: i for i, c in enumerate(causes)}
    users: dict[str, set[str]] = defaultdict(set)
    for row in (r for r in rows if WEIGHTS[r["kind"]]):
        for word in row["words"]:
            if not word.startswith(DENIED):
                users[word].add(row["project"])
    pages = page_weights()
    words = sorted(
        {w for w, who in users.items() if len(who) >= TWO_PROJECTS}
        | {w for p in pages.values() for w in p if w in users}
    )
    at = {w: i for i, w in enumerate(words)}
    seen = Counter(w for r in rows for w in r["words"] if w in at)
    idf = np.array([1.0 + math.log(len(rows) / max(seen[w], 1)) for w in words])
    x = np.zeros((len(rows), len(words)), dtype=np.float32)
    right = np.zeros((len(rows), len(causes)), dtype=bool)
    for i, row in enumerate(rows):
        mine = [at[w] for w in row["words"] if w in at]
        x[i, mine] = idf[mine]
        denied = [
            at[w.removeprefix(DENIED)] for w in row["words"] if w.startswith(DENIED) and w.removeprefix(DENIED) in at
        ]
        x[i, denied] -= AGAINST * idf[denied]
        for cause in row["accept"]:
            right[i, place.get(cause, place[ELSE])] = True
        if right[i, :-1].any():
            right[i, place[ELSE]] = False
    manner = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    x[:, [w.startswith(MANNER) for w in words]] = 0.0
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    fold = np.array([int(hashlib.sha256(r["project"].encode()).hexdigest(), 16) % FOLDS for r in rows])
    weight = np.array([WEIGHTS[r["kind"]] for r in rows])
    return Cases(rows, causes, words, idf, x, manner, right, fold, weight)


def ridge(kernel: Floats, y: Floats, weight: Floats, damping: float = RIDGE) -> tuple[Floats, Floats]:
    """Weights by case and cause, and the mean of each cause; solved in the space of cases, which are fewer than words."""
    mean = y.mean(axis=0)
    damped = kernel.copy()
    damped[np.diag_indices(len(y))] += damping / weight
    return np.linalg.solve(damped, y - mean), mean


def first_label(cases: Cases) -> Floats:
    """One column a case: the cause that its record puts first."""
    place = {c: i for i, c in enumerate(cases.causes)}
    y = np.zeros(cases.right.shape, dtype=np.float32)
    for i, row in enumerate(cases.rows):
        named = [c for c in row["accept"] if c not in NOT_A_CAUSE]
        y[i, place.get(named[0], place[ELSE]) if named else place[ELSE]] = 1.0
    return y


FINE = 4.0  # of weight: texts in which nothing is wrong are one in eight, and a false alarm is worse than a question


def untroubled(cases: Cases, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """One column: 1 where nothing is wrong; and what each case counts."""
    fine = cases.right[rows, -1]
    return fine[:, None].astype(np.float32), cases.weight[rows] * np.where(fine, FINE, 1.0)


def families(causes: Sequence[str]) -> Floats:
    """Cause x cause: 1 where both are of one family."""
    of = {r.cause: r.family for r in all_rules()}
    return np.array([[float(of.get(a, a) == of.get(b, b)) for b in causes] for a in causes], dtype=np.float32)


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
            counts[word] += weight * (not word.startswith(MANNER))  # type: ignore[assignment]


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
        if not row["measured"] and any(c not in NOT_A_CAUSE for c in row["accept"]):
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


def is_healthy(cases: Cases) -> NDArray[np.bool_]:
    """The cases that make no verdict by their words alone."""
    return np.asarray(CALM[0] >= healthy_counts(cases)["healthy_from"])


def calmed(cases: Cases, chances: Floats) -> Floats:
    """As the ranking does: of a calm text only so much is left to the causes."""
    calm, found, counts = is_healthy(cases), chances.copy(), healthy_counts(cases)
    odds = counts["trouble_offset"] + counts["trouble_slope"] * CALM[0][calm]
    found[calm, :-1] *= (1.0 / (1.0 + np.exp(-odds)))[:, None]
    found[:, -1] = 1.0 - found[:, :-1].sum(axis=1)
    return found


STACK: list[Floats] = []
CALM: list[Floats] = []
STAY_LOUD = 0.9  # of the complaints that somebody typed: the price of silence where nothing is wrong


def healthy_counts(cases: Cases) -> dict[str, float]:
    """From which share of calm on a text makes no verdict by its words alone; how often such a text has trouble all the same,
    by how calm it is (a logistic curve)."""
    calm = CALM[0]
    typed = np.array([r["kind"] in ("wording", "question") for r in cases.rows])
    fine = cases.right[:, -1]
    cut = float(np.quantile(calm[typed & ~fine], STAY_LOUD))
    mine = (cases.weight > 0) & (calm >= cut)
    offset, slope = logistic(np.stack([np.ones(int(mine.sum())), calm[mine]], axis=1), (~fine[mine]).astype(float))
    return {"healthy_from": round(cut, 4), "trouble_offset": round(offset, 4), "trouble_slope": round(slope, 4)}


NAMES = (
    "text", "family", "page", "clues", "rule", "else", "else_words", "else_quiet"
)  # fmt: skip
FROM = (8.0, 3.0, 2.0, 0.5, 0.8, -1.0, 0.5, 1.0)  # where the fit of these begins


def stacked(cases: Cases, text: Floats, pages: Floats, clues: Floats, *, family: bool = True) -> Floats:
    """Case x cause x what the final weights are for."""
    is_else = np.zeros(cases.right.shape)
    is_else[:, -1] = 1.0
    at = set(cases.words)
    known = np.log1p([[sum(w.removeprefix(DENIED) in at for w in r["words"])] for r in cases.rows])
    quiet = np.array([not r["aloud"] for r in cases.rows], dtype=float)[:, None]
    return np.stack(
        [
            text,
            text @ (families(cases.causes) * family),
            pages,
            clues,
            rule_scores(cases),
            is_else,
            is_else * known,
            is_else * quiet,
        ],
        axis=-1,
    )


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
PRIOR = 0.01  # of the final weights: eight numbers, five thousand cases


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


def out_of_fold(cases: Cases, *, pages: bool = True, family: bool = True) -> tuple[Floats, Floats]:
    """Probabilities of every case by what other projects have taught, and the final weights of all."""
    y, page = first_label(cases), page_matrix(cases) * pages
    text = np.zeros(cases.right.shape)
    clues = np.zeros(cases.right.shape)
    kernel, manner = cases.x @ cases.x.T, cases.manner @ cases.manner.T
    calm = np.zeros(len(cases.rows))
    for f in range(FOLDS):
        held, rest = np.flatnonzero(cases.fold == f), cases.fold != f
        kept = np.flatnonzero(rest & (cases.weight > 0))
        alpha, mean = ridge(kernel[np.ix_(kept, kept)], y[kept], cases.weight[kept])
        text[held] = kernel[np.ix_(held, kept)] @ alpha + mean
        clues[held] = clue_scores(cases, clue_tables(cases, rest)[0], held)
        alpha, mean = ridge(manner[np.ix_(kept, kept)], *untroubled(cases, kept), HEALTHY_RIDGE)
        calm[held] = (manner[np.ix_(held, kept)] @ alpha + mean)[:, 0]
        print(f"\rfold {f + 1} of {FOLDS}", end="", flush=True)
    print()
    z = stacked(cases, text, cases.x @ page, clues, family=family)
    STACK.append(z)
    CALM.append(calm)
    open_ = np.array([not r["proved"] for r in cases.rows]) & (cases.weight > 0)
    chances = np.zeros(cases.right.shape)
    for f in range(FOLDS):
        rest = open_ & (cases.fold != f)
        chances[cases.fold == f] = softmax(z[cases.fold == f] @ logit(z[rest], cases.right[rest], cases.weight[rest]))
    chances[ruled_out(cases)] = 0.0
    chances /= chances.sum(axis=1, keepdims=True)
    return chances, logit(z[open_], cases.right[open_], cases.weight[open_])


def open_cases(cases: Cases) -> NDArray[np.intp]:
    """Those that no prover answers and whose words may be counted."""
    return np.flatnonzero(np.array([not r["proved"] for r in cases.rows]) & (cases.weight > 0))


def platt(cases: Cases, chances: Floats) -> tuple[float, ...]:
    """Offset, slope and bend of the first answer's log odds that make its probability a frequency (logistic regression)."""
    rows = open_cases(cases)
    rows = rows[~is_healthy(cases)[rows]]  # calm texts are scaled by how often they have trouble at all
    top, right = first_of(cases, chances, rows)
    odds = np.log(top / (1.0 - top)).clip(-FARTHEST, FARTHEST)
    x = np.stack([np.ones_like(odds), odds, odds * odds], axis=1)
    return logistic(x, right)


def logistic(x: Floats, right: NDArray[Any]) -> tuple[float, ...]:
    """Weights that make a sum the log odds of being right (Newton)."""
    found = np.zeros(x.shape[1])
    for _ in range(MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-x @ found))
        step = np.linalg.solve((x * (p * (1.0 - p))[:, None]).T @ x + 1e-3 * np.eye(len(found)), x.T @ (right - p))
        found = found + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-9))
    return tuple(map(float, found))


def first_of(cases: Cases, chances: Floats, rows: NDArray[np.intp]) -> tuple[Floats, NDArray[np.bool_]]:
    """How sure each first answer is, and whether it is right."""
    named = chances[rows, :-1]
    return np.clip(named.max(axis=1), 1e-6, 1 - 1e-6), cases.right[rows, named.argmax(axis=1)]


def threshold(cases: Cases, chances: Floats) -> float:
    """Where the set is cut so that it holds the truth in the share of unproved cases that is asked for."""
    needed = []
    for i in open_cases(cases):
        order = np.argsort(-chances[i])
        cost = set_costs(chances[i][order])
        needed.append(min(cost[n] for n, c in enumerate(order) if cases.right[i, c]))
    return float(np.quantile(needed, COVERED))


def report(cases: Cases, chances: Floats, cut: float) -> dict[str, Any]:
    """First answers, three, family, calibration and sets, by set of cases; provers speak where they answer."""
    of = {r.cause: r.family for r in all_rules()}
    found: dict[str, Any] = {}
    for name in [*dict.fromkeys(r["set"] for r in cases.rows), "all"]:
        mine = [
            i
            for i, r in enumerate(cases.rows)
            if name in (r["set"], "all") and any(c not in NOT_A_CAUSE for c in r["accept"])
        ]
        if not mine:
            continue
        first = three = family = 0
        sizes, held = [], 0
        for i in mine:
            order = [cases.causes[c] for c in np.argsort(-chances[i]) if cases.causes[c] != ELSE]
            row = cases.rows[i]
            if row["proved"]:
                order = list(dict.fromkeys([row["first"], *order]))
            first += order[0] in row["accept"]
            three += any(c in row["accept"] for c in order[:3])
            family += of.get(order[0]) in {of.get(c) for c in row["accept"]}
            if not row["proved"]:
                ranked = np.argsort(-chances[i])
                n = max(1, int((np.array(set_costs(chances[i][ranked])) <= cut).sum()))
                sizes.append(n)
                held += any(cases.right[i, c] for c in ranked[:n])
        found[name] = {
            "cases": len(mine), "first": first / len(mine), "three": three / len(mine), "family": family / len(mine),
            "set": held / max(len(sizes), 1), "size": float(np.mean(sizes)) if sizes else 0.0,
        }  # fmt: skip
        shares = "  ".join(f"{key} {found[name][key]:.3f}" for key in ("first", "three", "family"))
        print(f"{name:16s} {len(mine):5d}  {shares}  set {found[name]['set']:.2f} of {found[name]['size']:.1f}")
    found["fine"] = _fine(cases, chances)
    open_ = open_cases(cases)
    top, hit = first_of(cases, chances, open_)
    found["bands"] = []
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (top >= low) & (top < low + 0.1)
        if inside.any():
            found["bands"].append([float(low), int(inside.sum()), float(top[inside].mean()), float(hit[inside].mean())])
            print(f"  said {top[inside].mean():.2f}  right {hit[inside].mean():.2f}  of {inside.sum()}")
    found["brier"] = float(((top - hit) ** 2).mean())
    found["log_loss"] = float(-np.log(np.maximum((chances * cases.right).sum(1), 1e-9))[open_].mean())
    print(f"Brier {found['brier']:.4f}  log loss {found['log_loss']:.4f}  of {len(open_)}")
    return found


SCALARS = ("rule", "else_words", "else_quiet")  # final weights that the model keeps as they are


def compiled(cases: Cases, final: Floats, kept: NDArray[np.bool_]) -> tuple[Floats, Floats, dict[str, float]]:
    """Word x cause and cause: what the final weights make of the kept cases' words, and the final weights by name.

    One more column: how much a word speaks for a text in which nothing is wrong.
    """
    alpha, mean = ridge(cases.x[kept] @ cases.x[kept].T, first_label(cases)[kept], cases.weight[kept])
    w, same = cases.x[kept].T @ alpha, families(cases.causes)
    of = dict(zip(NAMES, map(float, final), strict=True))
    weights = of["text"] * w + of["family"] * (w @ same) + of["page"] * page_matrix(cases)
    weights -= weights.mean(axis=1, keepdims=True)  # what a word adds to every cause alike changes nothing
    bias = of["text"] * mean + of["family"] * (mean @ same)
    bias[-1] += of["else"]
    alpha, level = ridge(
        cases.manner[kept] @ cases.manner[kept].T, *untroubled(cases, np.flatnonzero(kept)), HEALTHY_RIDGE
    )
    return np.hstack([weights, cases.manner[kept].T @ alpha]), np.append(bias, level), of


def _fine(cases: Cases, chances: Floats) -> dict[str, list[float]]:
    """Where nothing is wrong: how many cases, and the shares that are offered a cause at 30% and given one as the answer."""
    found = {}
    for name in [*dict.fromkeys(r["set"] for r in cases.rows), "all"]:
        mine = [i for i in np.flatnonzero(cases.right[:, -1]) if name in (cases.rows[i]["set"], "all")]
        if mine:
            top = chances[mine, :-1].max(axis=1)
            spoke = np.array([cases.rows[i]["proved"] for i in mine])
            found[name] = [len(mine), float((top >= OFFERED).mean()), float(((top >= ANSWERS) | spoke).mean())]
            print(
                f"nothing wrong    {name:16s} {len(mine):5d}  offered {found[name][1]:.3f}  answered {found[name][2]:.3f}"
            )
    return found


OFFERED = 0.3


def write(cases: Cases, final: Floats, cut: float, curve: tuple[float, ...]) -> None:
    """Everything in one matrix of whole numbers, and what goes with it."""
    weights, bias, of = compiled(cases, final, cases.weight > 0)
    scale = np.maximum(np.abs(weights).max(axis=0), 1e-9)
    stored = np.round(weights / scale * 127).astype(np.int8)
    used = np.flatnonzero(np.abs(stored).max(axis=1) > 1)
    levels = np.linspace(cases.idf.min(), cases.idf.max(), LEVELS)
    codes = np.abs(cases.idf[used, None] - levels[None, :]).argmin(axis=1)
    clues, answers = clue_tables(cases, np.ones(len(cases.rows), dtype=bool))
    meta = {
        "cases": int((cases.weight > 0).sum()),
        "causes": cases.causes,
        "scale": [round(float(s) / 127, 7) for s in scale],
        "bias": [round(float(b), 5) for b in bias],
        "idf": [round(float(v), 4) for v in levels],
        "idf_of": "".join(chr(ord("0") + c) for c in codes),
        "clues": {key: [round(of["clues"] * v, 4) for v in pair] for key, pair in sorted(clues.items())},
        **{name: round(of[name], 4) for name in SCALARS},
        **healthy_counts(cases),
        "curve": [round(v, 4) for v in curve],
        "threshold": round(cut, 4),
        "provers": {cause: round(rate, 3) for cause, rate in prover_rates(cases.rows).items()},
        "answers": {word: [round(v, 4) for v in pair] for word, pair in answers.items()},
    }
    np.save(OUT / "weights.npy", stored[used])
    (OUT / "words.txt").write_text("\n".join(cases.words[i] for i in used), encoding="utf-8")
    (OUT / "model.json").write_text(json.dumps(meta, ensure_ascii=False, indent=0), encoding="utf-8")
    print(
        f"{len(used)} words, {len(cases.causes)} causes, {meta['cases']} cases; "
        f"weights {dict(zip(NAMES, np.round(final, 3), strict=True))}"
    )


def empty() -> None:
    """A model that knows nothing, so that features can be computed before the first fit."""
    causes = [r.cause for r in all_rules() if r.cause != "none" and not r.preview] + [ELSE]
    np.save(OUT / "weights.npy", np.zeros((1, len(causes)), dtype=np.int8))
    (OUT / "words.txt").write_text("nothing", encoding="utf-8")
    meta = {
        "cases": 0, "causes": causes, "scale": [1.0] * len(causes), "bias": [0.0] * len(causes), "idf": [1.0], "idf_of": "0",
        "clues": {}, "rule": 1.0, "else_words": 0.0, "else_quiet": 0.0,
        "healthy_from": 9.0, "trouble_offset": 0.0, "trouble_slope": 0.0, "curve": [0.0, 1.0], "threshold": 0.9, "provers": {},
        "answers": {word: [0.7, 0.2] for word in get_args(Strength)},
    }  # fmt: skip
    (OUT / "model.json").write_text(json.dumps(meta), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--scores", default="")
    parser.add_argument("--dump", default="")
    args = parser.parse_args()
    if args.features == "empty":
        return empty()
    cases = read(rows_of(args.features))
    settle(cases)
    chances, final = out_of_fold(cases)
    curve = platt(cases, chances)
    chances = calmed(cases, np.array([recalibrated(row, *curve) for row in chances]))
    cut = threshold(cases, chances)
    scores = report(cases, chances, cut)
    if args.dump:
        np.savez_compressed(
            args.dump,
            chances=chances.astype(np.float32),
            z=STACK[0].astype(np.float32),
            right=cases.right,
            fold=cases.fold,
        )
    if args.scores:
        Path(args.scores).write_text(json.dumps(scores, indent=1), encoding="utf-8")
    if args.write:
        write(cases, final, cut, curve)
    return None


if __name__ == "__main__":
    main()
