"""Counts the cases anew and fits what is fitted to them: `make knowledge`.

Reads every case that has a truth (tests/incidents, and the shared cases where that folder is), writes
src/stallwise/knowledge/cases/*.toml and fitted.toml, and prints what moved. Each case's testimony is taken
with its whole project left out, so that what is fitted is how well cases of other projects speak.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.consider import consider
from stallwise.doctor.differential import SOMETHING_ELSE, base_rate, clue_outcomes
from stallwise.doctor.gather import gather
from stallwise.doctor.said import said
from stallwise.doctor.stating import state
from stallwise.doctor.suspicion import WITNESSES, by_rules, probabilities, statements, weighed
from stallwise.drill.generate import incident_of
from stallwise.drill.incident import evidence_of
from stallwise.drill.papers.dice import Dice
from stallwise.drill.scenarios import authors
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue
from stallwise.findings.symptom import Symptom
from stallwise.knowledge import cases as counted
from stallwise.knowledge import clues, fitted, rarity, rates, vote
from stallwise.measures import measure_evidence
from stallwise.rules import all_rules

ROOT = Path(__file__).parents[1]
INCIDENTS = ROOT / "tests" / "incidents"
SHARED = ROOT.parent / "shared"
KNOWLEDGE = ROOT / "src" / "stallwise" / "knowledge"
WITNESSED = 2  # projects that must use a word
FEWEST_IN_A_STEP = 25  # answers behind each step of the curve from score to frequency
RIDGE = 0.01
KNOWN = (("cases", "expect_cases", "composed"), ("real", "expect_real", "capture"), ("h200", "expect", "capture"))
NOT_A_CAUSE = {"none", "unclear"}
WORDLESS = ("capture", "drill")  # other people's files, and papers of our own making
PLANTED = 3  # drills of every cause
CLUE_LEANS, RATE_LEANS = (0.5, 1.0, 1.5, 2.0, 4.0, 8.0), (2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # in cases
NEVER = 1e-4  # a truth that no rule declares under its symptom costs this much, whatever is borrowed


@dataclass(slots=True)
class Told:
    """A case as the doctor hears it."""

    set: str
    id: str
    project: str
    kind: str
    accept: tuple[str, ...]
    never: tuple[str, ...]
    marks: frozenset[str]
    symptoms: tuple[str, ...]
    outcomes: tuple[tuple[str, Clue, bool], ...]  # every clue that the case decides: whose, which, and whether it holds
    spoken: dict[str, float]
    proved: bool

    @property
    def causes(self) -> tuple[str, ...]:
        """All that count as right, but for "healthy" and "cannot tell"."""
        return tuple(sorted(set(self.accept) - NOT_A_CAUSE))


def listed() -> Iterator[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]:
    """Every case on record: set, row, project, kind, paths, facts."""
    for half in ("improve", "kept"):
        for row in _rows(INCIDENTS / half / "index.jsonl"):
            kind = "lines" if str(row["basis"]).startswith("real lines") else "composed"
            yield half, row, str(row["project"]), kind, [str(INCIDENTS / half / str(row["id"]))], ()
    for row in _rows(INCIDENTS / "wordings.jsonl"):
        words = {**row, "id": str(row["text"])}
        yield "wordings", words, "/".join(str(row["url"]).split("/")[3:5]), "wording", [], (f"symptom={row['text']}",)
    if not SHARED.is_dir():
        return
    owners = {}
    for row in _rows(SHARED / "data" / "cases" / "public_cases.jsonl"):
        source = row["source"]
        assert isinstance(source, dict)
        owners[row["id"]] = str(source.get("repo") or source.get("url") or row["id"])
    for name, file, kind in KNOWN:
        for row in _rows(SHARED / "checks" / f"{file}.jsonl"):
            paths = row["paths"]
            assert isinstance(paths, list)
            project = owners.get(row["id"], f"{name}:{row['id']}")
            yield name, row, project, kind, [str(SHARED / "data" / p) for p in paths], ()


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def taught() -> Iterator[tuple[str, str, Evidence]]:
    """The drill's own incidents, several of every cause: id, cause, and what its papers hold."""
    for place, (cause, writers) in enumerate(authors().items()):
        for turn in range(PLANTED):
            seed = 90_000 + PLANTED * place + turn
            dice = Dice(seed)
            case = incident_of(seed, cause, writers[turn % len(writers)](dice), dice)
            yield f"drill-{cause}-{turn}", cause, evidence_of(case)


def heard_in_drills() -> list[Told]:
    """What is planted decides clues too: nobody's words, and a world of ours, so it only counts for clues."""
    found = []
    for name, cause, evidence in taught():
        measure_evidence(evidence)
        found.append(
            Told(
                "drill",
                name,
                name.rsplit("-", 1)[0],
                "drill",
                (cause,),
                (),
                frozenset(),
                (),
                decided(evidence),
                {},
                True,
            )
        )
        print(f"\r{len(found)} drills", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def heard() -> list[Told]:
    """Every case, read and measured once."""
    found = []
    for name, row, project, kind, paths, facts in listed():
        try:
            evidence = gather(paths, workers=1, cache=False) if paths else Evidence()
        except StallwiseError:
            continue
        state(evidence, facts)
        measure_evidence(evidence)
        known = consider(evidence, all_rules(), [v for rule in all_rules() for v in rule.verdicts(evidence)])
        symptoms = tuple(c.symptom for c in known.heard)
        found.append(
            Told(
                name, str(row["id"]), project, kind, _words(row["accept"]), _words(row.get("never", [])),
                said(evidence, symptoms), tuple(s.name for s in symptoms), decided(evidence), by_rules(known.seen), known.proved,
            )
        )  # fmt: skip
        print(f"\r{len(found)} cases", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def decided(evidence: Evidence) -> tuple[tuple[str, Clue, bool], ...]:
    """What every clue says that the evidence decides."""
    return tuple((r.cause, clue, held) for r in all_rules() for clue, held, _ in clue_outcomes(r, evidence))


def _words(given: object) -> tuple[str, ...]:
    assert isinstance(given, list)
    return tuple(map(str, given))


def write_cases(told: list[Told]) -> None:
    """One file a set; words only where two projects use them, and none of artifacts that are other people's."""
    users: dict[str, set[str]] = defaultdict(set)
    for case in (c for c in told if c.kind not in WORDLESS):
        for word in case.marks:
            users[word].add(case.project)
    write_clues(told)
    for name in dict.fromkeys(case.set for case in told):
        lines = [f"# {name}: written by `make knowledge`", ""]
        for case in (c for c in told if c.set == name):
            keep = sorted(w for w in case.marks if len(users[w]) >= WITNESSED and ";" not in w)
            own = case.kind not in WORDLESS
            lines += [
                "[[case]]",
                f"id = {json.dumps(case.id, ensure_ascii=False)}",
                f"project = {json.dumps(case.project)}",
                f"kind = {json.dumps(case.kind)}",
                f"causes = {json.dumps(case.causes)}",
                f"symptoms = {json.dumps(case.symptoms)}",
                f"words = {json.dumps(';'.join(keep) if own else '', ensure_ascii=False)}",
                "",
            ]
        (KNOWLEDGE / "cases" / f"{name}.toml").write_text("\n".join(lines), encoding="utf-8")
    forget()


def write_clues(told: list[Told]) -> None:
    """For every clue the cases in which it held and did not, with its cause at work and without."""
    heard_in: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for case in told:
        for cause, clue, held in case.outcomes:
            side = f"{'held' if held else 'denied'}_{'with' if cause in case.causes else 'without'}"
            heard_in[cause, clue.says][side].append(case.id)
    lines = ["# Written by `make knowledge`: the cases that decide each clue, with its cause at work and without.", ""]
    for rule in all_rules():
        for clue in rule.clues:
            sides = heard_in[rule.cause, clue.says]
            lines += [
                "[[clue]]",
                f'cause = "{rule.cause}"',
                f"says = {json.dumps(clue.says)}",
                f'tells = "{clue.tells}"',
            ]
            lines += [f"{side} = {json.dumps(sides[side], ensure_ascii=False)}" for side in sorted(sides)]
            lines += [""]
    (KNOWLEDGE / "clues.toml").write_text("\n".join(lines), encoding="utf-8")


def forget_counts() -> None:
    """Counts clues and rates anew."""
    for known in (clues._tables, rates._rates, rates._overall):
        known.cache_clear()


def forget() -> None:
    """Reads the tables anew."""
    for known in (counted._all_cases, counted._counting, rarity._seen, vote._electorate, fitted.fitted, clues._counted):
        known.cache_clear()
    forget_counts()


def design(told: list[Told], *without: str) -> tuple[NDArray[np.float64], NDArray[np.bool_], list[str]]:
    """Case x cause x witness with every project left out in its turn; which causes are right; their order."""
    causes = [r.cause for r in all_rules() if r.cause != "none"] + [SOMETHING_ELSE]
    at = {cause: i for i, cause in enumerate(causes)}
    x = np.zeros((len(told), len(causes), len(WITNESSES) + 2))
    y = np.zeros((len(told), len(causes)), dtype=bool)
    for project in sorted({c.project for c in told}):
        with counted.leaving_out(project, *without):
            for i, case in enumerate(told):
                if case.project == project:
                    for cause, says in statements(case.marks, weighed(case.outcomes), case.spoken).items():
                        x[i, at[cause], : len(WITNESSES)] = [says[w] for w in WITNESSES]
        vote._electorate.cache_clear()
    for i, case in enumerate(told):
        x[i, -1, -2:] = 1.0, math.log1p(len(case.marks))
        for cause in case.causes:
            y[i, at[cause]] = True
        y[i, -1] = not case.causes or "unclear" in case.accept
    return x, y, causes


def fit(x: NDArray[np.float64], y: NDArray[np.bool_], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the witnesses by Newton's method: the likelihood that a right cause is drawn."""
    w = np.zeros(x.shape[2])
    for _ in range(40):
        z = x @ w
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        q = p * y
        q /= q.sum(axis=1, keepdims=True)
        mean, right = np.einsum("ic,icw->iw", p, x), np.einsum("ic,icw->iw", q, x)
        slope = weight @ (right - mean) - RIDGE * w
        bend = np.einsum("i,ic,icw,icv->wv", weight, p, x, x, optimize=True) - (weight[:, None] * mean).T @ mean
        step = np.linalg.solve(bend + RIDGE * np.eye(len(w)), slope)
        w += step * min(1.0, 2.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-4:
            break
    return w


def leans(told: list[Told]) -> tuple[float, float]:
    """How much clues and base rates borrow from their like: what foretells the cases of left-out projects best."""
    now = fitted.fitted()

    def likelihood(clue: float, rate: float) -> tuple[float, float]:
        given = replace(now, clue_lean=clue, rate_lean=rate)
        clues.fitted = rates.fitted = lambda: given  # type: ignore[attr-defined]
        by_clue = by_rate = 0.0
        for project in sorted({c.project for c in told}):
            forget_counts()
            with counted.leaving_out(project):
                for case in (c for c in told if c.project == project):
                    for cause, held_clue, held in case.outcomes:
                        tells = clues.telling(cause, held_clue.says, held_clue.tells)
                        p = tells.under if cause in case.causes else tells.other
                        by_clue += math.log(p if held else 1.0 - p)
                    if case.causes and case.symptoms:
                        named = [r for r in all_rules() if r.cause in case.causes]
                        p = sum(base_rate(r, Symptom[s]) for r in named for s in case.symptoms) / len(case.symptoms)
                        by_rate += math.log(max(p, NEVER))
        return by_clue, by_rate

    tried = [likelihood(c, r) for c, r in zip(CLUE_LEANS, RATE_LEANS, strict=True)]
    clues.fitted = rates.fitted = fitted.fitted  # type: ignore[attr-defined]
    best = [max(range(len(tried)), key=lambda i: tried[i][which]) for which in (0, 1)]
    return CLUE_LEANS[best[0]], RATE_LEANS[best[1]]


def curve(score: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[list[float], list[float]]:
    """How often an answer of each score is right: pooled until it rises with the score."""
    order = np.argsort(score, kind="stable")
    steps: list[list[float]] = []  # sum of scores, right, count
    for part in np.array_split(order, max(1, len(order) // FEWEST_IN_A_STEP)):
        steps.append([float(score[part].sum()), float(right[part].sum()), float(len(part))])
        while len(steps) > 1 and steps[-2][1] / steps[-2][2] >= steps[-1][1] / steps[-1][2]:
            last = steps.pop()
            steps[-1] = [a + b for a, b in zip(steps[-1], last, strict=True)]
    # A Beta prior of one right and one wrong: no step is certain.
    return [round(s / n, 4) for s, _, n in steps], [round((r + 1.0) / (n + 2.0), 4) for _, r, n in steps]


def firsts(x: NDArray[np.float64], w: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The first answer of every case and its raw probability."""
    z = x @ w
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    first = p[:, :-1].argmax(axis=1)
    return first, p[np.arange(len(p)), first]


def stability(told: list[Told], largest: int) -> None:
    """Takes one project's cases away, fits anew, and counts the first answers of other projects that move."""
    open_ = np.array([not c.proved for c in told])
    weight = np.array([counted.WEIGHTS[c.kind] for c in told])
    x, y, _ = design(told)
    first, _ = firsts(x, fit(x[open_], y[open_], weight[open_]))
    for project, count in Counter(c.project for c in told).most_common(largest):
        rest = np.array([c.project != project for c in told])
        without, _, _ = design(told, project)
        keep = open_ & rest
        moved, _ = firsts(without, fit(without[keep], y[keep], weight[keep]))
        changed = int(((moved != first) & keep).sum())
        share = changed / int(rest.sum())
        print(
            f"without {project} ({count} cases): {changed} of {int(rest.sum())} first answers of others move, {share:.1%}"
        )


def write_fitted(known: fitted.Fitted, cases: int) -> None:
    """fitted.toml."""
    lines = [
        "# Written by `make knowledge`: what each witness weighs, and how often an answer of that score is right, fitted to",
        f"# {cases} cases that nothing proves, each heard with its project left out; and how many cases a clue and a base rate",
        "# borrow from their like where they have few of their own.",
        "[weights]", *(f"{n} = {v:.4f}" for n, v in known.weights.items()), "", "[right]",
        f"score = {list(known.scores)}", f"frequency = {list(known.frequencies)}", "",
        "[lean]", f"clue = {known.clue_lean}", f"rate = {known.rate_lean}", "",
    ]  # fmt: skip
    (KNOWLEDGE / "fitted.toml").write_text("\n".join(lines), encoding="utf-8")
    forget()


def main(told: list[Told] | None = None) -> None:
    """Reads, counts, fits, writes, tells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stability", type=int, default=0, metavar="N", help="then take away each of the N largest projects"
    )
    given = parser.parse_args()
    before = fitted.fitted()
    told = told or heard()
    write_cases(told + heard_in_drills())
    clue_lean, rate_lean = leans(told)
    write_fitted(replace(before, clue_lean=clue_lean, rate_lean=rate_lean), 0)
    x, y, causes = design(told)
    open_ = np.array([not c.proved for c in told])
    weight = np.array([counted.WEIGHTS[c.kind] for c in told])
    w = fit(x[open_], y[open_], weight[open_])
    names = (*WITNESSES, "else", "else_words")
    raw = fitted.Fitted(dict(zip(names, map(float, w), strict=True)), (0.0, 1.0), (0.0, 1.0))
    first, top = firsts(x, w)
    right = np.array([causes[f] in c.causes for f, c in zip(first, told, strict=True)])
    score, frequency = curve(top[open_], right[open_])
    write_fitted(
        replace(raw, scores=(0.0, *score, 1.0), frequencies=(0.0, *frequency, max(frequency)), clue_lean=clue_lean,
                rate_lean=rate_lean), int(open_.sum()),
    )  # fmt: skip
    after = fitted.fitted()
    print(
        f"a clue borrows {after.clue_lean} cases (was {before.clue_lean}), a rate {after.rate_lean} ({before.rate_lean})"
    )
    for n in names:
        print(f"{n:12s} {before.weights.get(n, 0.0):8.3f} -> {after.weights[n]:8.3f}")
    for name in dict.fromkeys(c.set for c in told):
        mine = np.array([c.set == name for c in told]) & open_ & np.array([bool(c.causes) for c in told])
        moved = 0
        for i in np.where(mine)[0]:
            witnesses = {c: dict(zip(WITNESSES, x[i, j], strict=False)) for j, c in enumerate(causes[:-1])}
            old = probabilities(witnesses, len(told[i].marks), before)
            old.pop(SOMETHING_ELSE)
            moved += max(old, key=lambda c: old[c]) != causes[first[i]]
        print(
            f"{name:10s} open {int(mine.sum()):4d}, right {int((right & mine).sum()):4d}, first answers moved {moved}"
        )
    if given.stability:
        stability(told, given.stability)


if __name__ == "__main__":
    main()
