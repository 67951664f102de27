"""Answers fit who asked: the job's own hardware and framework, a gain called a gain, a hint where a verb is missing."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import stallwise.causes
from stallwise.causes import all_rules
from stallwise.doctor.advice import overturning
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.idioms import frameworks, in_its_words
from stallwise.evidence.bag import stems_of
from stallwise.evidence.evidence import Evidence
from stallwise.render.text import to_text
from tests.trust.inputs import GOOD_LOG, here

LINE = " iteration {i}/ 500 | elapsed time per iteration (ms): {ms}.0 | global batch size: 256 | lm loss: 2.0E+00 |\n"
RULES = Path(str(stallwise.causes.__file__)).parent


def bundle(folder: Path, said: str, **end: object) -> Path:
    """What `stallwise run` leaves of a job without PyTorch."""
    last = said.rstrip().splitlines()[-1:]
    kept = {"stallwise_bundle": 2, "command": ["python", "job.py"], "started": 1.0, "ended": 9.0, "last_words": last}
    (folder / "bundle.json").write_text(json.dumps({**kept, **end}))
    (folder / "log.txt").write_text(said)
    return folder


def test_a_job_that_ran_out_of_memory_is_told_so_not_only_that_it_failed(tmp_path: Path) -> None:
    found = diagnose(str(bundle(tmp_path, f"step 1 loss: 1.9\n{GOOD_LOG}", exit_code=1)), cache=False)
    assert found.ranked[0].startswith("oom") and "job-failed" in found.ranked
    assert {f.cause: f.confidence for f in found.findings}["job-failed"] < found.findings[0].confidence


def test_a_job_that_failed_of_nothing_known_has_failed(tmp_path: Path) -> None:
    found = diagnose(str(bundle(tmp_path, "working\nValueError: no such column\n", exit_code=1)), cache=False)
    assert found.ranked[0] == "job-failed" and found.first is not None and "no such column" in found.first.headline


def test_a_job_without_a_gpu_is_not_told_of_one(tmp_path: Path) -> None:
    lines = [{"k": "run", "v": 2, "rank": 0, "world": 1, "pid": 1, "host": "h", "t": 100.0}]
    stages = {"batch_wait": 0.026, "forward": 0.0005, "backward": 0.0004, "optimizer": 0.0001}
    lines += [{"k": "step", "n": n, "t": 100 + n * 0.027, "d": 0.027, "s": stages, "b": "optimizer"} for n in range(40)]
    (tmp_path / "rank-00000.jsonl").write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    )
    found = diagnose(str(tmp_path), cache=False)
    assert found.ranked[0] == "input-starved" and found.first is not None
    first = found.first
    because = (r.text for r in (*first.because, *first.not_here))
    told = " ".join((first.headline, first.summary, first.avoid, *because, *(f.action for f in first.fixes)))
    assert not [word for word in ("GPU", "kernel", "pin_memory") if word in told], told


def test_a_job_of_jax_is_advised_in_the_words_of_jax() -> None:
    fix = Fix('torch.compile(model, mode="reduce-overhead") (CUDA graphs)', cost="compile time")
    advice = (Finding("slow", 0.9, (), fixes=(fix, Fix("num_workers 0 -> 8"))),)
    evidence = Evidence()
    evidence.formats = ["JAX trace", "stallwise record"]
    told = [f.action for f in in_its_words(advice, evidence)[0].fixes]
    assert "jax.jit" in told[0] and told[1] == "worker processes of the loader 0 -> 8"
    evidence.formats.append("PyTorch trace")
    assert in_its_words(advice, evidence) == advice


def test_every_wording_that_is_retold_is_one_of_ours() -> None:
    source = "".join(p.read_text(encoding="utf-8") for p in RULES.rglob("*.py"))
    joined = "".join(source.split()).replace('""', "").replace("\\", "")
    for framework in frameworks():
        assert [said for said in framework.words if "".join(said.split()) not in joined] == []
        assert [told for told in framework.words.values() if "torch" in told] == []


def test_nothing_would_change_an_answer_twice() -> None:
    for rule in all_rules():
        shown = [frozenset(s for s in stems_of(line.split(" (see")[0])) for line in overturning(rule, Evidence())]
        for one, other in combinations(shown, 2):
            assert len(one & other) < 0.5 * len(one | other), rule.cause
    straggler = next(r for r in all_rules() if r.cause == "straggler-rank")
    assert sum("alike" in line or "lags" in line for line in overturning(straggler, Evidence())) == 1


def test_a_gain_is_called_better(tmp_path: Path) -> None:
    for name, ms in (("slow", 200), ("fast", 120)):
        (tmp_path / f"{name}.log").write_text("".join(LINE.format(i=i, ms=ms) for i in range(1, 50)))
    slow, fast = str(tmp_path / "slow.log"), str(tmp_path / "fast.log")
    assert "40.0% better" in repr(stallwise.compare(slow, fast))
    assert "66.7% worse" in repr(stallwise.compare(fast, slow))


def test_a_question_without_a_verb_is_shown_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(GOOD_LOG)
    for given, wanted in (
        (("why is my run slow",), "stallwise diagnose 'why is my run slow'"),
        (("why", "is", "it", "slow"), "stallwise diagnose 'why is it slow'"),
        ((str(tmp_path / "run.log"),), f"stallwise diagnose {tmp_path / 'run.log'}"),
    ):
        ran = here(*given)
        told = "".join(ran.stderr.split())  # long paths are wrapped
        assert ran.returncode == 2 and wanted.replace(" ", "") in told, ran.stderr
    assert "To ask" not in here("nonsense").stderr


def test_an_answer_of_a_dead_job_names_what_killed_it_in_its_first_lines(tmp_path: Path) -> None:
    found = diagnose(str(bundle(tmp_path, GOOD_LOG, exit_code=1)), cache=False)
    assert "job-failed" not in "\n".join(to_text(found).splitlines()[:6])
