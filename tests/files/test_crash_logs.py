"""How a program ended: the last error first with its line, the user's own frame, the ranks, and what to look at next."""

from __future__ import annotations

from pathlib import Path

from tests.files.stated import stated_of

LIBRARY = '  File "/opt/conda/lib/python3.11/site-packages/datasets/arrow_dataset.py", line 3920, in select\n    return self._select(indices)\n'
OWN = 'Traceback (most recent call last):\n  File "/home/u/proj/train.py", line 101, in main\n    ds.select(range(n))\n'


def test_an_own_error_is_quoted_and_no_disease_is_offered(tmp_path: Path) -> None:
    said = stated_of(
        tmp_path, "error.txt", OWN + LIBRARY + "IndexError: Index 1999999 out of range for dataset of size 223562.\n"
    )
    assert said.state == "unclear" and "no matter of the GPU: IndexError: Index 1999999" in said.text
    assert "error.txt line 6" in said.text and "/home/u/proj/train.py:101 in main error.txt line 2" in said.text
    assert "sed -n '93,109p' /home/u/proj/train.py" in said.text and "oom-" not in said.text


def test_an_error_nobody_knows_offers_no_disease_by_its_frames(tmp_path: Path) -> None:
    said = stated_of(
        tmp_path,
        "error.txt",
        OWN + LIBRARY + "ValueError: Expected input batch_size (32) to match target batch_size (31).\n",
    )
    assert said.state == "unclear" and "batch_size (32)" in said.text and "could be" not in said.text


def test_what_was_stopped_from_outside_is_said_so(tmp_path: Path) -> None:
    said = stated_of(tmp_path, "server.log", OWN + LIBRARY + "KeyboardInterrupt: terminated\n")
    assert (
        said.state == "unclear"
        and "stopped from outside: KeyboardInterrupt: terminated" in said.text
        and "sacct" in said.text
    )


def test_a_refused_download_names_the_way_in(tmp_path: Path) -> None:
    chained = (
        OWN + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://hub/x\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        + OWN
        + "OSError: You are trying to access a gated repo.\n"
    )
    said = stated_of(tmp_path, "error.txt", chained)
    assert "OSError: You are trying to access a gated repo. (error.txt line 11)" in said.text
    assert "before it: requests.exceptions.HTTPError: 401" in said.text and "login" in said.text


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
    assert "KeyError: 'label'" in said.text and "ended by its own error: torch" not in said.text


def test_a_segfault_names_the_innermost_own_frame(tmp_path: Path) -> None:
    text = (
        "step 1 loss 2.3 time 0.51\nFatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007f2f8b7fe700 (most recent call first):\n"
        '  File "/opt/conda/lib/python3.11/site-packages/torch/_ops.py", line 9 in __call__\n'
        '  File "/home/u/proj/ops.py", line 12 in fused\n  File "/home/u/proj/train.py", line 99 in main\n'
    )
    said = stated_of(tmp_path, "train.log", text)
    assert said.state == "unclear" and "Segmentation fault (train.log line 2)" in said.text
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
    assert "ended by" not in said.text and "log ends in an error" not in said.text
