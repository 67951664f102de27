"""Defects of the first release, each as its user met it: through the command line, the library's verbs or the page alone.

Nothing of the package's inside is touched, so that the same file runs against any release, and each test fails on the first:

    PYTHONPATH=OLD/src python -m pytest -o pythonpath=OLD/src tests/trust/test_known_defects.py

STALLWISE_FULL=1 adds those that need a large file.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stallwise
import stallwise.surfaces.cli as command_line

RUN = getattr(command_line, "console", None) or command_line.run  # the entry point, whatever it is called
PATIENCE_S = 25  # of the processor's time for a small file, however busy the machine is
OOM = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of "
    "79.10 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is "
    "reserved by PyTorch but unallocated.\n"
)
STEPS = "".join(f"step {i} loss: {2 - i / 1000:.3f} lr 0.1 time/step 120 ms\n" for i in range(400))
FULL = pytest.mark.skipif(not os.environ.get("STALLWISE_FULL"), reason="a large file: set STALLWISE_FULL=1")


@pytest.fixture(autouse=True)
def as_users_run_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / ".home"))
    monkeypatch.setenv("STALLWISE_CACHE", "off")
    for name in ("STALLWISE_DEBUG", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


class TooLong(BaseException):
    """Nobody waits any longer."""


@contextlib.contextmanager
def patience(seconds: float = PATIENCE_S) -> Iterator[None]:
    def over(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def told(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code and both streams of a command, in this process; whoever takes too long is interrupted."""
    before = sys.argv, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["stallwise", *map(str, arguments)], out, err
    try:
        with patience():
            RUN()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()  # type: ignore[attr-defined]


def started(*arguments: str | Path, timeout_s: float = 60.0, **more: object) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "stallwise", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, **more)  # type: ignore[call-overload,no-any-return]


def first_cause(answer: str) -> str:
    """The cause that stands first in an answer as JSON."""
    found: list[str] = json.loads(answer)["ranked"]
    return found[0] if found else ""


def answered(code: int, err: str) -> bool:
    """An answer or a refusal in a sentence; neither a bug nor Ctrl-C."""
    return code in (0, 1, 2, 3) and "a bug" not in err and "Traceback" not in err and "stopped" not in err.split("\n")


# --- the list of the round -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "gpus=512\n[step_time]\n",
        'model = "x"\n[[configs]]\nBLOCK_M = 64\nms = 2.0\n[[configs]]\nBLOCK_M = 128\nms = 3.0\n',
    ],
    ids=["an empty table", "a list of configurations"],
)
def test_a_case_of_tables_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "case.toml").write_text(text)
    code, _, err = told("diagnose", tmp_path / "case.toml")
    assert answered(code, err), err


def test_a_fault_without_a_colon_is_told(tmp_path: Path) -> None:
    from stallwise.causes.hardware.nvlink_fault import nvlink_fault
    from stallwise.evidence.catalog.hardware import XID_NVLINK
    from stallwise.evidence.evidence import Evidence
    from stallwise.evidence.fact import Fact, Source

    evidence = Evidence()
    evidence.add([Fact(XID_NVLINK, "NVLink broke", Source("dmesg.txt"))])
    judge = getattr(nvlink_fault, "verdicts", None) or nvlink_fault.judge
    assert judge(evidence)


def completed(*words: str) -> list[str]:
    env = {
        "_STALLWISE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("stallwise", *words)),
        "COMP_CWORD": str(len(words)),
    }
    from click.testing import CliRunner

    return CliRunner(env=env).invoke(command_line.main, [], prog_name="stallwise").output.split()


def test_the_shell_completes_files() -> None:
    assert any(found.startswith("file,") for found in completed("diagnose", "exa"))


@pytest.mark.parametrize(
    ("words", "wanted"),
    [(("explain", "nvlink-f"), "plain,nvlink-fault"), (("plan", "cost", "--gpu", "h100-s"), "plain,h100-sxm")],
)
def test_the_shell_completes_values(words: tuple[str, ...], wanted: str) -> None:
    assert wanted in completed(*words)


def test_calibrate_shows_no_option_that_it_lacks() -> None:
    _, out, _ = told("plan", "calibrate", "--help")
    shown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", out.split("Options")[0] + out.rpartition("--help")[2]))
    listed = set(re.findall(r"^\s+(?:-\w, )?(--[a-z][\w-]*)", out, re.M))
    assert "--dp" not in shown - listed


def test_an_interval_beyond_the_optimum_says_why() -> None:
    _, out, _ = told("plan", "cost", "--gpus", "16384", "--model", "llama-3.1-405b", "--async")
    said = " ".join(out.split())
    assert "every" in said and not re.search(r"every [\d.]+ min \(Young", said)


def test_a_clock_is_not_promised_itself() -> None:
    from stallwise.causes.hardware import thermal_throttle
    from stallwise.evidence.catalog.hardware import GPU_CLOCK
    from stallwise.evidence.fact import Fact, Source

    regained = getattr(thermal_throttle, "_regained", None)
    assert regained is not None and "instead of" not in regained(Fact(GPU_CLOCK, 1.2e9, Source("q.txt")), 0.0)


def test_colour_can_be_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.log").write_text(OOM)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in told("diagnose", tmp_path / "run.log")[1]


@pytest.mark.parametrize("command", [("causes",), ("formats",), ("explain", "nvlink-fault")], ids=" ".join)
def test_every_command_fits_its_terminal(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, told(*command)[1].splitlines())) <= 60


def test_formats_show_how_to_capture() -> None:
    assert told("formats")[1].count("$ ") > 20


def changelog() -> str:
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi".split()
    changes = [
        "fixed a segmentation fault in the resolver", "a potential illegal memory access when a header is cut is mended",
        "tests no longer need /dev/shm, which was too small in containers", "could run out of memory on small machines",
    ]  # fmt: skip
    return "".join(
        f"** Version 3.{n} ({words[n % 14]} {words[n * 5 % 13]})\n   - {words[n * 3 % 11]}: {changes[n % 4]} ({words[n % 5]})\n"
        for n in range(200)
    )


OTHERS = {
    "a header": "#ifndef X_H\n#define X_H\n/* rank of the matrix; steps of the loop */\nint step(int rank);\n#endif\n",
    "a changelog": changelog(),
    "a script": "#!/bin/sh\nset -e\nfor step in 1 2 3; do echo loss $step; done\n",
}


@pytest.mark.parametrize("trade", OTHERS)
def test_files_of_other_trades_are_neither_healthy_nor_sick(tmp_path: Path, trade: str) -> None:
    (tmp_path / "file.txt").write_text(OTHERS[trade])
    code, out, err = told("diagnose", tmp_path / "file.txt")
    assert answered(code, err) and "NOTHING OUT OF LINE" not in out and (code == 3 or "CANNOT TELL YET" in out)


# --- A: the recorder and the fate of jobs; those of PyTorch are in tests/recorder/faithful ----------------------------------


def recorded(tmp_path: Path, verb: str, *job: str) -> subprocess.CompletedProcess[str]:
    return started(verb, "-o", tmp_path / "run", "--", *job)


def test_a_reader_that_fails_leaves_the_job_its_exit_code(tmp_path: Path) -> None:
    job = "print('vllm:num_requests_running{model_name=\"m\"} 1.2.3'); print('trained fine')"
    assert recorded(tmp_path, "run", sys.executable, "-c", job).returncode == 0


def test_a_killed_job_is_a_killed_job(tmp_path: Path) -> None:
    ran = recorded(tmp_path, "run", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert ran.returncode in (-9, 137) and "a bug" not in ran.stderr


SIGNALLED = """
import signal, sys, time
heard = []
for name in ("SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGINT"):
    signal.signal(getattr(signal, name), lambda n, f: heard.append(n))
print("ready", flush=True)
ends = time.monotonic() + 20
while len(heard) < 4 and time.monotonic() < ends:
    time.sleep(0.02)
sys.exit(5 if len(set(heard)) == 4 else 6)
"""


def _as_in_a_terminal() -> None:
    """A shell starts what runs in the background with these ignored, which is handed on to the job."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def test_every_signal_reaches_the_job_and_its_answer_comes_back(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "stallwise",
        "record",
        "-o",
        str(tmp_path / "run"),
        "--",
        sys.executable,
        "-c",
        SIGNALLED,
    ]
    wrapper = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        preexec_fn=_as_in_a_terminal,
    )  # fmt: skip
    try:
        assert wrapper.stdout is not None
        while "ready" not in wrapper.stdout.readline():
            assert wrapper.poll() is None
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGINT):
            with contextlib.suppress(ProcessLookupError):
                wrapper.send_signal(number)
            time.sleep(0.1)
        assert wrapper.wait(30) == 5
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(wrapper.pid, signal.SIGKILL)


def test_commands_that_cannot_start_end_as_a_shell_ends_them(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("no program")
    assert recorded(tmp_path, "record", str(tmp_path / "plain.txt")).returncode == 126
    (tmp_path / "file").write_text("")
    ran = started("record", "-o", tmp_path / "file" / "below", "--", "no-such-command-at-all")
    assert ran.returncode == 127 and "recorded into" not in ran.stderr + ran.stdout


HELPED = """
import subprocess, sys
helper = "import sys, time\\nfor i in range(200): print(i, flush=True); open(sys.argv[1], 'w').write(str(i)); time.sleep(0.1)"
child = subprocess.Popen([sys.executable, "-S", "-c", helper, sys.argv[1] + "/beats"], start_new_session=True)
open(sys.argv[1] + "/pid", "w").write(str(child.pid))
print("job done", flush=True)
"""


def test_a_helper_that_outlives_the_job_holds_nobody_up_and_lives_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "stallwise",
        "record",
        "-o",
        str(tmp_path / "run"),
        "--",
        sys.executable,
        "-c",
        HELPED,
    ]
    wrapper = subprocess.Popen([*command, str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not (tmp_path / "beats").exists():
            time.sleep(0.05)
        began = time.monotonic()
        assert wrapper.wait(60) == 0 and time.monotonic() - began < 8
        seen = (tmp_path / "beats").read_text()
        time.sleep(1)
        assert (tmp_path / "beats").read_text() != seen
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_two_processes_without_a_rank_stay_apart(tmp_path: Path) -> None:
    job = (
        "import stallwise, sys, time\nstallwise.start(sys.argv[1])\n"
        "for _ in range(30):\n    time.sleep(float(sys.argv[2]))\n    stallwise.step()\nstallwise.stop()\n"
    )
    env = {k: v for k, v in os.environ.items() if "RANK" not in k}
    both = [subprocess.Popen([sys.executable, "-c", job, str(tmp_path / "run"), s], env=env) for s in ("0.002", "0.02")]
    assert [p.wait(60) for p in both] == [0, 0]
    steps = [f.read_text().count('"k":"step"') for f in (tmp_path / "run").glob("*.jsonl")]
    assert sorted(n for n in steps if n) == [30, 30]


@pytest.mark.parametrize("end", ["raise ValueError('x')", "import os; os.abort()"], ids=["raises", "aborts"])
def test_a_job_that_died_is_not_healthy(tmp_path: Path, end: str) -> None:
    ran = recorded(tmp_path, "run", sys.executable, "-c", f"print('step 1 loss: 1.9', flush=True)\n{end}")
    assert ran.returncode != 0 and "NOTHING OUT OF LINE" not in ran.stdout


@FULL
def test_the_end_of_a_talkative_job_is_kept(tmp_path: Path) -> None:
    job = tmp_path / "job.py"  # the command is kept as well: its text must not hold the message
    job.write_text(
        f"import sys\nfor i in range(70): sys.stdout.write('a' * (1 << 20) + '\\n')\nsys.stderr.write({OOM!r}); sys.exit(1)"
    )
    recorded(tmp_path, "run", sys.executable, str(job))
    _, out, err = told("diagnose", tmp_path / "run", "--json")
    assert out and any(cause.startswith("oom") for cause in json.loads(out)["ranked"]), err


# --- C and D: wrong answers, damaged and hostile files -----------------------------------------------------------------------


def test_numbers_that_are_none_are_not_healthy(tmp_path: Path) -> None:
    (tmp_path / "metrics.txt").write_text(
        "vllm:num_requests_running NaN\nvllm:gpu_cache_usage_perc NaN\nvllm:num_requests_waiting NaN\n"
    )
    code, out, err = told("diagnose", tmp_path / "metrics.txt")
    assert answered(code, err) and "NOTHING OUT OF LINE" not in out


def test_an_empty_folder_of_the_page_is_not_healthy(tmp_path: Path) -> None:
    from tests.web.pages import ask, local_page

    (tmp_path / "empty").mkdir()
    with local_page(tmp_path) as page:
        answer = ask(page, "/api/diagnose", {"paths": ["empty"]})
    assert answer.status != 200 or "NOTHING OUT OF LINE" not in answer.body.decode()


@FULL
def test_the_end_of_a_very_long_log_is_read(tmp_path: Path) -> None:
    with (tmp_path / "long.log").open("w") as file:
        for _ in range(540):
            file.write(("x" * 99 + "\n") * 10_000)
        file.write(OOM)
    assert first_cause(started("diagnose", tmp_path / "long.log", "--json", timeout_s=500).stdout).startswith("oom")


SECRETS = (
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456",
    "AKIAIOSFODNN7EXAMPLE",
    "fd00::17:2",
    "SecretAttentionLayer(",
    "acme-secret-70b",
)


def test_a_shared_report_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(
        f'[rank0]: Traceback (most recent call last):\n[rank0]:   File "/home/alice/secret_trainer.py", line 12, in forward\n'
        f'[rank0]:     x = SecretAttentionLayer(token="{SECRETS[0]}", key={SECRETS[1]})\n'
        f"{OOM.strip()} key {SECRETS[1]}\ngpu-prod-a17:7300:7390 [0] NCCL WARN Call to connect to {SECRETS[2]}<1234> failed : "
        f"Connection refused\n[rank0]: RuntimeError: shape mismatch in SecretAttentionLayer({SECRETS[0]}) of acme-secret-70b\n"
    )  # fmt: skip
    told("diagnose", tmp_path / "run.log", "--share", "-o", tmp_path / "out.html")
    text = told("diagnose", tmp_path / "run.log", "--share", "--json")[1] + (tmp_path / "out.html").read_text()
    assert [s for s in SECRETS if s in text] == []


def database(path: Path, kernel: str) -> None:
    made = sqlite3.connect(path)
    made.executescript(
        "CREATE TABLE StringIds(id INTEGER, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, demangledName INTEGER, gridX, gridY, gridZ,"
        "blockX, blockY, blockZ, registersPerThread, staticSharedMemory, dynamicSharedMemory, deviceId, streamId, correlationId);"
    )
    made.execute("INSERT INTO StringIds VALUES(1, ?)", (kernel,))
    rows = [(i * 1000, i * 1000 + 800, 1, 1, 1, 1, 128, 1, 1, 32, 0, 0, 0, 7, i) for i in range(100)]
    made.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES({','.join('?' * 15)})", rows)
    made.commit()
    made.close()


@pytest.mark.parametrize(
    "name", ["..%2Fsecret%2Fprivate.sqlite", "..%2Fmade.sqlite?mode=rwc&a=.sqlite", "a#b?c%d.sqlite"]
)
def test_the_name_of_a_database_is_no_address(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "chosen").mkdir()
    database(tmp_path / "secret" / "private.sqlite", "secret_kernel")
    database(tmp_path / "plain", "public_kernel")
    (tmp_path / "plain").rename(tmp_path / "chosen" / name)
    code, out, err = told("diagnose", tmp_path / "chosen" / name, "--json")
    assert answered(code, err), err
    assert "public_kernel" in out and "secret_kernel" not in out
    assert {p.name for p in tmp_path.iterdir()} <= {"chosen", "secret", ".home"} and len(
        list((tmp_path / "chosen").iterdir())
    ) == 1


def test_a_view_without_end_is_not_run(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "endless.sqlite")
    made.executescript(
        "CREATE TABLE StringIds(id INTEGER, value TEXT);"
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT "
        "x AS start, x + 1 AS end, 1 AS demangledName, 1 AS gridX, 1 AS gridY, 1 AS gridZ, 1 AS blockX, 1 AS blockY, "
        "1 AS blockZ, 1 AS registersPerThread, 0 AS staticSharedMemory, 0 AS dynamicSharedMemory FROM n;"
    )
    made.close()
    assert answered(
        *(lambda r: (r.returncode, r.stderr))(started("diagnose", tmp_path / "endless.sqlite", timeout_s=40))
    )


HOSTILE = {
    "varint.ncu-rep": lambda: b"NVR\0" + b"\xff" * 3_000_000,
    "digits.log": lambda: b"".join(b"step %d loss 2.0 %s\n" % (i, b"9" * 1000) for i in range(20)),
    "nccl.log": lambda: (
        b"node-01:7300:7300 [0] NCCL INFO Bootstrap : Using enp5s0:10.0.0.7<0>\nnode-01:7300:7300 [0] NCCL INFO comm 0x1 rank 0 "
        b"nranks 8 - Init COMPLETE\n" + b"9" * 500_000
    ),
    "oom.log": lambda: OOM.encode() + b"9" * 500_000,
    "vllm.log": lambda: (
        b"INFO 07-01 12:00:00 metrics.py:351] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 12.3 tokens/s, "
        b"Running: 1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.5%, CPU KV cache usage: 0.0%.\n" + b"9" * 500_000
    ),
    "colliding.pickle": lambda: (  # a snapshot by its first key, then keys that all have one hash
        b"\x80\x02}(X\x08\x00\x00\x00segments]"
        + b"".join(b"\x8a\x0b" + (i * (2**61 - 1)).to_bytes(11, "little") + b"K\x00" for i in range(200_000)) + b"u."
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_small_file_holds_the_tool_up(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(HOSTILE[name]())
    code, _, err = told("diagnose", tmp_path / name)
    assert answered(code, err), err


def many_kernels() -> bytes:
    """As many kernels as a long profile has, each of another name."""
    head = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    row = (
        '"{n}","1","python","h","kernel_{n}","1","7","(128,1,1)","(64,1,1)","0","9.0","GPU Speed Of Light Throughput",'
    )
    rows = "".join(row.format(n=n) + f'"Duration","us","{n % 50}.5"\n' for n in range(2200))
    return (head + '"Section Name","Metric Name","Metric Unit","Metric Value"\n' + rows).encode()


def endless_head() -> bytes:
    """A trace whose properties never end: 400 kB that unpack to 400 MB."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6) as stream:
        stream.write(b'{"schemaVersion": 1, "deviceProperties": [], "traceName": "')
        for _ in range(400):
            stream.write(b"a" * (1 << 20))
    return packed.getvalue()


@FULL
@pytest.mark.parametrize(("name", "made"), [("kernels.csv", many_kernels), ("head.json.gz", endless_head)])
def test_no_larger_file_does_either(tmp_path: Path, name: str, made: Callable[[], bytes]) -> None:
    (tmp_path / name).write_bytes(made())
    code, _, err = told("diagnose", tmp_path / name)
    assert answered(code, err), err


def test_a_long_word_is_shared_at_once(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(OOM + "ERROR " + "a" * 100_000 + "\n" + "RuntimeError: " + "9." * 50_000 + "\n")
    code, _, err = told("diagnose", tmp_path / "run.log", "--share")
    assert answered(code, err)


@FULL
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_silent_pipe_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    ran = started("diagnose", tmp_path / "pipe.log", timeout_s=60)
    assert answered(ran.returncode, ran.stderr)


def test_a_pipe_of_the_shell_is_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(write, OOM.encode()), os.close(write)))
    writer.start()
    code, out, err = told("diagnose", f"/dev/fd/{read}", "--json")
    writer.join()
    os.close(read)
    assert code == 0 and first_cause(out).startswith("oom"), err


def within_memory(limit_bytes: int):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))


def test_a_claim_of_a_great_world_costs_no_memory(tmp_path: Path) -> None:
    line = "[rank{r}]:[E1115 10:00:0{r}.000000 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation timeout: "
    line += "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before "
    line += "timing out.\n"
    world = "node0:73:73 [0] NCCL INFO comm 0x5 rank {r} nranks 5000000000 cudaDev {r} busId 1b000 - Init COMPLETE\n"
    (tmp_path / "run.log").write_text("".join((world + line).format(r=r) for r in range(4)))
    ran = started("diagnose", tmp_path / "run.log", "--json", preexec_fn=within_memory(3 << 30))
    assert answered(ran.returncode, ran.stderr) and "more memory than" not in ran.stdout


@FULL
def test_an_archive_of_line_ends_stays_small(tmp_path: Path) -> None:
    (tmp_path / "ends.log.gz").write_bytes(gzip.compress(STEPS.encode() + b"\n" * 300_000_000))
    ran = started("diagnose", tmp_path / "ends.log.gz", preexec_fn=within_memory(2 << 30), timeout_s=300)
    assert answered(ran.returncode, ran.stderr) and "memory" not in ran.stderr and "lines in its middle" in ran.stdout


def broken_archives() -> dict[str, bytes]:
    whole = gzip.compress((STEPS * 20).encode())
    flipped = bytearray(gzip.compress((STEPS * 60).encode()))  # longer than what is looked at first
    flipped[-6] ^= 0xFF
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", STEPS)
    packed = bytearray(stream.getvalue())
    packed[60:90] = bytes(b ^ 0x5A for b in packed[60:90])
    return {"cut.log.gz": whole[: len(whole) // 2], "flipped.log.gz": bytes(flipped), "flipped.zip": bytes(packed)}


@pytest.mark.parametrize("name", broken_archives())
def test_a_damaged_archive_stops_nobody(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(broken_archives()[name])
    code, _, err = told("diagnose", tmp_path / name)
    assert answered(code, err), (code, err)
    (tmp_path / "good.log").write_text(OOM)
    code, out, err = told("diagnose", tmp_path, "--json")
    assert code == 0 and first_cause(out).startswith("oom"), err


ODD = {
    "metrics.txt": b"vllm:num_requests_running{} 1.2.3\n",
    "rank.json": b'{"distributedInfo": {"rank": Infinity}, "traceEvents": [{"ph": "X", "name": "k", "cat": "kernel", "pid": 0, '
    b'"tid": 7, "ts": 1, "dur": Infinity}]}',
    "run1\u00b23.log": OOM.encode(),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_numbers_depths_and_names_are_no_bug(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(ODD[name])
    code, _, err = told("diagnose", tmp_path / name)
    assert answered(code, err), err


def test_a_name_that_is_no_text_is_answered(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff\xfe.log")
    Path(odd).write_text(OOM)
    code, out, err = told("diagnose", odd, "--json")
    assert code == 0 and first_cause(out).startswith("oom"), err


def shown(*arguments: str | Path) -> bytes:
    """What a terminal is sent: a pipe is spared some of it."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "stallwise", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while block := os.read(ours, 65536):
            said += block
    process.wait(60)
    os.close(ours)
    return said


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_nothing_in_a_file_or_its_name_commands_the_terminal(tmp_path: Path) -> None:
    place = '  File "/x/\x1b[31mmodel\x1b]0;pwned\x07\x1b[2J.py", line 3, in forward\n'
    (tmp_path / "a.log").write_text(place + OOM)
    (tmp_path / "named\x1b[2J.log").write_text(place + OOM)
    for asked in (tmp_path, tmp_path / "named\x1b[2J.log", tmp_path / "no\x1b[2J.log"):
        said = shown("diagnose", asked)
        assert b"\x1b[2J" not in said and b"\x1b]" not in said, said


def test_a_poisoned_entry_of_the_cache_runs_nothing(tmp_path: Path) -> None:
    cache, ran = tmp_path / "cache", tmp_path / "ran"
    cache.mkdir(mode=0o700)
    big = tmp_path / "big.log"
    big.write_text(STEPS * 14)
    env = {**os.environ, "STALLWISE_CACHE": str(cache)}
    started("diagnose", big, env=env)
    entries = [p for p in cache.rglob("*") if p.is_file()]
    assert entries

    def word(text: str) -> bytes:
        return b"\x8c" + bytes([len(text)]) + text.encode()

    for entry in entries:
        entry.write_bytes(
            b"\x80\x04"
            + word("stallwise.physics.specs.hardware")
            + word("os.system")
            + b"\x93("
            + word(f"touch {ran}")
            + b"tR."
        )
    assert started("diagnose", big, env=env).returncode == 0
    assert not ran.exists()


# --- the page, addresses, answers --------------------------------------------------------------------------------------------


def test_a_loop_of_links_leaves_the_page_its_list(tmp_path: Path) -> None:
    from tests.web.pages import ask, local_page

    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "good.log").write_text(OOM)
    with local_page(tmp_path) as page:
        answers = [ask(page, path).status for path in ("/api/files", "/api/catalog")]
        assert 500 not in answers


def test_what_is_refused_is_not_taken_for_the_next_request(tmp_path: Path) -> None:
    from tests.web.pages import local_page

    with local_page(tmp_path) as page:
        inner = f"GET /api/catalog HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nX-Stallwise-Token: {page.token}\r\n\r\n"
        head = (
            f"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nX-Stallwise-Token: {page.token}\r\n"
            f"X-Bundle: never-made\r\nContent-Length: {len(inner)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", page.port)) as client:
            client.settimeout(3)
            client.sendall((head + inner).encode())
            answers = b""
            with contextlib.suppress(TimeoutError):
                while block := client.recv(65536):
                    answers += block
    assert answers.count(b"HTTP/1.1 ") == 1 and b"not known" in answers


def test_a_page_that_is_terminated_leaves_no_uploads(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stallwise", "ui", str(tmp_path), "--no-browser"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    page = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    assert page.stdout is not None and "127.0.0.1" in page.stdout.readline()
    page.send_signal(signal.SIGTERM)
    assert page.wait(20) == 128 + signal.SIGTERM
    assert not [p for p in tmp_path.iterdir() if p.is_dir() and p.name != ".home"]


ANSWERS = {
    "/status": b"HELLO WORLD\r\n\r\n",
    "/long": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nvllm:num_requests_running 1\n",
    "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nabc\r\n",
}


@pytest.mark.parametrize("path", ANSWERS)
def test_a_server_of_no_protocol_is_a_sentence(path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            server.settimeout(10)
            with contextlib.suppress(OSError):
                for _ in range(3):
                    client, _ = server.accept()
                    client.recv(4096)
                    client.sendall(ANSWERS[path])
                    client.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        code, out, err = told("diagnose", f"http://127.0.0.1:{server.getsockname()[1]}{path}")
    assert code in (2, 3) and "NOTHING OUT OF LINE" not in out, (code, err)


def test_answers_in_json_hold_no_number_that_is_none() -> None:
    def refuse(word: str) -> float:
        raise AssertionError(word)

    code, out, _ = told("plan", "formula", "ring-allreduce", "size_bytes=1e308", "ranks=512", "--json")
    assert code in (2, 3) or json.loads(out, parse_constant=refuse)


# --- the library and what is installed ----------------------------------------------------------------------------------------


def test_comparing_two_texts_does_not_walk_the_disk(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(STEPS)
    with patience():
        found = stallwise.compare(str(tmp_path / "a.log"), str(tmp_path / "b.log"))
    assert len(found.good.evidence.inputs) == 1


def test_a_bundle_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert recorded(tmp_path, "record", "true").returncode == 0
    finally:
        os.umask(before)
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0


def test_a_recorder_takes_any_value_and_name(tmp_path: Path) -> None:
    job = (
        "import stallwise, sys\nstallwise.start(sys.argv[1])\nstallwise.gauge('x', 10**400)\n"
        "with stallwise.span(['a']):\n    pass\nstallwise.step()\nstallwise.stop()\n"
    )
    ran = subprocess.run([sys.executable, "-c", job, str(tmp_path / "run")], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
