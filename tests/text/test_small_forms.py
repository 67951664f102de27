"""The same few facts in the small forms that people use: the numbers are kept, each with its moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.gather import gather
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.reading import Reading
from stallwise.readers.shapes import shapes_in
from stallwise.readers.shapes.unwrap import plain
from stallwise.readers.text.understand import understand

MFU = {("run.mfu", "before"): 0.48, ("run.mfu", ""): 0.22}
LOSS = {("run.eval_loss", "before"): 2.28, ("run.eval_loss", ""): 2.31}
FORMS = [
    ("a.ini", "[job]\nmodel = llama\n\n[first_3_hours]\nmfu = 0.48\n\n[now]\nmfu = 0.22\n", MFU),
    ("a.txt", "MFU at first: 48 %\nMFU now: 22 %\n", MFU),
    ("a.txt", "MFU 48%\nthen\nMFU 48%\nthen\nMFU 22%\n", MFU),
    ("a.csv", "metric,original,FP8\nretrieval accuracy,71%,54%\neval loss,2.28,2.31\n", LOSS),
    ("a.md", "- eval loss: 2.28 before, 2.31 now\n- tasks alike\n", LOSS),
    ("a.md", "| | |\n|---|---|\n| pipeline stages | 8 |\n| micro-batches | 32 |\n| bubble, measured | 41 % |\n",
     {("pp", ""): 8, ("microbatches", ""): 32, ("bubble", ""): 0.41}),
    ("a.tsv", "PP\tMicro-batches\tBubble expected\tBubble measured\n8\t32\t22%\t41%\n",
     {("pp", ""): 8, ("bubble_expected", ""): 0.22, ("bubble", ""): 0.41}),
    ("a.json", '{"gpus": {"type": "H100", "count": 8}, "tflops": {"custom": 180.0, "cublas": 650.0}}',
     {("gpus", ""): 8, ("library_flop_rate", ""): 650e12}),
    ("a.txt", "  data_parallel_size ............ 128\n  tensor_model_parallel_size .... 4\n", {("dp", ""): 128, ("layout.tp", ""): 4}),
    ("a.txt", "Now: tensor parallel 4, data parallel 128\nWorked with: tensor parallel 8, data parallel 64\n",
     {("layout.tp", ""): 4, ("dp", ""): 128, ("layout.tp", "before"): 8, ("dp", "before"): 64}),
    ("a.txt", "Short-context accuracy dropped by 0.5% only, long-context accuracy is 54%.\n", {("accuracy", ""): 0.54}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "facts"), FORMS, ids=[t[:24] for _, t, _ in FORMS])
def test_numbers_are_kept(name: str, text: str, facts: dict[tuple[str, str], float]) -> None:
    told = understand(shapes_in(name, text), text, name, written=True).facts
    kept = {(f.quantity.name, f.scope.run or ""): f.value for f in told}
    assert {key: kept.get(key) for key in facts} == pytest.approx(facts)


@pytest.mark.parametrize("told", ["FSDP, ZeRO stage 3", "the phase was measured", "target of this week: 41"])
def test_nothing_is_named_that_was_not_said(told: str) -> None:
    facts = understand(shapes_in("a.txt", told), told, "a.txt", written=True).facts
    assert not {"pp", "run.flop_rate", "expected_speedup"} & {f.quantity.name for f in facts}


def test_lists_of_one_length_are_a_table(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(
        '{"operation": "gradient all-reduce", "world_size": [64, 128, 256, 512], "time_ms": [45, 52, 61, 340]}'
    )
    evidence = gather([str(tmp_path / "s.json")], cache=False, workers=1)
    curves = [t.columns for t in evidence.table("scaling.series")]
    assert any(list(c["seconds"]) == pytest.approx([0.045, 0.052, 0.061, 0.34]) for c in curves)


def test_a_short_log_is_read_beside_what_its_format_tells(tmp_path: Path) -> None:
    line = "INFO 05-12 {h}:30:00 load={q} req/s ttft={t}s user_throughput={r} tokens/s\n"
    text = "INFO 05-12 09:00:00 vllm starting model=Llama-70B quantization=fp8\n"
    text += line.format(h="09", q=4, t=0.12, r=180) + line.format(h=14, q=16, t=4.2, r=22)
    (tmp_path / "engine.log").write_text(text)
    evidence = gather([str(tmp_path / "engine.log")], cache=False, workers=1)
    for name, then, now in (("serve.ttft", 0.12, 4.2), ("serve.per_request_rate", 180, 22)):
        assert {(f.scope.run or "", f.number) for f in evidence.facts[name]} == {("before", then), ("", now)}


def test_a_number_that_fell_is_no_all_clear(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(
        "$ ./mfu --at 2h\nMFU 48%\n$ ./mfu --at 3h\nMFU 48%\n$ ./mfu --now\nMFU 22%\n512 H100\n"
    )
    assert diagnose(str(tmp_path / "t.txt"), workers=1, cache=False).state is not State.HEALTHY


def test_the_first_batch_of_a_log_is_no_hunger(tmp_path: Path) -> None:
    rows = [(0, 1.84, 1.31), (10, 0.56, 0.0004), (20, 0.559, 0.0004), (30, 0.559, 0.0004), (1250, 0.558, 0.0003)]
    line = "[2024-07-02 09:1{m}:40] INFO Train: [41/300][{s}/1251]\teta 0:12:17\ttime {t:.4f} ({t:.4f})\tdata time {d:.4f}\tloss 2\n"
    text = "".join(line.format(m=m, s=s, t=t, d=d) for m, (s, t, d) in enumerate(rows))
    (tmp_path / "train.log").write_text(text)
    answer = diagnose(str(tmp_path / "train.log"), workers=1, cache=False)
    assert answer.state is not State.SICK and answer.ranked[0] != "input-starved"


def test_sizes_that_double_are_no_steps(tmp_path: Path) -> None:
    rows = "".join(
        f"{b},{t},{m}\n"
        for b, t, m in ((128, 97, 1.9), (256, 98, 2.6), (512, 99, 4.1), (1024, 109, 7.2), (2048, 158, 13.3))
    )
    (tmp_path / "sweep.csv").write_text("batch,ms/step,gpu mem GiB\n" + rows)
    assert "memory-leak" not in diagnose(str(tmp_path / "sweep.csv"), workers=1, cache=False).ranked


def test_a_place_before_a_number_may_be_its_key_and_a_clock_is_none() -> None:
    told = list(shapes_in("a.txt", "rank 0: 1.2 s\nINFO 05-12 09:30:00 mfu=0.41\n"))
    assert {r.path[-1] for r in told if isinstance(r, Reading) and not r.in_prose} == {"rank 0", "mfu"}


def test_the_memory_of_a_host_is_no_card_s(tmp_path: Path) -> None:
    (tmp_path / "top.txt").write_text(
        "top - 10:18:00 up 17 days,  1 user,  load average: 9.90, 9.09, 9.16\n"
        "%Cpu(s): 24.9 us,  2.0 sy,  0.0 ni, 71.1 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st\n"
        "MiB Mem : 2063866.0 total, 1214263.0 free\n"
    )
    told = gather([str(tmp_path / "top.txt")], cache=False, workers=1).facts
    assert not {"memory.free", "gpu.memory_total", "run.gpu_memory"} & set(told)


def test_what_holds_a_course_of_numbers_is_no_log() -> None:
    course = '{"line": "round #", "s": [0.1, 0.1, 0.2, 0.1]}'
    bundle = f'{{"started": 1794855593.6, "words": ["round 0", "round 1", "round 2"], "steps": {course}}}'
    assert plain(Artifact("b.json", content=bundle.encode())).text() == bundle
