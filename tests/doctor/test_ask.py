"""Questions: what is asked, what an answer adds, and when it ends."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.causes import all_rules
from stallwise.doctor.ask.bank import bank, decoded, encoded, seen_choices
from stallwise.doctor.ask.choose import WHICH_SEEN, Asker
from stallwise.doctor.ask.reply import choice_of
from stallwise.doctor.examine import MOST_ASKED, Consultation, diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.findings.question import DONT_KNOW, NONE_OF_THESE, Choice, Question
from stallwise.doctor.gather import gather
from stallwise.doctor.recognise.model import model, probabilities
from stallwise.doctor.words import words_in
from stallwise.errors import BadRequest
from stallwise.evidence.vocabulary import resolve
from stallwise.evidence.words import Words

VAGUE = "training is slow"
FIRST = Question("Where?", (Choice("one rank", ("rank_local=yes",)), Choice("all alike"), Choice(DONT_KNOW)))


def consultation(words: str) -> Consultation:
    return Consultation(gather([Words(words)], workers=1, cache=False))


def test_every_cause_has_something_to_be_seen_and_its_answers_are_counted() -> None:
    causes = {r.cause for r in all_rules() if not r.preview} - {"none"}
    assert set(seen_choices()) == causes
    assert {f"seen: {c}" for c in causes} <= set(bank().shares)
    assert {c.key for f in bank().fixed for c in f.choices} <= set(bank().shares)


def test_what_is_to_be_seen_of_a_cause_leads_to_it() -> None:
    known, first = model(), 0
    for cause, choice in seen_choices().items():
        order = np.argsort(np.negative(probabilities(known.scores(words_in(choice.text))[0])))
        first += known.causes[order[0]] == cause
    assert first >= 0.9 * len(seen_choices())


def test_what_fixed_choices_state_is_known_to_the_catalogue() -> None:
    rows = tomllib.loads((files("stallwise.doctor.ask") / "asked.toml").read_text(encoding="utf-8"))["question"]
    for fixed in bank().fixed:
        for choice in fixed.choices:
            for word in choice.states:
                resolve(word.partition("=")[0])
    assert [row["text"] for row in rows] == [f.text for f in bank().fixed]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=120))
def test_shares_survive_their_encoding(shares: list[float]) -> None:
    text = encoded(shares)
    assert text.isascii() and text.isprintable() and len(text) == len(shares) and "\\" not in text
    assert np.abs(np.subtract(decoded(text), shares)).max() < 0.006


def test_information_is_none_where_the_cause_is_known_and_never_more_than_the_doubt() -> None:
    known = bank()
    choices = list(known.seen.values())[:4]
    sure = np.zeros(len(known.causes) + 1)
    sure[3] = 1.0
    assert Asker(known, sure).bits(choices) == pytest.approx(0.0, abs=1e-9)
    two = np.zeros(len(known.causes) + 1)
    places = [known.causes.index(c) for c in ("shm-too-small", "gpu-fell-off-bus")]
    two[places] = 0.5
    told = Asker(known, two).bits([known.seen["shm-too-small"], known.seen["gpu-fell-off-bus"]])
    assert 0.4 < told <= 1.0
    assert told > Asker(known, two).bits([known.seen["tail-wave"], known.seen["barrier-stalls"]])


def test_an_unclear_answer_asks_and_a_proved_or_healthy_one_does_not() -> None:
    unclear = diagnose(Words(VAGUE), workers=1, cache=False)
    (question,) = unclear.questions
    assert unclear.state is State.UNCLEAR
    assert question.choices[-1].text == DONT_KNOW
    assert question.separates and set(question.separates) <= {r.cause for r in all_rules()}
    proved = diagnose(Words("Xid 79: GPU has fallen off the bus"), workers=1, cache=False)
    assert proved.state is State.SICK and not proved.in_set and not proved.questions


def test_nothing_known_at_all_asks_what_is_wrong() -> None:
    assert diagnose(facts=["gpus=8"]).questions[0].text == "What is wrong?"


def test_a_choice_is_evidence_and_the_diagnosis_is_run_again() -> None:
    talk = consultation(VAGUE)
    question = talk.question
    assert question is not None and question.text == WHICH_SEEN
    picked = question.choices[1]
    talk.reply("2")
    assert talk.diagnosis.ranked[0] == picked.key.removeprefix("seen: ")
    assert any(picked.text in str(f.value) for f in talk.diagnosis.evidence.facts["symptom"])
    by_words = diagnose(Words(VAGUE), answers=[picked.text], workers=1, cache=False)
    assert by_words.ranked[0] == talk.diagnosis.ranked[0]
    assert by_words.findings[0].basis == "recognised"


def test_none_of_these_makes_them_less_likely_and_does_not_offer_them_again() -> None:
    talk = consultation(VAGUE)
    before = {h.cause: h.probability for h in talk.diagnosis.hypotheses}
    offered = {c.key.removeprefix("seen: ") for c in talk.question.choices if c.key}
    talk.reply(NONE_OF_THESE)
    after = {h.cause: h.probability for h in talk.diagnosis.hypotheses}
    first = max(offered, key=lambda c: before.get(c, 0.0))
    assert after.get(first, 0.0) < before[first]
    again = {c.key.removeprefix("seen: ") for q in talk.diagnosis.questions for c in q.choices}
    assert not offered & again


def test_dont_know_adds_nothing_and_moves_on() -> None:
    talk = consultation(VAGUE)
    first, ranked = talk.question, talk.diagnosis.ranked
    talk.reply(DONT_KNOW)
    assert talk.diagnosis.ranked == ranked
    assert talk.question is not None and talk.question != first


def test_at_most_five_questions_are_asked() -> None:
    talk = consultation(VAGUE)
    asked = 0
    while talk.question is not None and asked < 20:
        talk.reply(DONT_KNOW)
        asked += 1
    assert asked <= MOST_ASKED and not talk.diagnosis.questions
    ranked = talk.diagnosis.ranked
    talk.reply("1")  # nothing is asked any more
    assert talk.diagnosis.ranked == ranked


def test_free_words_and_facts_are_answers() -> None:
    talk = consultation(VAGUE)
    talk.reply("/dev/shm is only 64 MB in the container, bus error in a DataLoader worker")
    assert talk.diagnosis.ranked[0] == "shm-too-small"
    assert choice_of(FIRST, "gpus=8").states == ("gpus=8",)
    assert choice_of(FIRST, "colour=8").states == ("symptom=colour=8",)


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [("1", 0), ("2", 1), (" ALL alike. ", 1), ("one", 0), ("dont know", 2), ("?", 2), ("", 2), ("don't know", 2)],
)
def test_a_choice_is_meant_by_number_words_or_their_beginning(typed: str, chosen: int) -> None:
    assert choice_of(FIRST, typed).text == FIRST.choices[chosen].text


@pytest.mark.parametrize("typed", ["0", "4", "99999999999999999999"])
def test_a_number_that_is_no_choice_is_refused(typed: str) -> None:
    with pytest.raises(BadRequest):
        choice_of(FIRST, typed)


@given(st.text(max_size=80))
def test_any_text_is_an_answer_or_refused_in_words(typed: str) -> None:
    try:
        choice = choice_of(FIRST, typed)
    except BadRequest:
        return
    assert choice.text or not typed.strip()
