"""How a program ended: the last error first with its line, the user's own frame, the ranks, and what to look at next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.files.stated import stated_of

LIBRARY = '  File "/opt/conda/lib/python3.11/site-packages/datasets/arrow_dataset.py", line 3920, in select\n    return self._select(indices)\n'
OWN = 'Traceback (most recent call last):\n  File "/home/u/proj/train.py", line 101, in main\n    ds.select(range(n))\n'


def test_an_own_error_is_said_aloud_with_its_line_and_what_to_do(tmp_path: Path) -> None:
    said = stated_of(
        tmp_path, "error.txt", OWN + LIBRARY + "IndexError: Index 1999999 out of range for dataset of size 223562.\n"
    )
    assert (said.state, said.first) == ("sick", "application-fault")
    assert "ended in an error of its own: IndexError: Index 1999999" in said.text and "error.txt line 6" in said.text
    assert "/home/u/proj/train.py:101 in main" in said.text and "sed -n '93,109p' /home/u/proj/train.py" in said.text
    assert "oom-" not in said.text


def test_an_error_nobody_knows_is_quoted_and_offers_no_disease_by_its_frames(tmp_path: Path) -> None:
    said = stated_of(
        tmp_path,
        "error.txt",
        OWN + LIBRARY + "ValueError: Expected input batch_size (32) to match target batch_size (31).\n",
    )
    assert said.state == "unclear" and "ENDED IN AN ERROR ValueError: Expected input batch_size (32)" in said.text
    assert "could be" not in said.text


STEPS = "".join(
    f"step {i} | loss {8 - 0.01 * i:.4f} | {412 + i % 5} ms/step | 79421 tok/s\n" for i in range(100, 400, 10)
)


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2026-01-02T10:00:00 DUE TO TIME LIMIT ***",
        "=>> PBS: job killed: walltime 86425 exceeded limit 86400",
        "/var/spool/slurm/job77/script: line 9: 31337 Killed                  python train.py --bs 64",
        "KeyboardInterrupt: terminated",
    ],
)
def test_what_was_stopped_from_outside_is_said_so_and_never_in_line(tmp_path: Path, line: str) -> None:
    traceback = OWN + LIBRARY if line.startswith("Keyboard") else STEPS
    said = stated_of(tmp_path, "server.log", traceback + line + "\n")
    assert said.state == "unclear" and "sacct" in said.text
    assert f"ENDED IN AN ERROR {' '.join(line.split())}" in said.text and "stopped from outside" in said.text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --batch-sise 32\n", "--batch-sise"),
        ("/var/spool/slurmd/job1/slurm_script: line 20: torchrun: command not found\n", "line 20: torchrun"),
        ("loading\n./run.sh: line 7: 2214 Segmentation fault      (core dumped) ./infer --model m\n", "2214"),
        ("  File \"train.py\", line 12\n    x = [1, 2\n        ^\nSyntaxError: '[' was never closed\n", "train.py:12"),
        (
            '  File "t.py", line 3\n  File "t.py", line 3\nSyntaxErrorSyntaxError: : invalid syntaxinvalid syntax\n',
            "SyntaxError: invalid syntax ",
        ),
        (
            "[6437.300616] infer[3250]: segfault at 7f49 ip 00007f59 sp 00007f4b error 4 in libflow.so.1[7f59+8fd]\n",
            "libflow.so.1",
        ),
    ],
)
def test_a_program_that_never_ran_or_crashed_says_where(tmp_path: Path, text: str, quoted: str) -> None:
    said = stated_of(tmp_path, "job.err", text)
    assert (said.state, said.first) == ("sick", "application-fault") and quoted in said.text


def test_an_exit_code_names_the_file_that_holds_the_error(tmp_path: Path) -> None:
    text = (
        "Subject: Job 14562100: <train> in cluster <c> Exited\nExited with exit code 1.\n\nPS:\n\n"
        "Read file </home/me/out/train.err> for stderr output of this job.\n"
    )
    said = stated_of(tmp_path, "train.out", text)
    assert said.state == "unclear" and "ENDED IN AN ERROR Exited with exit code 1." in said.text
    assert "Job 14562100" in said.text and "less /home/me/out/train.err" in said.text


def test_a_refused_download_names_the_way_in(tmp_path: Path) -> None:
    chained = (
        OWN + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://hub/x\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        + OWN
        + "OSError: You are trying to access a gated repo.\n"
    )
    said = stated_of(tmp_path, "error.txt", chained)
    assert "OSError: You are trying to access a gated repo." in said.text and "error.txt line 11" in said.text
    assert "hf auth login" in said.text


def test_a_device_assert_names_the_kernel_and_the_users_line(tmp_path: Path) -> None:
    threads = "".join(
        f'../aten/src/ATen/native/cuda/IndexKernel.cu:93: operator(): block: [1,0,0], thread: [{i},0,0] Assertion `index < sizes[i] && "index out of bounds"` failed.\n'
        for i in range(64)
    )
    said = stated_of(
        tmp_path, "train.log", threads + OWN + LIBRARY + "RuntimeError: CUDA error: device-side assert triggered\n"
    )
    assert said.state == "sick" and said.first == "application-fault"
    assert "64 threads: IndexKernel.cu:93" in said.text and "index out of bounds" in said.text
    assert "/home/u/proj/train.py:101 in main" in said.text


def test_a_launchers_report_is_not_the_error(tmp_path: Path) -> None:
    text = (
        "[rank0]: " + "[rank0]: ".join(OWN.splitlines(keepends=True)) + "[rank0]: KeyError: 'label'\n"
        'Traceback (most recent call last):\n  File "/opt/conda/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    said = stated_of(tmp_path, "train.log", text)
    assert "error of its own: KeyError: 'label'" in said.text and said.first == "application-fault"


def test_a_segfault_names_the_innermost_own_frame(tmp_path: Path) -> None:
    text = (
        "step 1 loss 2.3 time 0.51\nFatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007f2f8b7fe700 (most recent call first):\n"
        '  File "/opt/conda/lib/python3.11/site-packages/torch/_ops.py", line 9 in __call__\n'
        '  File "/home/u/proj/ops.py", line 12 in fused\n  File "/home/u/proj/train.py", line 99 in main\n'
    )
    said = stated_of(tmp_path, "train.log", text)
    assert said.first == "application-fault" and "Segmentation fault" in said.text and "train.log line 2" in said.text
    assert "/home/u/proj/ops.py:12 in fused" in said.text and "gdb" in said.text


def test_a_traceback_without_its_end_says_so(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "train.log", OWN)
    assert said.state == "unclear" and "cut off before its error" in said.text and "could be" not in said.text


def test_an_error_that_was_survived_is_not_the_end(tmp_path: Path) -> None:
    text = (
        OWN
        + "requests.exceptions.ConnectionError: reset\n"
        + "".join(f"step {i} loss 2.9 time 0.5\n" for i in range(200))
    )
    said = stated_of(tmp_path, "train.log", text)
    assert "ENDED" not in said.text and "ended in" not in said.text
