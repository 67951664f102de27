# ruff: noqa: E501
"""Cards are graded by their exact checks: no wrong answer gets better than again, no right one worse than pass."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.drill.card_review import CardReview
from stallwise.drill.check import KINDS, Check
from stallwise.drill.deck import LEVELS, Card, all_cards, to_anki
from stallwise.drill.progress import Progress
from stallwise.errors import BadRequest, UnreadableInput
from stallwise.surfaces.cli.drill import command
from tests.shared_data import shared

# What the other two question seeds ask, by the key their cards carry.
SYSTEMS = "llama-8b plateau roofline tp-pp-fsdp tp-node-cap bubble bf16-master fp8 profiling nan-early loss-spikes oom-sometimes"
SYSTEMS += " slow-first-iteration dropping-throughput wins prefill-decode"
PATHOLOGIES = "stages stable-or-bursty local-or-global before-or-sync after-memory-change levers amp rng staff"
HERE = Path(__file__).parent
GRADED = tomllib.loads((HERE / "graded.toml").read_text(encoding="utf-8"))
PROSE = tomllib.loads((HERE / "prose.toml").read_text(encoding="utf-8"))["answer"]
CARDS = {c.id: c for c in all_cards()}
LETTERS = "abcdefgh"
ORDINALS = "first second third fourth fifth sixth seventh eighth".split()
ENOUGH = 60


def covered() -> set[str]:
    return {key for card in all_cards() for key in card.covers}


def test_every_card_is_whole() -> None:
    ids = [c.id for c in all_cards()]
    assert len(ids) == len(set(ids)) and len(ids) > 90
    for card in all_cards():
        assert card.level in LEVELS and card.ask.strip() and len(card.answer) > 80 and len(card.must) >= 2, card.id
        check = card.check
        assert check.kind in KINDS and check.ask.strip(), card.id
        assert check.value > 0 and check.within >= 1 if check.kind == "number" else check.right, card.id
        assert not set(check.right) & set(check.wrong), card.id
        assert check.kind != "choice" or (len(check.right) == 1 and len(check.wrong) >= 2), card.id
        assert check.kind != "several" or check.wrong, card.id
    assert min(Counter(c.check.kind for c in all_cards()).values()) >= 10


def choice_forms(check: Check, seed: int) -> dict[str, str]:
    lines = check.lines(seed)
    at, off = lines.index(check.right[0]), lines.index(check.wrong[seed % len(check.wrong)])
    return {
        "right": LETTERS[at], "RIGHT": LETTERS[at].upper(), "number": str(at + 1), "ordinal": ORDINALS[at], "words": lines[at],
        "WORDS": lines[at].upper(), "wrong": LETTERS[off], "WRONG": LETTERS[off].upper(), "wrong_number": str(off + 1), "wrong_words": lines[off],
    }  # fmt: skip


def several_forms(check: Check, seed: int) -> dict[str, str]:
    lines = check.lines(seed)
    right = [LETTERS[n] for n, line in enumerate(lines) if line in check.right]
    wrong = [LETTERS[n] for n, line in enumerate(lines) if line in check.wrong]
    more = [*right, wrong[0]]
    return {
        "right": " ".join(right), "number": " ".join(str(LETTERS.index(x) + 1) for x in right), "comma": ", ".join(right),
        "and": " and ".join(right), "glued": "".join(right), "backwards": " ".join(right[::-1]), "less": " ".join(right[1:]),
        "more": " ".join(more), "wrongs": " ".join(wrong), "less_comma": ", ".join(right[:-1]), "more_and": " and ".join(more), "one": right[0],
    }  # fmt: skip


def order_forms(check: Check, seed: int) -> dict[str, str]:
    lines = check.lines(seed)
    right = [LETTERS[lines.index(line)] for line in check.right]
    swapped, rotated = [right[1], right[0], *right[2:]], [*right[1:], right[0]]
    numbers = [str(LETTERS.index(x) + 1) for x in right]
    return {
        "right": " ".join(right), "number": " ".join(numbers), "glued": "".join(right), "arrows": " > ".join(right),
        "then": ", then ".join(numbers), "comma": ", ".join(right), "swapped": " ".join(swapped), "reversed": " ".join(right[::-1]),
        "rotated": " ".join(rotated), "swapped_comma": ", ".join(swapped), "reversed_glued": "".join(right[::-1]),
        "rotated_number": " ".join(str(LETTERS.index(x) + 1) for x in rotated), "less": " ".join(right[1:]),
    }  # fmt: skip


FORMS = {"choice": choice_forms, "several": several_forms, "order": order_forms}


def graded(kind: str, deserved: str) -> Iterator[tuple[Card, int, str]]:
    """Card, seed and text of every answer of this kind that deserves this."""
    if kind == "number":
        yield from ((CARDS[card], 0, text) for card, text in GRADED[kind][deserved])
        return
    for place, card in enumerate(c for c in all_cards() if c.check.kind == kind):
        forms = FORMS[kind](card.check, place)
        yield from ((card, place, form.format(**forms)) for form in GRADED[kind][deserved])


def sit(card: Card, seed: int, text: str) -> CardReview:
    sitting = CardReview(card, seed)
    sitting.answer("skip")
    sitting.answer(text)
    if sitting.stage == "sure":
        sitting.answer("skip")
    return sitting


@pytest.mark.parametrize("kind", KINDS)
def test_right_answers_pass_and_wrong_ones_are_asked_again(kind: str) -> None:
    right, wrong = list(graded(kind, "right")), list(graded(kind, "wrong"))
    assert len(right) + len(wrong) >= ENOUGH
    assert [(c.id, t) for c, s, t in right if sit(c, s, t).verdict not in ("pass", "strong")] == []
    assert [(c.id, t) for c, s, t in wrong if sit(c, s, t).verdict != "again"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_understood_is_asked_back_and_costs_nothing(kind: str) -> None:
    for card, seed, text in graded(kind, "asked_again"):
        sitting = CardReview(card, seed)
        sitting.answer("")
        with pytest.raises(BadRequest) as problem:
            sitting.answer(text)
        assert problem.value.hint and sitting.stage == "check", (card.id, text)


@pytest.mark.parametrize("card", all_cards(), ids=lambda c: c.id)
def test_no_prose_gives_a_mark_by_itself(card: Card) -> None:
    """The model answer with a wrong check is again; silence with a right check is a pass."""
    sitting = CardReview(card)
    sitting.answer(card.answer)
    if sitting.stage == "again":
        sitting.answer("skip")
    sitting.answer("skip")
    assert sitting.verdict == "again"
    quiet = CardReview(card)
    quiet.answer("")
    right = {
        "number": lambda: (
            f"{card.check.value:.6g} {card.check.unit.value if card.check.unit.value not in ('count', 'share', 'ratio') else ''}"
        )
    }
    forms = FORMS.get(card.check.kind)
    quiet.answer(right["number"]() if forms is None else forms(card.check, 0)["right"])
    assert quiet.verdict == "pass"


def test_prose_of_known_quality_moves_no_mark_and_what_is_read_is_not_denied() -> None:
    """Sixty answers of known quality: the verdict is that of the check; lists and denials are read as nothing."""
    found: Counter[tuple[str, str]] = Counter()
    for answer in PROSE:
        card = CARDS[answer["card"]]
        sitting = CardReview(card, prose=answer["text"], stage="check")
        found[(answer["half"], answer["quality"])] += len(sitting.found)
        found[(answer["half"], answer["quality"] + " of")] += len(card.must)
        sitting.answer("skip")
        assert sitting.verdict == "again"
    share = {q: found[("kept", q)] / found[("kept", q + " of")] for q in ("right", "wrong", "soup", "negated")}
    print("\nideas read from the prose, kept half:", {q: f"{s:.0%}" for q, s in share.items()})
    assert share["negated"] < 0.35 and share["soup"] == 0


def test_strong_needs_a_right_answer_that_was_believed() -> None:
    for sure, verdict in (("50%", "pass"), ("skip", "pass"), ("90%", "strong")):
        sitting = CardReview(CARDS["bubble"])
        sitting.answer("It is seven over thirty-nine of the step, or 22% of the useful time.")
        assert sitting.answer("17,9 %") == ""  # nothing is given away before it is known how sure the learner is
        assert "right" in sitting.answer(sure)
        assert sitting.verdict == verdict
    wrong = CardReview(CARDS["bubble"])
    for text in ("skip", "50 %", "99%"):
        wrong.answer(text)
    assert wrong.verdict == "again" and wrong.share < 0.05


def test_what_is_no_sentence_is_asked_back_once() -> None:
    sitting = CardReview(CARDS["bubble"])
    sitting.answer("banana, apple, pear")
    assert sitting.stage == "again" and "could not read" in sitting.asks()
    sitting.answer("banana")
    assert sitting.stage == "check"


def test_the_two_lists_of_the_smaller_seeds_are_covered() -> None:
    assert {f"sys:{k}" for k in SYSTEMS.split()} | {f"path:{k}" for k in PATHOLOGIES.split()} <= covered()


@pytest.mark.shared
def test_every_question_of_the_two_long_seeds_has_a_card() -> None:
    folder = shared("seeds")
    texts = {p.name[:3]: p.read_text(encoding="utf-8", errors="replace") for p in folder.glob("*.txt")}
    graded_questions = re.findall(r"^(.+?[.?]) (?:easy|medium|hard)$", texts["001"], re.M)
    numbered = {int(n) for n in re.findall(r"(?<!\S)(\d{1,2})\.(?= \S)", texts["004"]) if 1 <= int(n) <= 60}
    wanted = {f"gpu:{i}" for i in range(len(graded_questions))} | {f"llm:{n}" for n in numbered}
    assert len(graded_questions) == 64 and len(numbered) == 60
    assert wanted - covered() == set()


def test_what_is_forgotten_comes_back_sooner(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Progress(tmp_path / "d.sqlite") as progress:
        forgotten = progress.review("a", "gpu", "again", 0.0, now)
        known = progress.review("b", "gpu", "strong", 1.0, now)
        assert forgotten < known
        assert progress.due(["a", "b", "c"], now + timedelta(hours=1)) == ["a", "c"]
        assert progress.known() == 1 and progress.by_topic()["gpu"]["known_share"] == 0.5


def test_progress_survives_export_and_import(tmp_path: Path) -> None:
    with Progress(tmp_path / "a.sqlite") as one:
        one.review("a", "gpu", "pass", 1.0, datetime(2026, 1, 1, tzinfo=UTC))
        document = json.loads(json.dumps(one.export()))
    with Progress(tmp_path / "b.sqlite") as two:
        assert two.take_in(document) == 1 and two.take_in(document) == 0
        assert two.known() == 1
        with pytest.raises(UnreadableInput):
            two.take_in({"reviews": [{"item": "x"}]})


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"not a database, but long enough to look at" * 10)
    with pytest.raises(UnreadableInput):
        Progress(tmp_path / "x.sqlite")


def test_anki_lines_have_three_columns() -> None:
    rows = [line for line in to_anki(all_cards()).splitlines() if not line.startswith("#")]
    assert len(rows) == len(all_cards()) and all(line.count("\t") == 2 for line in rows)


def test_a_round_of_cards_in_the_terminal() -> None:
    runner = CliRunner()
    said = "It is 2 for the weights, 2 for the gradients and 12 for the optimizer.\nsixteen\n16 bytes\n95%\n"
    result = runner.invoke(command, ["cards", "--topic", "memory", "--count", "1"], input=said)
    assert result.exit_code == 0 and "16.000" not in result.output
    assert "of what?" in result.output and "right: 16 B" in result.output and "strong; next time" in result.output
    shown = runner.invoke(command, ["progress"]).output
    assert "of the first 50 questions on large systems; 34 more to the line of 35" in shown and "line of 40" in shown
    again = runner.invoke(command, ["cards", "--topic", "memory", "--count", "1", "--json"])
    assert json.loads(again.output)[0]["id"] != "adam-bytes"
