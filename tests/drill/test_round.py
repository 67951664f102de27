# ruff: noqa: E501
"""The state of a round: clock, exhibits and their prices, commitments, journal, examiner."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.causes import all_rules
from stallwise.drill import session_api
from stallwise.drill.calculator import calculate
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.examiner import comment, transcript
from stallwise.drill.generate import incident
from stallwise.drill.incident import CLASSICS
from stallwise.drill.journal import Played
from stallwise.drill.leaderboard import leaderboard
from stallwise.drill.lines_chosen import how_sure, lines_meant
from stallwise.drill.quantity import typed
from stallwise.drill.repl import handle, opening
from stallwise.drill.requests import artifacts, meant
from stallwise.drill.round import HARD_STOP_S, Round, load, start
from stallwise.drill.rubric import DIMENSIONS
from stallwise.errors import BadRequest, StallwiseError
from stallwise.evidence import capture
from stallwise.physics.specs.hardware import gpu
from stallwise.units import Unit
from tests.drill.players import Clock
from tests.drill.test_claims import first

REQUESTS = tomllib.loads((Path(__file__).parent / "requests.toml").read_text(encoding="utf-8"))
KEPT_SHARE = 0.8  # of requests nobody looked at while writing the words


def begun(folder: Path, seed: int = 2) -> tuple[Round, Clock]:
    clock = Clock()
    return start(seed, clock, folder / "r.jsonl"), clock


@pytest.mark.parametrize(("request_text", "kind"), REQUESTS["seen"])
def test_requests_are_understood_in_many_words(request_text: str, kind: str) -> None:
    assert meant(request_text)[:1] == (kind,)


def test_requests_that_were_kept_apart_are_mostly_understood_too() -> None:
    right = sum(meant(text)[:1] == (kind,) for text, kind in REQUESTS["kept"])
    print(f"\nrequests of the kept half understood: {right} of {len(REQUESTS['kept'])}")
    assert right >= KEPT_SHARE * len(REQUESTS["kept"])


@pytest.mark.parametrize("kind", artifacts())
def test_every_kind_is_found_by_its_own_description(kind: str) -> None:
    assert meant(artifacts()[kind].what)[:1] == (kind,)
    assert 1 <= artifacts()[kind].minutes <= 15


CAPTURES = [value for value in vars(capture).values() if isinstance(value, capture.Capture)]


def test_most_of_what_the_doctor_would_ask_for_can_be_asked_for_in_its_words() -> None:
    missed = [c.artifact for c in CAPTURES if not meant(c.artifact)]
    assert len(missed) <= 0.15 * len(CAPTURES), missed


@pytest.mark.parametrize("words", ["the weather", "", "hello", "banana soup"])
def test_nonsense_means_nothing(words: str) -> None:
    assert meant(words) == ()


@pytest.mark.parametrize("number", range(1, CLASSICS + 1))
def test_classic_worlds_answer_the_usual_requests(number: int) -> None:
    """Sensible first requests bring a paper, or are told what exists instead."""
    here = set(incident(number).kinds)
    for text in (
        "nvidia-smi",
        "dmesg",
        "what changed",
        "the topology",
        "top on the host",
        "what do colleagues say",
        "the settings",
    ):
        assert meant(text)[0] in here, text
    assert len(here) >= 8


def test_exhibits_cost_minutes_once_and_absent_ones_a_minute(tmp_path: Path) -> None:
    played, _ = begun(tmp_path)
    assert played.ask("times by rank").minutes == 6 == played.minutes
    assert played.ask("per-rank times again").minutes == 0
    absent = played.ask("nsight compute")
    assert absent.absent == ("ncu",) and absent.minutes == 1 and played.minutes == 7
    assert played.ask("nvidia-smi and dmesg").minutes == 4
    unknown = played.ask("the weather")
    assert not unknown.exhibits and not unknown.absent and played.minutes == 11
    told = handle(played, "can I see nsight compute")
    assert "There is no such thing here" in told.says and "times by rank" in told.says


def test_the_clock_stands_while_paused_and_after_a_crash(tmp_path: Path) -> None:
    played, clock = begun(tmp_path)
    clock.wait(30)
    played.think("a straggler")
    played.pause()
    clock.wait(5000)
    assert played.elapsed_s == 30
    played.resume()
    clock.wait(10)
    played.ask("per-rank times")
    again = load(tmp_path / "r.jsonl", clock)  # the terminal died here
    clock.wait(9000)
    assert again.elapsed_s == 40 and again.paused and again.minutes == 6
    assert [e.kind for e in again.events] == ["start", "think", "pause", "resume", "ask"]


def test_a_line_cut_off_by_a_crash_costs_only_itself(tmp_path: Path) -> None:
    played, clock = begun(tmp_path)
    played.think("a straggler")
    path = tmp_path / "r.jsonl"
    path.write_text(path.read_text() + '{"kind": "ask", "te')
    assert [e.kind for e in load(path, clock).events] == ["start", "think"]


def test_after_the_hard_stop_only_commitments_are_taken(tmp_path: Path) -> None:
    played, clock = begun(tmp_path)
    clock.wait(HARD_STOP_S + 1)
    with pytest.raises(BadRequest):
        played.think("late")
    with pytest.raises(BadRequest):
        played.ask("dmesg")
    assert played.commit("One node is slow and the others wait for it.") == "tell"
    with pytest.raises(BadRequest):
        played.ask("dmesg")


AMONG = ("straggler-rank", "thermal-throttle", "input-starved")


@given(st.text(max_size=60))
def test_whatever_is_typed_is_understood_or_answered_by_a_sentence(text: str) -> None:
    for read in (
        lambda: how_sure(text),
        lambda: lines_meant(text, AMONG),
        lambda: typed(text, Unit.SECOND),
        lambda: calculate(text),
    ):
        try:
            read()
        except StallwiseError as problem:
            assert problem.hint


def test_every_cause_has_a_name_a_remedy_a_refutation_and_a_trap() -> None:
    assert set(cause_profiles()) == {r.cause for r in all_rules()}
    for cause, known in cause_profiles().items():
        assert known.says and known.fix and known.refuted and known.trap and len(known.words) >= 3, cause
        assert cause not in known.near and known.near <= set(cause_profiles())
        assert known.trap != known.fix
    for field in ("says", "refuted"):
        texts = [getattr(k, field) for k in cause_profiles().values()]
        assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("work", "value"),
    [
        ("70B * 2 bytes", 140e9), ("140GB / 3.35TB/s", 140e9 / 3.35e12), ("48% / 22%", 0.48 / 0.22), ("2*(512-1)/512", 2 * 511 / 512),
        ("h100.bandwidth * 2", 2 * gpu("h100").bandwidth_byte_per_s), ("6 * 70e9 * 1e6 / (989TFLOPS * 40%)", 6 * 70e15 / (989e12 * 0.4)), ("32 * 8192^2 * 2", 32 * 8192**2 * 2),
        ("45ms + 5 ms", 0.05), ("1 GiB", 2.0**30), ("max(3, ceil(2.1))", 3.0),
    ],
)  # fmt: skip
def test_the_calculator_knows_units_and_the_catalogue(work: str, value: float) -> None:
    assert calculate(work) == pytest.approx(value)


@pytest.mark.parametrize(
    "work", ["__import__('os').system('x')", "9**9**9**9", "1/0", "(lambda: 1)()", "", "a.b.c", "[1]*9", "1e999"]
)
def test_the_calculator_runs_no_code_and_says_what_is_wrong(work: str) -> None:
    with pytest.raises(StallwiseError):
        calculate(work)


def test_the_same_seed_is_the_same_round_for_everybody(tmp_path: Path) -> None:
    one, _ = begun(tmp_path, 3021)
    two = start(3021, Clock(), tmp_path / "other.jsonl")
    assert one.candidates == two.candidates and one.menu == two.menu and opening(one) == opening(two)


TOLD = first("right")
EXAMINER = "import json, sys; d = json.load(sys.stdin); print(d['seed'], len(d['rubric']['fixes']), d['grades']['level'], d['schema'])"


def finished_round(folder: Path, account: str = "") -> Round:
    played, clock = begun(folder)
    played.ask("times by rank")
    clock.wait(30)
    for line in ("commit", account or TOLD[2], "80%", "2.18"):
        handle(played, line)
    assert played.over
    return played


def test_an_answer_is_final_and_what_cannot_be_understood_is_asked_back(tmp_path: Path) -> None:
    played, clock = begun(tmp_path)
    with pytest.raises(BadRequest):
        played.commit("   ")
    played.commit(TOLD[2])
    assert played.stage == "sure"  # everything was read: nothing is asked back
    for bad in ("very", "180%", "1"):
        with pytest.raises(BadRequest):
            played.commit(bad)
    played.commit("0,9")
    assert played.sure == 0.9
    for bad in ("a lot", "12 GB", "between 2 and 3"):
        with pytest.raises(BadRequest):
            played.commit(bad)
    assert load(tmp_path / "r.jsonl", clock).sure == 0.9 and played.stage == "challenge"


def test_what_was_not_read_is_asked_back_once_with_the_candidates(tmp_path: Path) -> None:
    played, _ = begun(tmp_path)
    handle(played, "commit")
    asked = handle(played, "The weather is nice today and I would look at it for a while.").says
    assert "could not read a cause" in asked and "At least three steps" in asked and played.stage == "again"
    place = played.candidates.index("straggler-rank") + 1
    assert f"{place}. one rank or machine is late" in asked
    handle(
        played, f"{place}. I would take times per rank, drain that node, then look at the loader, then at checkpoints."
    )
    assert played.stage == "sure" and played.weighed.cause.level == 1 and played.weighed.fixes.level == 2
    guessed, _ = begun(tmp_path / "other")
    handle(guessed, "commit")
    handle(guessed, "The weather is nice today and I would look at it for a while.")
    handle(guessed, f"{place % 8 + 1}. I would drain it and go on with a spare.")
    assert guessed.weighed.cause.level == 0


def test_nonsense_is_never_the_right_cause(tmp_path: Path) -> None:
    played, _ = begun(tmp_path, 3)
    handle(played, "commit")
    handle(played, "prefill kv queue chunk cap nccl roofline decode bandwidth hbm batch budget speculative")
    handle(played, "prefill, kv, queue, chunked prefill, cap, decode, hbm, bandwidth")
    assert played.weighed.cause.level == 0 and played.weighed.fixes.level == 0


def test_hints_cost_points_and_a_lost_player_is_told_how_to_begin_for_nothing(tmp_path: Path) -> None:
    played, _ = begun(tmp_path)
    for lost in ("I do not know where to start", "what do I do now?", ""):
        assert "type its number" in handle(played, lost).says and not played.hinted
    assert "noted at" in handle(played, "I think it might be the network").says and played.first_s is not None
    assert "a point for the hint" in handle(played, "hint").says
    assert "a point for the hint" in handle(played, "hint").says
    assert "no more hints" in handle(played, "hint").says and played.hinted == 2
    assert finished_round(tmp_path / "a").result().points - 2 == _with_hints(tmp_path / "b", 2)


def _with_hints(folder: Path, count: int) -> int:
    played, clock = begun(folder)
    for _ in range(count):
        handle(played, "hint")
    played.ask("times by rank")
    clock.wait(30)
    for line in ("commit", TOLD[2], "80%", "2.18"):
        handle(played, line)
    return played.result().points


def test_the_interviewer_challenges_a_committed_number(tmp_path: Path) -> None:
    played, _ = begun(tmp_path, 6)
    handle(played, "commit")
    handle(played, TOLD[6])
    asked = handle(played, "90%").says
    assert "You committed to numbers" in asked and played.challenge.number.ask in asked
    assert "10 us" in played.challenge.number.ask  # latency was spoken of
    assert "right:" in handle(played, "10 ms").says


def test_an_examiner_gets_the_transcript_and_changes_no_grade(tmp_path: Path) -> None:
    played = finished_round(tmp_path)
    before = played.result()
    script = tmp_path / "examiner.py"
    script.write_text(EXAMINER)
    assert comment(f"{sys.executable} {script}", played) == f"2 4 {before.word} stallwise.drill/1"
    assert played.result() == before
    assert "could not be heard" in comment("/no/such/program", played)
    script.write_text("import sys; sys.exit('no')")
    assert "status 1" in comment(f"{sys.executable} {script}", played)
    script.write_text("import time; time.sleep(60)")
    assert "could not be heard" in comment(f"{sys.executable} {script}", played, patience_s=0.5)
    assert json.dumps(transcript(played))


def test_rounds_add_up_to_dimensions_over_time_and_calibration() -> None:
    def played(seed: int, points: int, cause: int, sure: float) -> Played:
        marks = dict.fromkeys(DIMENSIONS, 2) | {"cause": cause}
        return Played(seed, "pass", points, 5, 60.0, marks, sure, cause > 0)

    found = leaderboard([played(1, 5, 0, 0.9), played(1, 8, 1, 0.95), played(2, 7, 0, 0.6)])
    assert [(r.seed, r.points) for r in found.best] == [(1, 8), (2, 7)]
    assert found.played == 3 and found.weakest == "cause" and found.mean_before is None
    assert found.chart["cause"] == "·▄·" and found.chart["time"] == "███"
    assert {how: (n, share) for how, n, share in found.calibration} == {
        "50% to 70%": (1, 0.0),
        "90% to 100%": (2, 0.5),
    }
    assert leaderboard([]).weakest == ""


def test_the_page_plays_a_round_to_its_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert [s["group"] for s in session_api.scenarios()].count("Incidents") == 9
    opened = session_api.start("6")
    assert "340 ms" in opened["says"] and "dmesg (2 min)" not in opened["says"]  # the menu is a form
    assert opened["form"]["stage"] == "artifacts" and not opened["over"]
    session = opened["session"]
    shown = session_api.reply(session, "ask nccl-tests across pods")
    assert "opened: 256_in_group_a.txt" in shown["says"] and "busbw" in shown["artifacts"][0]["text"]
    assert session_api.reply(session, "note 46 against 9 GB/s")["notes"] == ["46 against 9 GB/s"]
    with pytest.raises(BadRequest):
        session_api.examined(session)
    session_api._OPEN.clear()  # the server was restarted
    asked = session_api.reply(session, "commit")
    assert asked["form"]["stage"] == "tell" and asked["clock_s"] >= 0 and asked["target_s"] == 900
    while not asked["over"]:
        assert asked["form"]["stage"]
        asked = session_api.reply(session, "skip")
    assert (
        asked["sheet"]["level"] == "fail"
        and asked["sheet"]["points"] == 1
        and "collective-topology-cliff" in asked["says"]
        and asked["form"] is None
    )
    assert len(asked["sheet"]["rows"]) == 6 and session_api.rounds()["played"] == 1
    assert session_api.examined(session)["grades"]["level"] == "fail"
    for bad in ("../../etc/passwd", "1-2"):
        with pytest.raises(BadRequest):
            session_api.reply(bad, "help")
    with pytest.raises(BadRequest):
        session_api.start("0")


def test_the_exhibits_lie_as_files_that_diagnose_reads(tmp_path: Path) -> None:
    """What a player is handed, given to the command after the round, names the cause."""
    played, _ = begun(tmp_path)
    for kind in played.incident.kinds:
        place = played.hand_out(played.incident.of(kind))
    found = subprocess.run([sys.executable, "-m", "stallwise", "diagnose", "--json", *map(str, sorted(place.iterdir()))], capture_output=True, text=True, check=False)  # fmt: skip
    causes = [f["cause"] for f in json.loads(found.stdout)["findings"]]
    assert causes[0] in played.incident.accepted and "straggler-rank" in causes
