"""Players of known quality over classic and generated incidents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.candidates import candidates
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.generic import account
from stallwise.drill.claims.weigh import PASS, weigh
from stallwise.drill.generate import incident, incident_of
from stallwise.drill.incident import CLASSICS, model_answer
from stallwise.drill.rubric import LEVELS
from stallwise.drill.scenarios import authors
from tests.drill.players import play
from tests.drill.test_claims import first
from tests.shared_data import shared

RIGHT = first("right")
LISTS = first("list")
SEEDS = range(3001, 3009)
SEED_TARGETS = r"Target diagnosis(?: path)?[^:]*:(.*?)Failure mode to avoid"


@pytest.mark.parametrize("number", range(1, CLASSICS + 1))
def test_who_knows_passes_and_who_opens_nothing_fails(number: int, tmp_path: Path) -> None:
    knows = play(number, tmp_path, "knows", RIGHT[number])
    guesses = play(number, tmp_path, "guesses", RIGHT[number], exhibits=0, sure="99%")
    assert LEVELS[knows.level] in ("pass", "strong pass"), knows
    assert guesses.word == "fail" and guesses.marks["artifacts"].level == 0


@pytest.mark.parametrize("number", range(1, CLASSICS + 1))
def test_words_without_sentences_fail_with_every_paper_open(number: int, tmp_path: Path) -> None:
    account = LISTS.get(number, " ".join(sorted(set(re.findall(r"[A-Za-z-]{6,}", RIGHT[number])))).replace(" ", ", "))
    assert play(number, tmp_path, "list", account, exhibits=4).word == "fail"


@pytest.mark.parametrize("number", range(1, CLASSICS + 1))
def test_who_names_everything_or_repeats_the_question_fails(number: int, tmp_path: Path) -> None:
    """Every candidate in a sentence of its own, the right one last, with its remedy; and the setup read back."""
    case, known = incident(number), account(incident(number))
    listed = sorted(candidates(case), key=lambda c: c in case.accepted)
    every = " ".join(f"It is that {cause_profiles()[c].words[0]} is the reason." for c in listed)
    first = next(i.says for rank, i in known.fixes if rank == 1)
    for name, account_text in (
        ("every", f"{every} {RIGHT[number]}"),
        ("again", f"{case.setup} I would do this first: {first}."),
    ):
        done = play(number, tmp_path, name, account_text, exhibits=3)
        assert done.word == "fail", (name, done)


def test_hints_cost_a_point_each_and_everything_is_no_strong_choice(tmp_path: Path) -> None:
    few, many = play(2, tmp_path, "few", RIGHT[2]), play(2, tmp_path, "many", RIGHT[2], exhibits=99)
    assert few.marks["artifacts"].level == 2 and many.marks["artifacts"].level == 1 and many.points < few.points
    wrong = play(2, tmp_path, "wrong", RIGHT[2], knows=False)
    assert wrong.points < few.points and wrong.marks["numbers"].level <= 1


def test_calibration_is_a_proper_loss(tmp_path: Path) -> None:
    sure, unsure = play(2, tmp_path, "a", RIGHT[2], sure="99%"), play(2, tmp_path, "b", RIGHT[2], sure="50%")
    bluff = play(2, tmp_path, "c", "The loader is slow, so I would add workers and prefetch more.", sure="99%")
    assert sure.loss is not None and unsure.loss is not None and bluff.loss is not None
    assert sure.loss < unsure.loss < bluff.loss


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_incidents_know_their_own_remedy_from_their_trap(seed: int, tmp_path: Path) -> None:
    known = account(incident(seed))
    first = next(i.says for rank, i in known.fixes if rank == 1)
    said = (
        f"The files show that {known.cause.says}, and all of the time is lost to that. I would do this first: {first}."
    )
    lured = f"The files show that {known.cause.says}. I would do this first: {known.traps[0].says}."
    assert play(seed, tmp_path, "knows", said).level >= 1, (incident(seed).cause, said)
    assert play(seed, tmp_path, "lured", lured).word == "fail"
    assert play(seed, tmp_path, "guesses", said, exhibits=0).word == "fail"


def test_generated_incidents_are_told_from_each_other_in_anybody_s_words() -> None:
    """Accounts in own words pass at their incident, and hardly ever at another one."""
    lines = (Path(__file__).parent / "generated.tsv").read_text(encoding="utf-8").splitlines()[2:]
    told = [tuple(line.split("\t")) for line in lines]
    worlds = {}
    for cause, _ in told:
        rng = Rng(70_000)
        worlds[cause] = account(incident_of(70_000, cause, authors()[cause][0](rng), rng))
    passed = {
        (mine, other): min(done.cause.level, done.fixes.level) >= PASS
        for mine, text in told
        for other, known in worlds.items()
        for done in [weigh(text, known)]
    }
    right = sum(passed[cause, cause] for cause, _ in told)
    wrong = [pair for pair, ok in passed.items() if ok and pair[0] != pair[1]]
    print(
        f"\n{right} of {len(told)} accounts pass, {len(wrong)} of {len(passed) - len(worlds)} at another incident: {wrong}"
    )
    assert right >= 0.9 * len(told) and len(wrong) <= 0.01 * len(passed)


def test_the_doctor_finds_every_classic_from_the_files_alone() -> None:
    firsts = {n: model_answer(incident(n)).ranked[0] for n in range(1, CLASSICS + 1)}
    assert {n: cause for n, cause in firsts.items() if cause not in incident(n).accepted} == {}


@pytest.mark.shared
@pytest.mark.parametrize("number", range(1, CLASSICS + 1))
def test_the_document_s_own_answer_is_a_strong_pass_and_its_trap_first_is_none(number: int, tmp_path: Path) -> None:
    """Diagnosis and remedies as the interview's text has them, typed whole; its failure mode as the first remedy."""
    (path,) = shared("seeds").glob("000*")
    text = path.read_text(encoding="utf-8")
    told = re.findall(r"Target diagnosis.*?(?=Failure mode to avoid)", text, re.S)[number - 1]
    account = re.sub(r"(?m)^- ", "", re.sub(r"Target fix(?:es)?[^:]*:", "\nFixes:\n", told))
    done = play(number, tmp_path, "target", account)
    assert done.word == "strong pass", done
    trap = re.findall(r"Failure mode to avoid: ([^.]*\.)", text)[number - 1]
    lured = f"I would fix it like this first: {trap}"
    assert play(number, tmp_path, "trap", lured).marks["fixes"].level == 0
