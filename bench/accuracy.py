"""First answers with every project left out in its turn, and how sure they turn out: `make accuracy`.

python bench/accuracy.py            prints the tables
python bench/accuracy.py --write    and writes docs/accuracy.md
python bench/accuracy.py --set improve --set kept
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from stallwise.doctor.examine import diagnose
from stallwise.errors import StallwiseError
from stallwise.findings.diagnosis import Diagnosis, State
from stallwise.knowledge.cases import leaving_out

ROOT = Path(__file__).parents[1]
BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01))
SETS = (
    "improve", "kept", "strangers", "strangers_kept", "cases", "real", "h200",
    "wordings", "forums", "complaints", "complaints_kept",
)  # fmt: skip
UNREAD = ("kept", "strangers_kept", "complaints_kept")  # who reads their misses has spent them
NEW = ("improve", "kept", "strangers", "strangers_kept")
KNOWN = ("cases", "real", "h200")
IN_WORDS = ("wordings", "forums", "complaints", "complaints_kept")
# Incidents all come from somebody's trouble. How sure an answer may be where nobody complains depends on those who had none.
CALM = "calm"
# Scored with the first release, before any of this was written: what the same incidents got at first sight.
FIRST_SIGHT = {"improve": (40, 119, 48), "kept": (39, 145, 63), "wordings": (23, 129, 58)}
WHAT = {
    "improve": "public incidents, looked at while improving", "kept": "public incidents, never looked at",
    "strangers": "later incidents of other projects, looked at", "strangers_kept": "the same, never looked at",
    "cases": "public incidents the rules were written with", "real": "public artifacts as found",
    "h200": "own recordings", "wordings": "complaints in one sentence", "forums": "the same, of forum threads",
    "complaints": "complaints in two or three sentences", "complaints_kept": "the same of other projects, never looked at",
    CALM: "runs and services that are well (right: not called sick)",
}  # fmt: skip


@dataclass
class Score:
    """Counts of one set."""

    cases: int = 0
    right: int = 0
    among_three: int = 0
    false_clear: int = 0
    unclear: int = 0
    bands: dict[tuple[float, float], list[float]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0.0]))
    misses: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)


def _listed() -> Iterable[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]:
    """The cases on record, from the file beside this one."""
    if "knowledge_bench" not in sys.modules:
        spec = importlib.util.spec_from_file_location("knowledge_bench", Path(__file__).with_name("knowledge.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["knowledge_bench"] = module
        spec.loader.exec_module(module)
    found: Iterable[tuple[str, dict[str, object], str, str, list[str], tuple[str, ...]]]
    found = sys.modules["knowledge_bench"].listed()
    return found


def score_sets(names: Iterable[str], without: tuple[str, ...] = (), every: int = 1) -> dict[str, Score]:
    """Every case of these sets (or every so many), answered by what is known from other projects, and without these where named."""
    wanted = tuple(names)
    scores = {name: Score() for name in wanted}
    rows = sorted((r for r in _listed() if r[0] in wanted), key=lambda r: r[2])[::every]
    for name, case, project, _kind, paths, facts in rows:
        with leaving_out(project, *without):
            _count(scores[name], case, paths, facts)
    return {name: score for name, score in scores.items() if score.cases}


def _count(score: Score, case: dict[str, object], paths: list[str], facts: tuple[str, ...]) -> None:
    accept, never = set(case["accept"]), set(case.get("never", ()))  # type: ignore[call-overload]
    score.cases += 1
    try:
        answer = diagnose(*paths, facts=facts, workers=1, cache=False)
    except StallwiseError:
        score.misses.append(f"{case['id']}: refused")
        return
    ranked, sure = _answer(answer, str(case.get("kernel", "")))
    first = ranked[0] if ranked else ""
    unclear = answer.state is State.UNCLEAR
    named = first in accept and first not in never
    right = named or (unclear and "unclear" in accept)
    score.answers[str(case["id"])] = first
    score.right += right
    score.among_three += right or any(c in accept for c in ranked[:3])
    score.unclear += unclear
    score.false_clear += first == "none" and "none" not in accept
    if first and not answer.healthy and "unclear" not in accept:  # nobody knows the cause of those
        _place(score, sure, named=named)
    if not right:
        wanted = " or ".join(sorted(accept))
        score.misses.append(f"{case['id']}: {first or 'nothing'} ({answer.state.value}, {sure:.0%}), wanted {wanted}")


def score_calm() -> Score:
    """Runs that are well: whatever is named as the likeliest cause there is wrong, however unsure."""
    sys.path.insert(0, str(ROOT))
    from tests.calm.logs import calm_logs, calm_of_rules

    score = Score()
    for name, files in {**calm_logs(), **calm_of_rules()}.items():
        with TemporaryDirectory() as folder:
            for file, text in files.items():
                (Path(folder) / file).write_text(text, encoding="utf-8")
            answer = diagnose(folder, workers=1, cache=False)
        score.cases += 1
        score.right += answer.state is not State.SICK
        score.among_three += answer.state is not State.SICK
        score.unclear += answer.state is State.UNCLEAR
        ranked, sure = _answer(answer, "")
        if ranked and not answer.healthy:
            _place(score, sure, named=False)
        if answer.state is State.SICK:
            score.misses.append(f"{name}: {ranked[0]} ({sure:.0%}) of a run that is well")
    return score


def _place(score: Score, sure: float, *, named: bool) -> None:
    band = next(b for b in BANDS if b[0] <= sure < b[1])
    score.bands[band][0] += 1
    score.bands[band][1] += named
    score.bands[band][2] += sure


def _answer(answer: Diagnosis, kernel: str) -> tuple[tuple[str, ...], float]:
    """The order of causes and how sure the first is; of one kernel where the case asks for it."""
    if kernel:
        mine = [f for f in answer.findings if (f.scope.kernel or "").startswith(kernel)]
        return tuple(dict.fromkeys(f.cause for f in mine)) or ("none",), mine[0].confidence if mine else 0.0
    table = {h.cause: h.probability for h in answer.hypotheses}
    seen = {f.cause: f.confidence for f in reversed(answer.findings)}
    first = answer.ranked[0] if answer.ranked else ""
    return answer.ranked, seen.get(first, table.get(first, 0.0))


def together(scores: dict[str, Score], names: Iterable[str]) -> Score:
    """Several sets as one."""
    whole = Score()
    for score in (scores[n] for n in names if n in scores):
        whole.cases += score.cases
        whole.right += score.right
        whole.among_three += score.among_three
        whole.false_clear += score.false_clear
        whole.unclear += score.unclear
        for band, counts in score.bands.items():
            whole.bands[band] = [a + b for a, b in zip(whole.bands[band], counts, strict=True)]
    return whole


def table(scores: dict[str, Score]) -> str:
    """Markdown."""
    lines = ["| set | what | cases | first release, first sight | first answer | first three | false all-clear | cannot tell |",
             "|---|---|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    rows = {
        **scores,
        "new": together(scores, NEW),
        "known": together(scores, KNOWN),
        "all": together(scores, (*NEW, *KNOWN)),
        "in words": together(scores, IN_WORDS),
    }
    for name, s in rows.items():
        if not s.cases:
            continue
        then = f"{FIRST_SIGHT[name][0] / FIRST_SIGHT[name][1]:.0%}" if name in FIRST_SIGHT else ""
        lines.append(
            f"| {name} | {WHAT.get(name, '')} | {s.cases} | {then} | {s.right / s.cases:.0%} ({s.right}) "
            f"| {s.among_three / s.cases:.0%} | {s.false_clear} | {s.unclear / s.cases:.0%} |"
        )
    lines += ["", "## How sure answers turn out", "",
              "First answers by how sure they were said to be: right of how many, and what was said on average.", "",
              f"| set | {' | '.join(f'{low:.0%} to {min(high, 1):.0%}' for low, high in BANDS)} |",
              f"|---|{'---:|' * len(BANDS)}"]  # fmt: skip
    rows["all and calm"] = together(scores, (*NEW, *KNOWN, CALM))
    rows["all, calm and in words"] = together(scores, (*NEW, *KNOWN, CALM, *IN_WORDS))
    for name, s in rows.items():
        cells = [
            f"{s.bands[b][1]:.0f} of {s.bands[b][0]:.0f}, said {s.bands[b][2] / s.bands[b][0]:.0%}" if s.bands[b][0] else "-"
            for b in BANDS
        ]  # fmt: skip
        if s.cases:
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Scores, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--misses", action="store_true", help="name the misses of sets that may be looked at")
    given = parser.parse_args()
    scores = score_sets(given.set or SETS)
    scores = {name: scores[name] for name in SETS if name in scores}
    if not given.set:
        scores[CALM] = score_calm()
    text = table(scores)
    print(text)
    misses = "\n".join(f"- {m}" for name, s in scores.items() if name not in UNREAD for m in s.misses)
    if given.misses:
        print(misses)
    if given.write:
        page = INTRO + text + f"\n\n## Misses of the sets that may be looked at\n\n{misses}\n"
        (ROOT / "docs" / "accuracy.md").write_text(page, encoding="utf-8")


INTRO = """# How often it is right

Regenerated by `make accuracy`. Every case is answered with all cases of its own project taken out of what is counted, so that
no answer rests on a case of the same project. What people wrote, the rules and the pages, saw the known sets (`cases`, `real`,
`h200`), the wordings and the looked-at half of the public incidents (`tests/incidents`, gathered without looking at the rules
and scored with the first release before anything was changed); the other half, drawn by project, was kept. *Right*: the first
cause is one that the thread's resolution allows, or the answer is "cannot tell" where nothing could be told. *False all-clear*:
healthy, where it was not. The complaints were gathered from the threads of some 1,050 projects and told as their reporters could
before they knew the cause. Of the first 1,277, before any was counted, 610 led to a right cause (319 of 638 in the half that was
kept), and of 867 verdicts 508 were right. Of 714 more, once those counted, 367 did (51%), 257 of 376 verdicts were right, and one
was called healthy that was not (cannot tell since). The strangers are files of some 550 projects, gathered like the incidents
and later, in three waves. At first sight 175 of the 291 of the first wave that had a trouble were named (60%), and 109 of 142
verdicts were right; of the 368 of the second, once those counted, 218 (59%; 74% among the first three), 107 of 154 verdicts; of the
202 of the third, after the second counted and rules that are not clear became witnesses among others, 134 (66%; 84%), 76 of 100
verdicts (the code before it: 129, 78%, 71 of 97). None was called healthy but one kernel at its roof. Of 113 that were well 14 were
called sick. Opening one half of the first wave raised that half to 80% and the other not at all, until all counted.
Incidents all come from somebody's trouble, so the last rows of the second table add runs that are well (`tests/calm`,
composed): there every named cause is wrong, and an answer that nobody asked for must be so much less sure.

"""

if __name__ == "__main__":
    main()
