"""One damaged file, failing reader, measure or rule is a note: nobody else's answer is lost, and no all-clear rests on it."""

from __future__ import annotations

import contextlib
import gzip
import os
import sqlite3
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from stallwise.causes.health import all_proofs
from stallwise.doctor import examine, piped, verdict
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.measures import hang
from stallwise.errors import StallwiseError
from stallwise.evidence import artifact as artifacts
from stallwise.evidence import blocks as unpacking
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.limits import Limits, OutOfTime, at_most, at_most_of_work
from stallwise.readers import all_readers, train_log
from stallwise.readers.native import nsys_sqlite
from tests.trust.inputs import (
    GOOD_LOG,
    TRAIN_LOG,
    cut_gzip,
    endless_database,
    flipped_gzip,
    flipped_zip,
    here,
    kernels_database,
)

DAMAGED = {
    "cut.log.gz": cut_gzip(),
    "flipped.log.gz": flipped_gzip(),
    "flipped.zip": flipped_zip(),
    "lzma.zip": flipped_zip(zipfile.ZIP_LZMA),
    "inf_rank.json": b'{"distributedInfo": {"rank": Infinity}, "traceEvents": [{"ph": "X", "name": "k", "cat": "kernel", '
    b'"pid": 0, "tid": 7, "ts": 1, "dur": Infinity}]}',
    "metrics.txt": b"vllm:num_requests_running{} 1.2.3\n",
    "rec.jsonl": b'{"k":"start","rank":Infinity}\n{"k":"step","t":1e999,"n":1}\n',
    "case.toml": b"gpus=512\n[step_time]\n",
}


@pytest.fixture(autouse=True)
def as_users_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLWISE_CACHE", "off")
    monkeypatch.delenv("STALLWISE_DEBUG", raising=False)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_beside_a_good_one_costs_nobody_an_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / "good.log").write_text(GOOD_LOG)
    alone = diagnose(str(tmp_path / "good.log"))
    (tmp_path / name).write_bytes(DAMAGED[name])
    both = diagnose(str(tmp_path), workers=1)
    assert both.ranked[0] == alone.ranked[0]
    assert both.state is alone.state
    assert any(name in str(n.source) for n in both.notes) or name == "case.toml"


def test_damaged_files_end_neither_as_a_bug_nor_as_ctrl_c(tmp_path: Path) -> None:
    for name, content in DAMAGED.items():
        (tmp_path / name).write_bytes(content)
    ran = here("diagnose", str(tmp_path))
    assert ran.returncode in (0, 3), ran.stderr
    assert "internal error" not in ran.stderr and "Traceback" not in ran.stderr


def test_packages_that_lie_in_a_folder_are_nobodys_run(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(TRAIN_LOG)
    alone = diagnose(str(tmp_path))
    for place in ("venv/lib/python3.11/site-packages/x", "env/share", "node_modules/x", "old/dist-packages/x", ".git"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "sample.log").write_text(GOOD_LOG)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / "env" / "conda-meta").mkdir()
    assert diagnose(str(tmp_path)).evidence.inputs == alone.evidence.inputs
    named = diagnose(str(tmp_path / "env"))  # who names one means it
    assert named.ranked[0].startswith("oom")


def test_a_cut_archive_gives_what_came_before_the_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "cut.log.gz").write_bytes(cut_gzip())
    found = diagnose(str(tmp_path / "cut.log.gz"))
    assert "training log" in found.evidence.formats
    assert any("could be read" in n.text and n.lost for n in found.notes)


def test_a_reader_that_fails_leaves_the_others_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(artifact: Artifact):
        raise ZeroDivisionError("division by zero")
        yield

    (tmp_path / "run.log").write_text(TRAIN_LOG + GOOD_LOG)
    monkeypatch.setattr(train_log, "read", fails)
    found = diagnose(str(tmp_path / "run.log"))
    assert "out-of-memory error" in found.evidence.formats
    assert any("the reader of 'training log' failed (ZeroDivisionError" in n.text for n in found.notes)


def test_a_measure_that_fails_or_never_ends_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(evidence: object):
        while True:
            pass
        yield

    from stallwise.doctor import measures

    (tmp_path / "run.log").write_text(GOOD_LOG)
    monkeypatch.setattr(measures, "STEP_S", 0.2)
    monkeypatch.setattr(hang, "from_evidence", endless)
    found = diagnose(str(tmp_path / "run.log"))
    assert found.state is State.SICK
    assert any("the measure of hang took longer than its limit" in n.text for n in found.notes)


def test_a_rule_that_fails_is_a_note_and_forbids_an_all_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(evidence: object) -> None:
        raise KeyError("x")

    healthy = diagnose("examples/traces/healthy") if Path("examples/traces/healthy").exists() else None
    rules = tuple(
        replace(r, judge=fails, needs=(), reads=None) if r.cause == "nvlink-fault" else r for r in examine.all_rules()
    )
    monkeypatch.setattr(examine, "all_rules", lambda: rules)
    found = diagnose("examples/traces/healthy") if healthy else diagnose(facts=["mfu=0.22"])
    assert any("the rule nvlink-fault failed" in n.text for n in found.notes)
    assert found.state is not State.HEALTHY


def test_a_proof_that_fails_is_a_note_and_forbids_an_all_clear(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def overflows(evidence: object) -> None:
        raise OverflowError("cannot convert float infinity to integer")

    log = tmp_path / "train.log"
    log.write_text("".join(f"step: {i} loss: {9 - 0.1 * i:.2f} step time: 0.500 s mfu: 41.0%\n" for i in range(60)))
    assert diagnose(str(log)).state is State.HEALTHY
    monkeypatch.setattr(verdict, "all_proofs", lambda: (*all_proofs(), overflows))
    found = diagnose(str(log))
    assert any("the proof overflows failed" in n.text for n in found.notes) and found.state is State.UNCLEAR


def test_the_whole_examination_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(evidence: object) -> None:
        ends = time.process_time() + 0.2
        while time.process_time() < ends:
            pass

    rules = tuple(replace(r, judge=slow, needs=(), reads=None, per=None, in_trace=None) for r in examine.all_rules())
    monkeypatch.setattr(examine, "all_rules", lambda: rules)
    monkeypatch.setattr(examine, "EXAMINATION_S", 1.0)
    began = time.process_time()
    found = diagnose(facts=["mfu=0.22"])
    assert time.process_time() - began < 0.1 * len(rules)
    assert any("the examination took longer" in n.text for n in found.notes)


def test_debugging_shows_the_failure_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLWISE_DEBUG", "1")
    monkeypatch.setattr(train_log, "read", lambda artifact: iter([1 / 0]))
    (tmp_path / "run.log").write_text(TRAIN_LOG)
    with pytest.raises(ZeroDivisionError):
        diagnose(str(tmp_path / "run.log"))


def test_a_file_that_takes_too_long_is_stopped_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(artifact: Artifact):
        while True:
            try:
                sum(range(100))
            except Exception:
                continue
        yield

    (tmp_path / "bad.log").write_text(TRAIN_LOG)
    (tmp_path / "good.log").write_text(GOOD_LOG)
    monkeypatch.setattr(train_log, "read", endless)
    found = diagnose(str(tmp_path), limits=Limits(file_s=0.5))
    assert found.state is State.SICK
    assert any("took longer than its limit of" in n.text and "bad.log" in str(n.source) for n in found.notes)


def test_the_clock_leaves_other_alarms_alone_and_does_nothing_in_a_thread() -> None:
    import signal

    with pytest.raises(OutOfTime), at_most(0.05):
        while True:
            pass
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    done = []

    def in_a_thread() -> None:
        with at_most(0.01):
            done.append(1)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert done == [1]


def test_waiting_for_a_turn_is_no_work_and_changes_no_answer() -> None:
    import signal

    with at_most_of_work(0.05):
        time.sleep(0.2)
    with pytest.raises(OutOfTime), at_most_of_work(0.05):
        while True:
            pass
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_an_archive_that_unpacks_without_end_is_given_up(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.log.gz"
    bomb.write_bytes(gzip.compress(b"step 1 loss 2\n" * 40_000, 1))
    found = diagnose(str(bomb), limits=Limits(unpacked_bytes=200_000))
    assert any("unpacks to more than" in n.text for n in found.notes)
    database = tmp_path / "x.sqlite"
    kernels_database(database, "k")
    packed = tmp_path / "x.sqlite.gz"
    packed.write_bytes(gzip.compress(database.read_bytes() + bytes(400_000)))
    with pytest.raises(StallwiseError, match="unpacks to more than"):
        diagnose(str(packed), limits=Limits(unpacked_bytes=200_000))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", b"\n" * 400_000)
    with pytest.raises(StallwiseError, match="unpacks to more than"):
        diagnose(str(tmp_path / "bomb.zip"), limits=Limits(unpacked_bytes=200_000))


def test_members_of_a_zip_are_read_one_by_one_and_a_bad_one_spoils_no_other(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("a/good.log", GOOD_LOG)
        archive.writestr("b/bad.log", TRAIN_LOG, zipfile.ZIP_DEFLATED)
    content = bytearray((tmp_path / "run.zip").read_bytes())
    at = content.find(b"b/bad.log") + len(b"b/bad.log") + 5
    content[at : at + 20] = b"\xa5" * 20
    (tmp_path / "run.zip").write_bytes(content)
    found = diagnose(str(tmp_path / "run.zip"))
    assert found.ranked[0].startswith("oom")
    assert any("bad.log" in str(n.source) for n in found.notes)


def test_the_end_of_a_log_that_is_too_long_is_read_and_the_gap_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(artifacts, "TEXT_BYTES", 40_000)
    monkeypatch.setattr(Artifact.text, "__defaults__", (40_000,))
    for name, content in (("long.log", TRAIN_LOG * 6 + GOOD_LOG), ("long.log.gz", TRAIN_LOG * 6 + GOOD_LOG)):
        data = content.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        found = diagnose(str(tmp_path / name))
        assert found.ranked[0].startswith("oom"), name
        assert any("bytes in its middle were not read" in n.text for n in found.notes), name


def test_a_text_of_nothing_but_line_ends_does_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MOST_LINES", 1000)
    artifact = Artifact("x.log", content=b"\n" * 5000 + b"the end")
    assert len(artifact.lines()) == 1000
    assert artifact.lines()[-1] == "the end"
    assert "too many" in artifact.losses[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_and_a_silent_one_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(GOOD_LOG))
    writer.start()
    assert diagnose(str(pipe)).ranked[0].startswith("oom")
    writer.join()
    monkeypatch.setattr(piped, "SILENCE_S", 0.1)
    with pytest.raises(StallwiseError, match="nothing comes out"):
        diagnose(str(pipe))
    (tmp_path / "good.log").write_text(GOOD_LOG)
    assert diagnose(str(tmp_path)).ranked[0].startswith("oom")


def test_a_database_is_opened_by_its_own_name_only(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    kernels_database(tmp_path / "secret" / "private.sqlite", "secret_kernel")
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    for name in ("..%2Fsecret%2Fprivate.sqlite", "..%2Fmade?mode=rwc&a=", "a#b?c%d.sqlite"):
        kernels_database(chosen / "plain", "public_kernel")
        (chosen / "plain").rename(chosen / name)
        items = list(nsys_sqlite.read(Artifact(name, chosen / name)))
        assert "public_kernel" in repr(items) and "secret_kernel" not in repr(items)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chosen", "secret"]
    assert len(list(chosen.iterdir())) == 3


def test_a_view_is_never_run_and_a_long_query_is_stopped(tmp_path: Path) -> None:
    endless_database(tmp_path / "endless.sqlite")
    with pytest.raises(StallwiseError, match="is no table"):
        diagnose(str(tmp_path / "endless.sqlite"))
    kernels_database(tmp_path / "x.sqlite", "k")
    database = nsys_sqlite._opened(tmp_path / "x.sqlite")
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), pytest.raises(OutOfTime), at_most(0.2):
        database.execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")


def test_a_log_that_claims_any_number_of_ranks_costs_no_memory() -> None:
    from stallwise.doctor.measures.hang import _missing

    assert list(_missing([], [], set(), 10**12)) == []


def test_numbers_of_no_world_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f"gpus = {'9' * 400}\nmfu = inf\nstep_time = {{}}\nconfigs = [{{BLOCK_M = 1}}]\n")
    found = diagnose(str(tmp_path / "a.toml"))
    assert sum("no number of this world" in n.text or "empty table" in n.text for n in found.notes) == 3
    ran = here("diagnose", "--fact", f"mfu={'9' * 5000}")
    assert ran.returncode in (2, 3) and "a bug" not in ran.stderr


def test_every_reader_is_contained_whatever_it_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.log").write_text(TRAIN_LOG)
    for error in (
        EOFError(),
        RecursionError(),
        MemoryError(),
        OverflowError("x"),
        UnicodeDecodeError("u", b"", 0, 1, ""),
    ):
        for reader in all_readers():
            monkeypatch.setattr(reader, "recognises", lambda name, head: True, raising=False)
        monkeypatch.setattr(all_readers()[0], "read", lambda artifact, error=error: _raised(error))
        with contextlib.suppress(StallwiseError):
            diagnose(str(tmp_path / "run.log"))


def _raised(error: Exception):
    raise error
    yield
