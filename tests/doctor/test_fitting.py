"""Advice passes one filter: what the evidence says is not there is neither fixed nor captured; the job reads its own command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stallwise.causes import all_rules
from stallwise.doctor.examine import diagnose, examine
from stallwise.doctor.findings.diagnosis import Diagnosis, NextStep, State
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.fitting import fits, fitting, things, warnings
from stallwise.doctor.presence import Presence, presence_in
from stallwise.evidence import capture
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import distributed, fabric, job, run, serving, stages, stated
from stallwise.evidence.catalog.hardware import GPU_NAME
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.user_lines import CodeLine, user_lines
from stallwise.render.redact import shareable
from stallwise.render.text import to_text

CAPTURES = [c for c in vars(capture).values() if isinstance(c, Capture)]
ABSENT = ("gpu", "ranks", "nodes", "exchange", "serving", "training", "torch", "jax")
X = Source("x.log")


def evidence_of(
    *facts: tuple[Quantity, float | str], formats: tuple[str, ...] = (), ledger: Ledger | None = None
) -> Evidence:
    evidence = Evidence(inputs=["x.log"], formats=list(formats))
    evidence.add([Fact(q, v, X) for q, v in facts])
    evidence.add([ledger] if ledger is not None else [])
    return evidence


def answer(evidence: Evidence, finding: Finding, *asks: Capture, ledger: Ledger | None = None) -> Diagnosis:
    return fitting(
        Diagnosis(
            "x", State.SICK, (finding.cause,), (finding,), ledger, evidence, next=tuple(NextStep(c) for c in asks)
        )
    )


def finding_of(*actions: str, **more: object) -> Finding:
    return Finding("It waits.", 0.9, (), cause="input-starved", fixes=tuple(Fix(a) for a in actions), **more)  # type: ignore[arg-type]


def without(absent: str) -> Presence:
    denied: dict[str, Any] = {absent: False}
    return Presence(**denied)


STEP = Ledger({Category.COMPUTE: 0.076, Category.INPUT_WAIT: 0.024}, X)
ONE_PROCESS = ((distributed.WORLD_SIZE, 1.0),)
ON_CPU = ((stages.ON_DEVICE, 0.0), *ONE_PROCESS)


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        (evidence_of(), Presence()),
        (evidence_of(*ON_CPU), Presence(gpu=False, ranks=False, nodes=False, exchange=False, rank_count=1)),
        (evidence_of((GPU_NAME, "H200"), (stages.ON_DEVICE, 0.0)), Presence(gpu=True)),
        (evidence_of((stated.GPUS, 512.0)), Presence(gpu=True, ranks=True, nodes=True, exchange=True, rank_count=512)),
        (evidence_of((stated.GPUS, 8.0)), Presence(gpu=True, ranks=True, exchange=True, rank_count=8)),
        (evidence_of((stated.GPUS, 8.0), (fabric.NODES, 1.0)),
         Presence(gpu=True, ranks=True, nodes=False, exchange=True, rank_count=8)),
        (evidence_of((serving.TTFT, 4.2)), Presence(serving=True, training=False, exchange=False)),
        (evidence_of((serving.TTFT, 4.2), (fabric.TP_SIZE, 8.0)), Presence(serving=True, training=False, exchange=True)),
        (evidence_of(formats=("JAX trace",)), Presence(exchange=False, training=True, serving=False, jax=True, torch=False)),
        (evidence_of(ledger=STEP), Presence(training=True, serving=False, ranks=False, nodes=False, exchange=False, rank_count=1)),
        (evidence_of(formats=("NCCL log",), ledger=STEP), Presence(gpu=True, training=True, serving=False)),
    ],
)  # fmt: skip
def test_only_what_the_evidence_says_is_known(evidence: Evidence, told: Presence) -> None:
    assert replace(presence_in(evidence), formats=frozenset()) == told


def test_a_run_that_was_better_with_fewer_cards_has_the_many_of_now() -> None:
    evidence = evidence_of((stated.GPUS, 8.0))
    evidence.add([Fact(stated.GPUS, 64.0, X, Scope(run="before"))])
    assert presence_in(evidence).rank_count == 8


def test_every_need_is_a_field_and_every_thing_is_spoken_of_somewhere() -> None:
    """A typo in the table would let everything through."""
    assert {need for thing in things() for need in thing.needs} <= set(ABSENT)
    assert all(not isinstance(Presence().has(need), int) for thing in things() for need in thing.needs)
    commands = "\n".join(f"{c.artifact}: {c.command}" for c in CAPTURES)
    for thing in things():
        if thing.given_by:
            assert thing.pattern.search(commands) or any(
                thing.pattern.search(f"{c.artifact}: {c.command}") for c in CAPTURES
            )
    assert {category for _, category in warnings()} <= set(Category)


@pytest.mark.parametrize(
    ("absent", "gone", "kept"),
    [
        ("gpu", (capture.NVIDIA_SMI, capture.NVIDIA_SMI_Q, capture.TOPOLOGY, capture.NCU, capture.DMESG, capture.MEMORY_SNAPSHOT),
         (capture.PY_SPY, capture.TRAIN_LOG)),
        ("exchange", (capture.NCCL_TESTS, capture.NCCL_LOG, capture.FLIGHT_RECORDER), (capture.NVIDIA_SMI, capture.TORCH_TRACE)),
        ("ranks", (capture.RANK_TRACES, capture.RANK_LOGS), (capture.NVIDIA_SMI, capture.TORCH_TRACE)),
        ("serving", (capture.SERVE_METRICS, capture.SERVE_LOG, capture.SERVE_BENCH), (capture.TORCH_TRACE,)),
        ("training", (capture.TORCH_TRACE, capture.TRAIN_LOG, capture.CLEAN_STEP), (capture.SERVE_METRICS, capture.NVIDIA_SMI)),
        ("torch", (capture.TORCH_TRACE, capture.COMPILE_LOG, capture.MEMORY_SUMMARY), (capture.NVIDIA_SMI, capture.PY_SPY)),
    ],
)  # fmt: skip
def test_captures_need_what_their_tools_need(absent: str, gone: tuple[Capture, ...], kept: tuple[Capture, ...]) -> None:
    present = without(absent)
    assert not [c.artifact for c in gone if fits(f"{c.artifact}: {c.command}", present)]
    assert not [c.artifact for c in kept if not fits(f"{c.artifact}: {c.command}", present)]
    assert all(fits(f"{c.artifact}: {c.command}", Presence()) for c in CAPTURES), "what is not known keeps nothing back"


def test_fixes_and_next_steps_pass_the_same_filter() -> None:
    finding = finding_of(
        "num_workers up to 7",
        "Raise the power cap: nvidia-smi -pl 700",
        "Check NCCL_SOCKET_IFNAME",
        next=(capture.NCCL_TESTS, capture.PY_SPY),
    )
    found = answer(
        evidence_of(*ON_CPU), finding, capture.NVIDIA_SMI, capture.NCCL_TESTS, capture.RANK_TRACES, capture.PY_SPY
    )
    assert [f.action for f in found.findings[0].fixes] == ["num_workers up to 7"]
    assert found.findings[0].next == (capture.PY_SPY,)
    assert [s.capture for s in found.next] == [capture.PY_SPY]


def test_a_proved_cause_keeps_its_cures_and_a_suspect_without_one_has_none() -> None:
    finding = finding_of("Check NCCL_SOCKET_IFNAME")
    assert answer(evidence_of(*ON_CPU), finding).findings[0].fixes == finding.fixes
    assert answer(evidence_of(*ON_CPU), replace(finding, confidence=0.3)).findings[0].fixes == ()


def test_where_nothing_fits_something_that_does_is_asked_for() -> None:
    found = answer(evidence_of(*ON_CPU), finding_of(), capture.NCCL_TESTS, capture.TOPOLOGY)
    assert found.next and all(fits(s.capture.command, presence_in(found.evidence)) for s in found.next)
    served = answer(evidence_of((serving.TTFT, 4.2)), finding_of(), capture.TORCH_TRACE, capture.NCCL_TESTS)
    assert [s.capture for s in served.next] == [capture.SERVE_METRICS]


def test_what_was_given_is_not_asked_for_again() -> None:
    given = evidence_of(formats=("nvidia-smi CSV", "PyTorch trace", "nccl-tests"))
    found = answer(given, finding_of(), capture.NVIDIA_SMI, capture.TORCH_TRACE, capture.NCCL_TESTS, capture.PY_SPY)
    assert [s.capture for s in found.next] == [capture.PY_SPY]
    timed = answer(evidence_of((run.STEP_TIME, 0.5)), finding_of(), capture.TRAIN_LOG, capture.TORCH_TRACE)
    assert [s.capture for s in timed.next] == [capture.TORCH_TRACE]


def test_the_jobs_own_command_stands_for_train_py() -> None:
    started = evidence_of(
        (job.COMMAND, "python3 main.py --epochs 1"), (job.SCRIPT, "main.py"), (distributed.WORLD_SIZE, 4.0)
    )
    found = answer(
        started,
        finding_of("Profile it: stallwise record -- python train.py"),
        capture.TORCH_TRACE,
        capture.DATA_PROBE,
        capture.RANK_TRACES,
    )
    assert found.findings[0].fixes[0].action == "Profile it: stallwise record -- python3 main.py --epochs 1"
    commands = [s.capture.command for s in found.next]
    assert commands[:2] == ["stallwise record -- python3 main.py --epochs 1", "stallwise measure loader main.py"]
    assert "--nproc-per-node 4 " in commands[2]
    long = evidence_of((job.COMMAND, "python3 main.py " + "--flag 1 " * 40), (job.SCRIPT, "main.py"))
    assert (
        answer(long, finding_of(), capture.TORCH_TRACE).next[0].capture.command == "stallwise record -- python main.py"
    )
    assert "acme" not in to_text(
        shareable(
            answer(
                evidence_of((job.COMMAND, "python acme_secret.py"), (job.SCRIPT, "acme_secret.py")),
                finding_of(),
                capture.TORCH_TRACE,
            )
        )
    )


@pytest.mark.parametrize(("compute", "wait", "kept"), [(0.076, 0.024, False), (0.02, 0.08, True), (0.05, 0.05, True)])
def test_do_not_start_with_the_model_only_where_the_model_is_the_smaller_part(
    compute: float, wait: float, kept: bool
) -> None:
    ledger = Ledger({Category.COMPUTE: compute, Category.INPUT_WAIT: wait}, X)
    finding = finding_of(
        category=Category.INPUT_WAIT, avoid="Do not start with the model or the GPU: it only lengthens the wait."
    )
    assert bool(answer(evidence_of(), finding, ledger=ledger).findings[0].avoid) is kept


def test_a_sentence_with_a_number_that_is_none_is_left_out() -> None:
    because = (
        Reason("the trend gives nan ms at 512"),
        Reason("it is nanx the best"),
        Reason("the loss is nan at step 900"),
        Reason("busy nan% of it"),
    )
    finding = replace(finding_of("Cap at nan tokens", "Cap at 64 tokens"), because=because)
    found = answer(evidence_of(), finding).findings[0]
    assert [r.text for r in found.because] == ["the loss is nan at step 900"]
    assert [f.action for f in found.fixes] == ["Cap at 64 tokens"]


def bundle(folder: Path, **about: object) -> Path:
    folder.mkdir()
    told = {"stallwise_bundle": 2, "command": ["python3", "tools/fit.py", "--lr", "1e-3"], "cpus": 16, **about}
    (folder / "bundle.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def record(folder: Path, loader_s: float, work_s: float) -> None:
    """A recorder's file of one rank on a machine without a GPU."""
    rows: list[dict[str, object]] = [
        {"k": "run", "v": 2, "rank": 0, "world": 1, "pid": 7, "host": "h", "t": 0.0, "env": {}}
    ]
    for n in range(60):
        parts = {"batch_wait": loader_s, "forward": work_s}
        rows.append(
            {
                "k": "step",
                "n": n,
                "t": 1000.0 + (n + 1) * (loader_s + work_s),
                "d": loader_s + work_s,
                "s": parts,
                "b": "optimizer",
            }
        )
    lines = "\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (folder / "rank-00000.jsonl").write_text(lines + "\n", encoding="utf-8")


def test_the_bundle_tells_cores_command_and_script(tmp_path: Path) -> None:
    found = diagnose(str(bundle(tmp_path / "run")), cache=False).evidence
    assert found.value(run.CPU_CORES) == 16
    assert found.text(job.COMMAND) == "python3 tools/fit.py --lr 1e-3" and found.text(job.SCRIPT) == "tools/fit.py"
    odd = diagnose(str(bundle(tmp_path / "odd", command="x", cpus=True)), cache=False).evidence
    assert not odd.all(run.CPU_CORES) and not odd.all(job.COMMAND)


def test_never_more_workers_than_cores_and_no_tools_of_gpus_for_a_job_on_the_cpu(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "run")
    record(folder, loader_s=1.7, work_s=0.01)
    found = diagnose(str(folder), cache=False)
    assert found.ranked[0] == "input-starved"
    text = to_text(found)
    assert found.findings[0].fixes[0].action.startswith("num_workers up to 15: all that 16 cores carry")
    for word in ("nvidia-smi", "all_reduce_perf", "NCCL", "torchrun", "train.py", "Xid"):
        assert word not in text, word


@pytest.mark.parametrize("absent", ABSENT)
def test_no_rule_advises_what_is_not_there(absent: str) -> None:
    """Of all rules: their advice and captures, after the filter, speak of nothing that needs what is absent."""
    present = without(absent)
    forbidden = [thing.pattern for thing in things() if absent in thing.needs]
    told = 0
    for rule in all_rules():
        advised = rule.advise(Evidence()) if rule.advise else None
        fixes = advised.fixes if advised else ()
        kept = [f.action for f in fixes if fits(f.action, present)]
        told += len(fixes)
        assert not [a for a in kept for p in forbidden if p.search(a)]
    assert told > 20


def test_an_examination_passes_the_filter() -> None:
    evidence = evidence_of(*ON_CPU, (run.STEP_TIME, 0.9), (stated.SYMPTOM, "the step got twice as slow since Monday"))
    said = to_text(examine(evidence))
    assert "nvidia-smi" not in said and "all_reduce_perf" not in said


@pytest.mark.parametrize(
    "words", ["num_workers greater than 0", "num_workers > 0", "num_workers>0", "num_workers more than 0"]
)
def test_a_bound_is_no_value(words: str) -> None:
    found = diagnose(f"with {words} the loader is slow and the GPU waits for data", cache=False)
    assert not found.evidence.all(run.LOADER_WORKERS)
    assert "from 0" not in to_text(found)
    assert (
        diagnose("num_workers=0 and the GPU waits for data all the time", cache=False).evidence.value(
            run.LOADER_WORKERS
        )
        == 0
    )


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        (
            "lib/accelerate/accelerator.py:1 f\nlib/transformers/trainer.py:2 g",
            "dataloader_num_workers 4, dataloader_pin_memory=True",
        ),
        ("torchrun pretrain_gpt.py --bf16", "--num-workers 4, pin_memory=True"),
        ("python train.py", "num_workers 4, pin_memory=True"),
    ],
)
def test_advice_names_arguments_as_the_jobs_framework_does(places: str, wanted: str) -> None:
    evidence = evidence_of((job.COMMAND, places))
    found = answer(evidence, finding_of("num_workers 4, pin_memory=True")).findings[0]
    assert [f.action for f in found.fixes] == [wanted]


def test_where_stacks_are_there_nobody_is_sent_to_sample_them() -> None:
    evidence = evidence_of()
    assert answer(evidence, finding_of("x"), capture.PY_SPY).next
    table = user_lines([("", ("train.py:8 step",), 20)], X)
    assert table is not None
    evidence.add([table])
    again = answer(evidence, finding_of("x"), capture.PY_SPY).next
    assert again and capture.PY_SPY not in {step.capture for step in again}
    assert not answer(evidence, finding_of("x", code_line=CodeLine("train.py", 8, "step", 1.0)), capture.PY_SPY).next
