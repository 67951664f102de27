"""Proof first, recognition second, question third; and who is well is not called sick."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import EVEN_ODDS, VERDICT_FROM, Finding
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.markdown import to_markdown
from stallwise.render.text import to_text

KEYS = {"cause", "rank", "confidence", "headline", "scope", "account", "gain", "because", "fixes"}
BASES = {"measured", "stated", "event", "recognised"}
RECOGNISED = (
    "Our training is slow: nvidia-smi shows the GPU idle most of the time while all CPU cores decode JPEG images in the dataloader "
    "workers, the GPU waits for the next batch"
)


@pytest.mark.parametrize(
    ("confidence", "recognised", "optional", "verdict"),
    [
        (EVEN_ODDS, False, False, True),
        (EVEN_ODDS - 0.01, False, False, False),
        (VERDICT_FROM, True, False, True),
        (VERDICT_FROM - 0.01, True, False, False),
        (0.99, False, True, False),
    ],
)
def test_what_makes_a_verdict(confidence: float, recognised: bool, optional: bool, verdict: bool) -> None:
    finding = Finding("x", confidence, (), cause="c", recognised=recognised, optional=optional)
    assert finding.is_verdict is verdict


def test_a_proof_speaks_before_any_words() -> None:
    """Numbers decide: words of another cause change neither the order nor the voice."""
    stated = ["batch_wait=200ms", "step_time=260ms"]
    alone, beside = diagnose(facts=stated), diagnose(facts=[*stated, "symptom=NCCL all-reduce hangs and times out"])
    for answer in (alone, beside):
        assert answer.state is State.SICK and answer.ranked[0] == "input-starved"
        assert answer.findings[0].basis == "stated" and not answer.in_set
        assert to_text(answer).startswith("FOUND  ")


def test_recognition_is_said_as_such_and_quotes_the_words(tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text(f"Hello,\n{RECOGNISED}\n", encoding="utf-8")
    answer = diagnose(str(tmp_path), cache=False)
    assert answer.ranked[0] == "input-starved" and answer.state is State.SICK
    assert "input-starved" in answer.in_set
    text = to_text(answer, width=130)
    assert text.startswith("MOST LIKELY  ") and "recognised" in text
    assert "mail.txt line 2" in " ".join(text.split())


def test_where_nobody_complains_recognition_makes_no_verdict(tmp_path: Path) -> None:
    log = "".join(f"step {i} dataloader wait noted, loss {2 - i / 100:.3f}\n" for i in range(30))
    (tmp_path / "run.log").write_text(log, encoding="utf-8")
    answer = diagnose(str(tmp_path), cache=False)
    assert answer.state is not State.SICK
    assert all(h.probability < VERDICT_FROM for h in answer.hypotheses if h.cause not in ("something-else", "none"))


@pytest.mark.parametrize(
    "text",
    [
        "All 18 NVLinks are active on every card, no Xid in dmesg, ECC errors: 0. Step time is 412 ms as it was last week.",
        "all_reduce_perf reaches 368 GB/s bus bandwidth at 1 GB on 8 H100, no errors, out of bounds values : 0 OK",
        "GPU temperature 61 C, clocks at their maximum of 1980 MHz, throttle reasons: none, power 480 W of 700 W",
        "p99 latency is flat at 310 ms over the whole day, queue length 0, no preemptions, KV cache usage 43%",
        "Loss falls smoothly from 8.1 to 2.3, gradient norm stays near 1, no NaN, no skipped steps",
    ],
)
def test_healthy_controls_are_not_called_sick(text: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text(text + "\n", encoding="utf-8")
    assert diagnose(str(tmp_path), cache=False).state is not State.SICK


VOICES = {
    State.SICK: ("FOUND", "MOST LIKELY"),
    State.UNCLEAR: ("CANNOT TELL YET",),
    State.HEALTHY: ("NOTHING OUT OF LINE",),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Diagnosis]:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "mail.txt").write_text(RECOGNISED, encoding="utf-8")
    return [
        diagnose(facts=["batch_wait=200ms", "step_time=260ms"]),
        diagnose(str(folder / "mail.txt"), cache=False),
        diagnose(facts=["symptom=training is slow"]),
        diagnose(facts=("symptom=64 H100, MFU 44%, is that good?",)),
    ]


def test_every_report_opens_with_the_voice(answers: list[Diagnosis]) -> None:
    seen = set()
    for answer in answers:
        line = to_text(answer)
        voice = next(v for v in VOICES[answer.state] if line.startswith(f"{v}  "))
        assert to_markdown(answer).startswith(f"# {voice} ")
        assert f'<h1><span class="voice">{voice}</span> ' in to_html(answer)
        seen.add(voice)
    assert seen == {"FOUND", "MOST LIKELY", "CANNOT TELL YET", "NOTHING OUT OF LINE"}


def test_json_has_basis_and_set(answers: list[Diagnosis]) -> None:
    for answer in answers:
        told = json.loads(json.dumps(to_dict(answer)))
        assert told["set"] == list(answer.in_set)
        assert {f["basis"] for f in told["findings"]} <= BASES
        assert all(set(f) >= KEYS for f in told["findings"])
        if told["state"] == "healthy":
            assert told["set"] == [] and told["ranked"][0] == "none"
        if told["state"] == "sick":
            assert to_markdown(answer).startswith("# FOUND") is (told["set"] == [])
