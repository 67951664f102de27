"""Counts the cases anew and fits what is fitted to them: `make knowledge`.

Reads every case that has a truth (tests/incidents, and the shared cases where that folder is) and what the drill plants,
writes src/stallwise/knowledge/cases/*.jsonl, clues/*.toml and fitted.toml, and prints what moved. Each case's testimony is
taken with its whole project left out, so that what is fitted is how well cases of other projects speak.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.consider import consider
from stallwise.doctor.differential import SOMETHING_ELSE, clue_outcomes, parts_of
from stallwise.doctor.gather import gather
from stallwise.doctor.said import said
from stallwise.doctor.stating import state
from stallwise.doctor.suspicion import MOST_UNHEARD, WITNESSES, by_rules, probabilities, statements, weighed
from stallwise.doctor.symptoms import complaints
from stallwise.drill.generate import incident_of
from stallwise.drill.incident import model_answer
from stallwise.drill.papers.dice import Dice
from stallwise.drill.scenarios import authors
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue
from stallwise.findings.finding import Finding, Unknown
from stallwise.knowledge import cases as counted
from stallwise.knowledge import clues, fitted, rarity, rates, vote
from stallwise.measures import measure_evidence
from stallwise.rules import all_rules, declared

ROOT = Path(__file__).parents[1]
INCIDENTS = ROOT / "tests" / "incidents"
QUESTIONS = ROOT / "tests" / "questions"
SHARED = ROOT.parent / "shared"
KNOWLEDGE = ROOT / "src" / "stallwise" / "knowledge"
WITNESSED = 2  # projects that must use a word
FEWEST_IN_A_STEP = (
    40  # answers behind each step of the curve: of 15 to 60 this foretells answers about left-out projects best
)
RIDGE = 0.01
CLUE_LEANS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # in cases
RATE_LEANS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
AS_WELL = 1.0  # in log likelihood: the odds of one model against another that nobody would call different
FOLDS = 20  # of whole projects, for what clues and base rates borrow: one number each needs no finer ones
PLANTED, FIRST_SEED = 3, 90_000  # incidents of each cause that the drill plants, far from the seeds that people play
MOST_TOLD = 10  # of the clues that moved
NEVER = 1e-4  # a truth that no rule declares under its symptom costs this much, whatever is borrowed
KNOWN = (("cases", "expect_cases", "composed"), ("real", "expect_real", "capture"), ("h200", "expect", "capture"))
COMPOSED = ("improve", "kept", "strangers", "strangers_kept")
COMPLAINTS = ("complaints", "complaints_kept")
WORDLESS = ("capture",)  # of which the words are other people's
NOT_A_CAUSE = {"none", "unclear"}


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
    outcomes: tuple[tuple[str, Clue, bool], ...]  # by cause, what its clues say
    evidence: Evidence
    verdicts: list[Finding | Unknown]
    spoken: dict[str, float] = field(default_factory=dict)
    proved: bool = False

    @property
    def causes(self) -> tuple[str, ...]:
        """All that count as right, likeliest first as whoever recorded it put them, but for "healthy" and "cannot tell"."""
        return tuple(dict.fromkeys(c for c in self.accept if c not in NOT_A_CAUSE))


def listed() -> Iterator[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]:
    """Every case on record: set, row, project, kind, paths, facts."""
    for half in COMPOSED:
        for row in _rows(INCIDENTS / half / "index.jsonl"):
            kind = "lines" if str(row["basis"]).startswith("real lines") else "composed"
            yield half, row, str(row["project"]), kind, [str(INCIDENTS / half / str(row["id"]))], ()
    for row in _rows(INCIDENTS / "wordings.jsonl"):
        words = {**row, "id": str(row["text"])}
        yield "wordings", words, "/".join(str(row["url"]).split("/")[3:5]), "wording", [], (f"symptom={row['text']}",)
    for file in sorted((QUESTIONS / "forums").glob("*improve.toml")):
        for row in _tables(file, "wording"):
            words = {"id": row["words"], "accept": row["causes"]}
            project = str(row["seen"]).partition("#")[0]
            yield "forums", words, project, "wording", [], (f"symptom={row['words']}",)
    for name in COMPLAINTS:
        for row in _rows(INCIDENTS / f"{name}.jsonl"):
            *_, owner, repo, _, number = str(row["url"]).split("/")
            words = {**row, "id": f"{owner}/{repo}#{number}"}
            yield name, words, f"{owner}/{repo}", "wording", [], (f"symptom={row['text']}",)
    yield from _asked()
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


def _asked() -> Iterator[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]:
    """The questions of the matrix that complain of a run and have an answer, in every wording; each is a project of its own."""
    for row in (row for file in sorted(QUESTIONS.glob("*.toml")) for row in _tables(file, "question")):
        if row.get("by") == "explain" or "causes" not in row:
            continue
        with TemporaryDirectory() as folder:
            paths = [str(ROOT / name) for name in row.get("files", ())]
            for place, text in enumerate([row["text"]] if "text" in row else row.get("texts", ())):
                path = Path(folder) / f"{place}.txt"
                path.write_text(text, encoding="utf-8")
                paths.append(str(path))
            for place, words in enumerate(row["wordings"], 1):
                case = {"id": f"{row['id']} {place}", "accept": row["causes"]}
                facts = (*row.get("facts", ()), f"symptom={words}")
                yield "questions", case, f"question:{row['id']}", "question", paths, facts


def _tables(path: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))[name]
    return found


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def heard() -> list[Told]:
    """Every case, read and measured once."""
    found: list[Told] = []
    for name, row, project, kind, paths, facts in listed():
        try:
            found.append(_as_heard(name, row, project, kind, paths, facts))
        except StallwiseError:
            continue
        print(f"\r{len(found)} cases", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def well() -> list[Told]:
    """Runs and services that are well: no cause is right there."""
    sys.path.insert(0, str(ROOT))
    from tests.calm.logs import calm_logs, calm_of_rules

    found = []
    for name, texts in {**calm_logs(), **calm_of_rules()}.items():
        with TemporaryDirectory() as folder:
            for file, text in texts.items():
                (Path(folder) / file).write_text(text, encoding="utf-8")
            with suppress(StallwiseError):  # what is refused is not called sick either
                found.append(_as_heard("calm", {"id": name, "accept": ["none"]}, "calm", "calm", [folder], ()))
    return found


def _as_heard(
    name: str, row: dict[str, object], project: str, kind: str, paths: list[str], facts: tuple[str, ...]
) -> Told:
    evidence = gather(paths, workers=1, cache=False) if paths else Evidence()
    state(evidence, facts)
    measure_evidence(evidence)
    verdicts = [v for rule in all_rules() for v in rule.verdicts(evidence)]
    symptoms = tuple(c.symptom for c in complaints(evidence))
    return Told(
        name, str(row["id"]), project, kind, _words(row["accept"]), _words(row.get("never", [])),
        said(evidence, symptoms), tuple(s.name for s in symptoms), outcomes_in(evidence), evidence, verdicts,
    )  # fmt: skip


def outcomes_in(evidence: Evidence) -> tuple[tuple[str, Clue, bool], ...]:
    """What every clue says that the evidence decides; not of one kernel among several, for no truth says which is meant."""
    single = (r for r in all_rules() if len(parts_of(r, evidence)) <= 1)
    return tuple((r.cause, clue, held) for r in single for clue, held, _ in clue_outcomes(r, evidence))


def judge(told: list[Told]) -> None:
    """What rules and clues make of each case, by what other projects have taught."""
    for case in told:
        with counted.leaving_out(case.project):
            known = consider(case.evidence, all_rules(), case.verdicts)
        case.spoken, case.proved = by_rules(known.seen), known.proved


def planted(cause: str) -> list[Evidence]:
    """What the papers of the drill's incidents of a cause hold."""
    place, found = list(authors()).index(cause), []
    for turn in range(PLANTED):
        seed = FIRST_SEED + PLANTED * place + turn
        dice = Dice(seed)
        writers = authors()[cause]
        incident = incident_of(seed, cause, writers[turn % len(writers)](dice), dice)
        found.append(model_answer(incident).evidence)
    return found


def drilled() -> dict[tuple[str, str], list[int]]:
    """For every clue, how many of the drill's incidents lie on each side."""
    found: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(clues.SIDES))
    for place, planted_cause in enumerate(authors()):
        for evidence in planted(planted_cause):
            for cause, clue, held in outcomes_in(evidence):
                found[cause, clue.says][clues.SIDES.index(side_of(held, cause == planted_cause))] += 1
        print(f"\r{place + 1} causes drilled", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def side_of(held: bool, at_work: bool) -> str:
    """Where a case stands in a clue's count."""
    return f"{'held' if held else 'denied'}_{'with' if at_work else 'without'}"


def _words(given: object) -> tuple[str, ...]:
    assert isinstance(given, list)
    return tuple(map(str, given))


def write_cases(told: list[Told]) -> None:
    """One file a set; words only where two projects use them, and none of artifacts that are other people's."""
    users: dict[str, set[str]] = defaultdict(set)
    for case in (c for c in told if c.kind not in WORDLESS):
        for word in case.marks:
            users[word].add(case.project)
    for name in dict.fromkeys(case.set for case in told):
        lines = []
        for case in (c for c in told if c.set == name):
            keep = sorted(w for w in case.marks if len(users[w]) >= WITNESSED and ";" not in w)
            own = case.kind not in WORDLESS
            row = {
                "id": case.id, "project": case.project, "kind": case.kind, "causes": case.causes,
                "symptoms": case.symptoms, "words": ";".join(keep) if own else "",
            }  # fmt: skip
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        (KNOWLEDGE / "cases" / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    forget()


def write_clues(told: list[Told], in_drills: dict[tuple[str, str], list[int]]) -> None:
    """One file a family: of every clue the cases on each side, but for those of which nobody knows the cause."""
    heard_in: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for case in (c for c in told if c.causes or "unclear" not in c.accept):
        for cause, clue, held in case.outcomes:
            heard_in[cause, clue.says][side_of(held, cause in case.causes)].append(case.id)
    lines: dict[str, list[str]] = defaultdict(list)
    for rule in all_rules():
        for clue in rule.clues:
            sides = heard_in[rule.cause, clue.says]
            lines[rule.family] += [
                "[[clue]]",
                f'cause = "{rule.cause}"',
                f"says = {json.dumps(clue.says)}",
                f'tells = "{clue.tells}"',
                *(f"{s} = {json.dumps(sorted(sides[s]), ensure_ascii=False)}" for s in clues.SIDES if s in sides),
                f"drilled = {in_drills[rule.cause, clue.says]}",
                "",
            ]
    for family, rows in lines.items():
        title = f"# {family}: written by `make knowledge`. The cases that decide each clue, with its cause at work and without; "
        text = "\n".join([title + "of the drill's, how many.", "", *rows])
        (KNOWLEDGE / "clues" / f"{family}.toml").write_text(text, encoding="utf-8")
    forget()


def forget_counts() -> None:
    """Counts clues and rates anew."""
    for known in (clues._tables, rates._rates, rates._words, rates._counted):
        known.cache_clear()


def forget() -> None:
    """Reads the tables anew."""
    for known in (
        counted._all_cases, counted._counting, rarity._seen, fitted.fitted, clues.listed,
        vote.electorate,
    ):  # fmt: skip
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


def curve(score: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[list[float], list[float]]:
    """How often an answer of each score is right: pooled until it rises with the score."""
    order = np.argsort(score, kind="stable")
    steps: list[list[float]] = []  # right, count, least score, most
    for part in np.array_split(order, max(1, len(order) // FEWEST_IN_A_STEP)):
        steps.append([float(right[part].sum()), float(len(part)), float(score[part[0]]), float(score[part[-1]])])
        while len(steps) > 1 and _often(steps[-2]) >= _often(steps[-1]):
            last = steps.pop()
            steps[-1] = [steps[-1][0] + last[0], steps[-1][1] + last[1], steps[-1][2], last[3]]
    # Both ends of a step have its frequency: between its cases nothing is known that would make one surer than another.
    ends = [(round(end, 4), round(_often(step), 4)) for step in steps for end in step[2:]]
    return [end for end, _ in ends], [often for _, often in ends]


def _often(step: list[float]) -> float:
    """With a Beta prior of one right and one wrong: no step is certain."""
    return (step[0] + 1.0) / (step[1] + 2.0)


def calibrated(
    score: NDArray[np.float64], right: NDArray[np.bool_], calm: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    """The curve, with runs that are well as far as it speaks for them: what scores higher is held below even odds there."""
    scores, frequencies = curve(score, right)
    low = calm[calm < np.interp(MOST_UNHEARD, frequencies, scores)]
    return curve(np.concatenate([score, low]), np.concatenate([right, np.zeros(len(low), dtype=bool)]))


def scores_of(told: list[Told], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """The raw probability of the first answer where nothing is proved."""
    judge(told)
    _, top = firsts(design(told)[0], w)
    found: NDArray[np.float64] = top[np.array([not c.proved for c in told])]
    return found


def firsts(x: NDArray[np.float64], w: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The first answer of every case and its raw probability."""
    z = x @ w
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    first = p[:, :-1].argmax(axis=1)
    return first, p[np.arange(len(p)), first]


def leans(told: list[Told]) -> tuple[float, float]:
    """How much clues and base rates borrow where they have few cases: what foretells the cases of left-out projects best."""
    now, projects = fitted.fitted(), sorted({c.project for c in told})
    folds = [frozenset(projects[turn::FOLDS]) for turn in range(FOLDS)]

    def likelihood(clue_lean: float, rate_lean: float) -> tuple[float, float]:
        given = replace(now, clue_lean=clue_lean, rate_lean=rate_lean)
        clues.fitted = rates.fitted = lambda: given  # type: ignore[attr-defined]
        by_clue = by_rate = 0.0
        for fold in folds:
            forget_counts()
            with counted.leaving_out(*fold):
                for case in (c for c in told if c.project in fold and c.causes):
                    for cause, clue, held in case.outcomes:
                        tells = clues.telling(cause, clue)
                        chance = tells.under if cause in case.causes else tells.other
                        by_clue += 0.0 if tells.silent else math.log(chance if held else 1.0 - chance)
                    if case.symptoms:
                        tables = [rates.rates(name, declared) for name in case.symptoms]
                        chance = sum(t.get(cause, 0.0) for t in tables for cause in case.causes) / len(tables)
                        by_rate += math.log(max(chance, NEVER))
        return by_clue, by_rate

    tried = [likelihood(*pair) for pair in zip(CLUE_LEANS, RATE_LEANS, strict=True)]
    clues.fitted = rates.fitted = fitted.fitted  # type: ignore[attr-defined]
    forget_counts()
    by_clue, by_rate = zip(*tried, strict=True)
    return fewest(CLUE_LEANS, by_clue), fewest(RATE_LEANS, by_rate)


def fewest(leans_tried: tuple[float, ...], likelihoods: tuple[float, ...]) -> float:
    """The least borrowing that foretells about as well as the best does: what cases can say for themselves they shall."""
    return next(x for x, got in zip(leans_tried, likelihoods, strict=True) if got >= max(likelihoods) - AS_WELL)


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
        f"# {cases} cases that nothing proves, each heard with its project left out; and how many cases clues and base rates borrow.",
        "[weights]", *(f"{n} = {v:.4f}" for n, v in known.weights.items()), "", "[right]",
        f"score = {list(known.scores)}", f"frequency = {list(known.frequencies)}", "",
        "[lean]", f"clue = {known.clue_lean}", f"rate = {known.rate_lean}", "",
    ]  # fmt: skip
    (KNOWLEDGE / "fitted.toml").write_text("\n".join(lines), encoding="utf-8")
    forget()


def all_tellings() -> dict[str, float]:
    """How much every clue tells when it holds."""
    return {f"{r.cause}, {c.says}": clues.telling(r.cause, c).ratio for r in all_rules() for c in r.clues}


def tell_clues(before: dict[str, float], after: dict[str, float]) -> None:
    """The clues that moved most."""
    moved = sorted(after, key=lambda name: -abs(math.log(after[name] / before[name])))
    changed = [name for name in moved if not math.isclose(before[name], after[name], rel_tol=0.01)]
    print(f"{len(changed)} of {len(after)} clues tell more or less than before")
    for name in changed[:MOST_TOLD]:
        print(f"    {before[name]:7.2f} -> {after[name]:7.2f} {name}")


def main(told: list[Told] | None = None) -> None:
    """Reads, counts, fits, writes, tells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--stability", type=int, default=0, metavar="N", help="then take away each of the N largest projects"
    )
    given = parser.parse_args()
    before, tellings = fitted.fitted(), all_tellings()
    told = told or heard()
    write_cases(told)
    told = [c for c in told if c.kind != "question"]  # those count for base rates alone
    write_clues(told, drilled())
    clue_lean, rate_lean = leans(told)
    write_fitted(replace(before, clue_lean=clue_lean, rate_lean=rate_lean), 0)
    judge(told)
    x, y, causes = design(told)
    open_ = np.array([not c.proved for c in told])
    weight = np.array([counted.WEIGHTS[c.kind] for c in told])
    w = fit(x[open_], y[open_], weight[open_])
    names = (*WITNESSES, "else", "else_words")
    first, top = firsts(x, w)
    right = np.array([causes[f] in c.causes for f, c in zip(first, told, strict=True)])
    score, frequency = calibrated(top[open_], right[open_], scores_of(well(), w))
    weights = dict(zip(names, map(float, w), strict=True))
    ends = (0.0, *score, 1.0), (0.0, *frequency, max(frequency))
    write_fitted(fitted.Fitted(weights, *ends, clue_lean, rate_lean), int(open_.sum()))
    after = fitted.fitted()
    print(
        f"a clue borrows {after.clue_lean} cases (was {before.clue_lean}), a rate {after.rate_lean} ({before.rate_lean})"
    )
    tell_clues(tellings, all_tellings())
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
