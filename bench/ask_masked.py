"""How often the first answer is right after 0, 1, 3 and 5 questions: `make ask`.

    python bench/ask_masked.py FEATURES.jsonl [--sets public_dev] [--index FOLDER/index.jsonl --half test] [--show N] [--settled]

Every incident is masked to its first sentence; its full record answers the questions. The one who answers sees what the readers and a
classifier see in the full record and nothing else: not the truth, and (with --settled) the sentence that tells how the thread was
settled, like somebody who goes and looks. Classifier, reliabilities and table of answers are fitted without the incident's project.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from case_features import features_of  # type: ignore[import-not-found]
from fit_questions import WHAT_IS_WRONG, choice_features, shares  # type: ignore[import-not-found]
from fit_recognise import (  # type: ignore[import-not-found]
    Floats,
    fit,
    leveled,
    model_of,
    read,
    rows_of,
)
from recorded_cases import listed  # type: ignore[import-not-found]

from stallwise.doctor.ask import bank as banks
from stallwise.doctor.examine import Consultation
from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE
from stallwise.doctor.findings.question import DONT_KNOW, NONE_OF_THESE, Question
from stallwise.doctor.gather import gather
from stallwise.doctor.prove import TRUSTED
from stallwise.doctor.recognise import model as models
from stallwise.doctor.recognise.model import Model, probabilities
from stallwise.doctor.words import words_in
from stallwise.errors import StallwiseError
from stallwise.evidence.words import Words

INCIDENTS = ("public_dev", "public_test", "external_dev", "external_test", "wave5")
GROUPS = 5  # of folds: one fit each
AFTER = (0, 1, 3, 5)
SURE_SIGHT = 0.2  # of probability by the full record: from here on somebody says "this is what I see"
SURE_SYMPTOM = 0.25
NO_SIGHT = 0.05  # of all choices together: below it "none of these"
LONGEST = 400  # characters of a first sentence
_WORD = re.compile(r"^[(\"'`]?[A-Za-z][A-Za-z'/-]*[,.;:!?)\"'`]*$")
_END = re.compile(r"(?<=[.?!])\s")


@dataclass
class Incident:
    """A masked text, its full record, and what counts as right."""

    name: str
    first: str
    words: frozenset[str]
    looks: Mapping[str, float]  # by the full record, cause -> probability
    accept: list[str]
    whole: bool  # whether the answer to the full record is right


def first_sentence(paths: Iterable[str], facts: Iterable[str]) -> str:
    """Of what a person wrote; of a log alone its first line."""
    stated = [f.partition("=")[2] for f in facts if f.startswith("symptom=")]
    files = [f for p in paths for f in (sorted(Path(p).rglob("*")) if Path(p).is_dir() else [Path(p)]) if f.is_file()]
    texts = stated or [f.read_text(encoding="utf-8", errors="replace")[:20000] for f in files]
    lines = [[line.strip(" #>*-\t") for line in text.splitlines() if line.strip()] for text in texts]
    prose = next((line for text in lines for line in text if _is_prose(line)), "")
    line = prose or next((text[0] for text in lines if text), "")
    return _END.split(line)[0][:LONGEST]


def _is_prose(line: str) -> bool:
    words = line.split()
    return len(words) >= 5 and sum(bool(_WORD.match(w)) for w in words) >= 0.75 * len(words)


def answer_of(question: Question, incident: Incident, features: Mapping[str, set[str]]) -> str:
    """What the full record says to it."""
    sights = {
        c.text: incident.looks.get(c.key.removeprefix("seen: "), 0.0)
        for c in question.choices
        if c.key.startswith("seen: ")
    }
    if sights:
        best = max(sights, key=lambda text: sights[text])
        if sights[best] >= SURE_SIGHT:
            return best
        return NONE_OF_THESE if sum(sights.values()) < NO_SIGHT else DONT_KNOW
    if question.text == WHAT_IS_WRONG:
        shown = {c.text: _symptom(c.key, incident) for c in question.choices if c.key}
        best = max(shown, key=lambda text: shown[text])
        return best if shown[best] >= SURE_SYMPTOM else DONT_KNOW
    held = {c.text: len(features.get(c.key, set()) & incident.words) for c in question.choices if c.key}
    best = max(held, key=lambda text: held[text])
    return best if held[best] else DONT_KNOW


def _symptom(key: str, incident: Incident) -> float:
    """How surely the full record shows this complaint: as what its likely causes are complained of for."""
    known = banks.bank()
    looks = np.array([incident.looks.get(c, 0.0) for c in known.causes])
    return float(np.dot(known.shares[key], looks))


def consult(incident: Incident, features: Mapping[str, set[str]]) -> dict[str, Any]:
    """First answers after 0, 1, ... questions."""
    log: list[tuple[Any, ...]] = []
    try:
        talk = Consultation(gather([Words(incident.first or "slow")], workers=1, cache=False))
    except StallwiseError:
        return {"id": incident.name, "right": [False], "whole": incident.whole, "log": [], "first": "", "said": 0.0}
    right = [_right(talk, incident)]
    while (question := talk.question) is not None:
        reply = answer_of(question, incident, features)
        talk.reply(reply)
        right.append(_right(talk, incident))
        log.append((question.text, reply, talk.diagnosis.ranked[:1], right[-1]))
    first = max((h.probability for h in talk.diagnosis.hypotheses if h.cause != SOMETHING_ELSE), default=0.0)
    return {
        "id": incident.name, "right": right, "whole": incident.whole, "log": log, "first": incident.first,
        "said": first, "accept": incident.accept,
    }  # fmt: skip


def _right(talk: Consultation, incident: Incident) -> bool:
    return bool(talk.diagnosis.ranked) and talk.diagnosis.ranked[0] in incident.accept


def use(model: Model, table: Mapping[str, Floats]) -> None:
    """Everybody who asks for the compiled model or table gets these."""
    known = banks.Bank(model.causes, banks.fixed_questions(), banks.seen_choices(), CURVE, table)
    _replace("model", models.model, lambda: model)
    _replace("bank", banks.bank, lambda: known)
    models.model, banks.bank = (lambda: model), (lambda: known)  # type: ignore[assignment]


CURVE = banks.bank().curve


def _replace(name: str, old: Callable[[], Any], new: Callable[[], Any]) -> None:
    for module in list(sys.modules.values()):
        if module.__name__.startswith("stallwise") and getattr(module, name, None) is old:
            setattr(module, name, new)


def looked(model: Model, words: Iterable[str], row: Mapping[str, Any], settled: str) -> tuple[dict[str, float], str]:
    """Probabilities by the full record, and the first of them."""
    clues: dict[str, float] = {}
    out = {cause for cause, _, _, never in row["clues"] if never}
    for cause, key, held, never in row["clues"]:
        if cause in model.causes and not never:
            clues[cause] = clues.get(cause, 0.0) + model.clues.get(key, (0.0, 0.0))[0 if held else 1]
    odds = [model.rule * row["rules"].get(c, 0.0) + clues.get(c, 0.0) for c in model.causes]
    scores = np.array(model.scores(words)[0]) + odds
    scores[[c in out for c in model.causes]] = -np.inf
    found = np.array(probabilities(scores))  # type: ignore[arg-type]
    if settled:
        found = (found + probabilities(model.scores(words_in(settled))[0])) / 2.0
    known = model.provers
    trusted = [
        c for c in row["found"] if row["measured"] or c in row["compared"] or known.get(leveled(row, c), 1.0) >= TRUSTED
    ]
    if trusted and trusted[0] in model.causes:  # a prover has seen it
        found = found * 0.1
        found[model.causes.index(trusted[0])] += 0.9
    first = model.causes[int(found.argmax())]
    return dict(zip(model.causes, map(float, found), strict=True)), first


def report(rows: list[dict[str, Any]]) -> None:
    """One line."""
    at = {n: np.mean([r["right"][min(n, len(r["right"]) - 1)] for r in rows]) for n in AFTER}
    asked = np.mean([len(r["right"]) - 1 for r in rows])
    unknown = [reply == DONT_KNOW for r in rows for _, reply, *_ in r["log"]]
    print(
        f"{len(rows)} incidents: first answer right after "
        + ", ".join(f"{n}: {share:.1%}" for n, share in at.items())
        + f"; full record at once {np.mean([r['whole'] for r in rows]):.1%}"
        + f"; asked {asked:.1f}, not known {np.mean(unknown or [0]):.0%}"
    )


def bands(rows: list[dict[str, Any]]) -> None:
    """How sure the last answer is against how often it is right, where a choice was picked: what `CURVE` has to hold."""
    picked = [r for r in rows if any(reply not in (DONT_KNOW, NONE_OF_THESE) for _, reply, *_ in r["log"])]
    for low in np.arange(0.0, 1.0, 0.2):
        mine = [r for r in picked if low <= r["said"] < low + 0.2 + (low > 0.7)]
        if mine:
            print(
                f"  said {np.mean([r['said'] for r in mine]):.2f}  right {np.mean([r['right'][-1] for r in mine]):.2f}  of {len(mine)}"
            )


def fitted_curve(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Offset and slope that make "said" a frequency where a choice was picked: damped Newton of a logistic regression."""
    picked = [r for r in rows if any(reply not in (DONT_KNOW, NONE_OF_THESE) for _, reply, *_ in r["log"])]
    said = np.clip([r["said"] for r in picked], 1e-3, 1.0 - 1e-3)
    x = np.minimum((np.log(said / (1.0 - said)) - CURVE[0]) / CURVE[1], 6.0)  # before the curve that was used
    y, ab = np.array([r["right"][-1] for r in picked], dtype=float), np.array(CURVE)
    for _ in range(200):
        p = 1.0 / (1.0 + np.exp(-(ab[0] + ab[1] * x)))
        w = p * (1.0 - p) + 1e-3
        info = np.array([[w.sum(), (w * x).sum()], [(w * x).sum(), (w * x * x).sum()]])
        ab = ab + 0.5 * np.linalg.solve(info, np.array([(y - p).sum(), ((y - p) * x).sum()]))
    return round(float(ab[0]), 3), round(float(ab[1]), 3)


def cases_of(args: argparse.Namespace) -> Iterator[tuple[str, str, list[str], tuple[str, ...], dict[str, Any]]]:
    """Set, id, paths, facts, index row of what is to be masked."""
    if args.index:
        for line in Path(args.index).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["half"] == args.half:
                yield "first sight", row["id"], [str(Path(args.index).parent / "cases" / row["id"])], (), row
        return
    for name, row, _, _, paths, facts in listed():
        if name in args.sets.split(",") and any(c not in ("none", "unclear") for c in row["accept"]):
            yield name, str(row["id"]), paths, facts, row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--sets", default=",".join(INCIDENTS))
    parser.add_argument("--index", default="")
    parser.add_argument("--half", default="dev")
    parser.add_argument("--write", action="store_true", help="keep the curve that fits")
    parser.add_argument("--settled", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="only every n-th incident")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    wanted = list(cases_of(args))[:: args.every]
    cases = read(rows_of(args.features))
    fitted = fit(cases)
    place = {(r["set"], r["id"]): i for i, r in enumerate(cases.rows)}
    features, rows = choice_features(), []
    for group in range(1 if args.index else GROUPS):
        rest = np.ones(len(cases.rows), dtype=bool) if args.index else cases.fold % GROUPS != group
        mine = [w for w in wanted if args.index or (w[:2] in place and not rest[place[w[0], w[1]]])]
        model = model_of(cases, fitted, rest)
        use(model, shares(cases, fitted.chances, rest))
        incidents = []
        for name, ident, paths, facts, row in mine:
            full = (
                features_of((name, {**row, "id": ident}, "", "", paths, facts))
                if args.index
                else cases.rows[place[name, ident]]
            )
            if "refused" in full:
                continue
            looks, first = looked(model, full["words"], full, str(row.get("truth", "")) if args.settled else "")
            text = first_sentence(paths, facts)
            incidents.append(
                Incident(ident, text, frozenset(full["words"]), looks, row["accept"], first in row["accept"])
            )
        with get_context("fork").Pool(args.workers) as pool:
            rows += pool.starmap(consult, [(i, features) for i in incidents], chunksize=4)
    report(rows)
    bands(rows)
    curve = fitted_curve(rows)
    print(f"  curve {CURVE} was used, {curve} fits")
    if args.write:
        path = Path(banks.__file__).with_name("answers.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), "curve": curve}, indent=0) + "\n", encoding="utf-8")
    for row in rows[: args.show]:
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
