"""Cards, numeric questions, grading and progress."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.cli.drill import command
from stallwise.drill.anki import to_anki
from stallwise.drill.deck import LEVELS, all_cards
from stallwise.drill.grading import grade
from stallwise.drill.numbers import Question, series
from stallwise.drill.progress import Progress
from stallwise.errors import UnreadableInput
from tests.shared_data import shared

# What the other two question seeds ask, by the key their cards carry.
SYSTEMS = "llama-8b plateau roofline tp-pp-fsdp tp-node-cap bubble bf16-master fp8 profiling nan-early loss-spikes oom-sometimes"
SYSTEMS += " slow-first-iteration dropping-throughput wins prefill-decode"
PATHOLOGIES = "stages stable-or-bursty local-or-global before-or-sync after-memory-change levers amp rng staff"


def covered() -> set[str]:
    return {key for card in all_cards() for key in card.covers}


def test_every_card_is_whole() -> None:
    ids = [c.id for c in all_cards()]
    assert len(ids) == len(set(ids)) and len(ids) > 90
    for card in all_cards():
        assert card.level in LEVELS and card.ask.strip() and len(card.answer) > 80 and len(card.must) >= 2, card.id


@pytest.mark.parametrize("card", all_cards(), ids=lambda c: c.id)
def test_a_cards_own_answer_passes_and_a_parrot_does_not(card) -> None:  # type: ignore[no-untyped-def]
    assert grade(card.answer, card.must).verdict in ("strong", "pass"), grade(card.answer, card.must).missing
    assert grade("Increase the batch size, add GPUs, raise occupancy.", card.must).verdict == "again"


def test_the_two_lists_of_the_smaller_seeds_are_covered() -> None:
    assert {f"sys:{k}" for k in SYSTEMS.split()} | {f"path:{k}" for k in PATHOLOGIES.split()} <= covered()


@pytest.mark.shared
def test_every_question_of_the_two_long_seeds_has_a_card() -> None:
    folder = shared("seeds")
    texts = {p.name[:3]: p.read_text(encoding="utf-8", errors="replace") for p in folder.glob("*.txt")}
    graded = re.findall(r"^(.+?[.?]) (?:easy|medium|hard)$", texts["001"], re.M)
    numbered = {int(n) for n in re.findall(r"(?<!\S)(\d{1,2})\.(?= \S)", texts["004"]) if 1 <= int(n) <= 60}
    wanted = {f"gpu:{i}" for i in range(len(graded))} | {f"llm:{n}" for n in numbered}
    assert len(graded) == 64 and len(numbered) == 60
    assert wanted - covered() == set()


def independent(question: Question) -> float:
    """The same number by arithmetic written anew, from the inputs alone."""
    v = dict(question.inputs)
    n, p = v.get("ranks", 0), v.get("params", 0)
    key = (question.formula, question.result)
    if key == ("zero-memory", "bytes_per_rank"):
        kept = {1: 4, 2: 2, 3: 0}[int(v["stage"])]
        return p * kept + p * (16 - kept) / n
    if key == ("tensor-parallel-traffic", "sent_bytes"):  # four all-reduces a layer, forward and backward together
        return 4 * v["layers"] * 2 * (v["tp"] - 1) / v["tp"] * v["tokens"] * v["hidden"] * 2
    table = {
        ("adam-states", "state_bytes"): lambda: p * (14 + v["gradient"]),
        ("adam-states", "optimizer_bytes"): lambda: p * 12,
        ("kv-cache", "request_bytes"): lambda: 2 * math.prod(v[k] for k in ("layers", "kv_heads", "head_dim", "context", "element")),
        ("minimum-gpus", "gpus"): lambda: math.ceil(v["state_bytes"] / v["memory_bytes"]),
        ("attention-scores", "scores_bytes"): lambda: v["batch"] * v["heads"] / v["tp"] * v["seq"] ** 2 * 2,
        ("ring-allreduce", "sent_bytes"): lambda: 2 * v["size_bytes"] * (1 - 1 / n),
        ("ring-allreduce", "seconds"): lambda: 2 * v["size_bytes"] * (1 - 1 / n) / v["byte_per_s"] + 1e-5 * (n - 1),
        ("pipeline-bubble", "step_share"): lambda: (v["stages"] - 1) / (v["microbatches"] + v["stages"] - 1),
        ("pipeline-bubble", "useful_ratio"): lambda: (v["stages"] - 1) / v["microbatches"] / v["chunks"],
        ("zero3-volume", "sharded_bytes"): lambda: 3 * 2 * p * (1 - 1 / n),
        ("ridge-point", "ridge_flop_per_byte"): lambda: v["peak_flop_per_s"] / v["byte_per_s"],
        ("decode-ceiling", "step_s"): lambda: (v["weights_bytes"] + v["requests"] * v["kv_bytes"]) / v["gpus"] / v["byte_per_s"],
        ("speculative-gain", "tokens_per_pass"): lambda: sum(v["accept_share"] ** k for k in range(int(v["guesses"]) + 1)),
        ("training-flops", "mfu_share"): lambda: v["token_per_s"] / v["peak_flop_per_s"]
        * (6 * p + 6 * v["layers"] * v["query_width"] * v["seq"]),
        ("checkpoint-interval", "young_s"): lambda: (2 * v["checkpoint_s"] * v["mtbf_gpu_s"] / v["gpus"]) ** 0.5,
    }  # fmt: skip
    return float(table[key]())


def test_five_hundred_numeric_questions_are_right_and_no_two_alike() -> None:
    questions = series(seed=2024, count=500)
    assert len({q.id for q in questions}) == len({q.ask for q in questions}) == 500
    for question in questions:
        assert question.answer == pytest.approx(independent(question), rel=1e-9), question.ask
        assert question.accepts(f"{question.answer:.17g}")
        assert not question.accepts(f"{question.answer * 1.3:.17g}")


def test_the_same_seed_gives_the_same_questions() -> None:
    assert series(5, 20) == series(5, 20) != series(6, 20)


def test_units_are_understood() -> None:
    question = next(q for q in series(1, 200) if q.unit.value == "B")
    assert question.accepts(f"{question.answer / 1e9}GB")


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
    result = runner.invoke(
        command, ["cards", "--topic", "memory", "--count", "1"], input="16 bytes: master, momentum, variance\n\n"
    )
    assert result.exit_code == 0 and "found" in result.output and "next time" in result.output
    assert runner.invoke(command, ["progress"]).output.strip().endswith("to the line of 40")
    again = runner.invoke(command, ["cards", "--topic", "memory", "--count", "1", "--json"])
    assert json.loads(again.output)[0]["id"] != "adam-bytes"
