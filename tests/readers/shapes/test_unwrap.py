"""The same lines come out, whatever carried them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from stallwise.evidence.artifact import Artifact
from stallwise.readers.shapes.unwrap import plain


def unwrapped(text: str) -> str:
    return "\n".join(plain(Artifact("x.log", content=text.encode())).lines())


LOG = [
    "loading 3 shards",
    "step 1 loss 4.20 12.0 ms",
    "step 2 loss 4.10 12.1 ms",
    "step 3 loss 4.00 12.0 ms",
    "  detail, indented",
    "done",
]
STACK = [
    "Thread 3310 (active): MainThread",
    "    all_reduce (torch/distributed/distributed_c10d.py:39)",
    "    main (train.py:4)",
    "    run (a.py:7)",
    "Thread 3311 (idle): Loader",
    "    wait (threading.py:324)",
]

AT = "2026-03-02T10:00:00.{}00000Z"

CARRIERS: dict[str, Callable[[int, str], str]] = {
    "job": lambda i, x: f"[job-7f] {x}",
    "compose": lambda i, x: f"trainer-1  | {x}",
    "pod": lambda i, x: f"[pod/train-worker-0/pytorch] {x}",
    "a service": lambda i, x: f"Mar  4 10:11:12 gpu-node-3 train[4242]: {x}",
    "host": lambda i, x: f"dgx-h100-04.local: {x}",
    "docker": lambda i, x: json.dumps({"log": x + "\n", "stream": "stderr"}),
    "labels": lambda i, x: json.dumps({"labels": {"app": "a"}, "line": x, "timestamp": AT.format(i)}),
    "colour": lambda i, x: f"\x1b[1;36m{x[:4]}\x1b[0m{x[4:]}",
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("lines", [LOG, STACK], ids=["log", "stack"])
def test_a_carrier_changes_nothing(carrier: str, lines: list[str]) -> None:
    wrapped = "\n".join(CARRIERS[carrier](i, x) for i, x in enumerate(lines))
    assert unwrapped(wrapped).splitlines() == lines
    artifact = Artifact("x.log", content=wrapped.encode())
    assert plain(artifact).lines() == lines


DOCUMENTS: dict[str, Callable[[list[str]], str]] = {
    "a list": lambda x: json.dumps([{"stream": "stdout", "message": t} for t in x]),
    "a quotation": lambda x: "On Tuesday Kim wrote:\n\n" + "\n".join(f"> {t}" for t in x),
    "a mail": lambda x: "From: kim@x.org\nTo: lee@x.org\nSubject: slow\n\n" + "\n".join(x),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_lines_inside_a_document_come_out(kind: str) -> None:
    lines = plain(Artifact("x", content=DOCUMENTS[kind](LOG).encode())).lines()
    assert lines[-len(LOG) :] == LOG


@pytest.mark.parametrize(
    "text",
    [
        '{"stdout": "a b\\nc d\\ne f", "loss": 2.5}',
        '[{"prompt": "tell me more", "at": 1772445600.5, "ttft": 0.5}, {"prompt": "tell me less", "at": 1772445601.5, "ttft": 0.6}]',
        "timestamp,name,power\n2026-03-02 10:00:00,NVIDIA H100,650.5 W\n2026-03-02 10:00:01,NVIDIA H200,651.5 W\n",
    ],
    ids=["results beside a log", "requests", "cards"],
)
def test_measured_numbers_beside_words_make_it_no_log(text: str) -> None:
    assert plain(Artifact("x", content=text.encode())).text() == text


def test_carriers_nest() -> None:
    wrapped = "\n".join(f"trainer-1  | [job-7f] {x}" for x in LOG)
    assert unwrapped(wrapped).splitlines() == LOG


@pytest.mark.parametrize(
    "text",
    [
        "[rank 0] a\n[rank 1] b\n[rank 2] c\n",
        "0: step 1 loss 4.2\n1: step 1 loss 4.2\n0: step 2 loss 4.1\n1: step 2 loss 4.1\n",
        "3: step 1 loss 4.2\n3: step 2 loss 4.1\n3: step 3 loss 4.0\n",
        "Mar  4 10:11:12 box kernel: NVRM: Xid 79\nMar  4 10:11:12 box kernel: NVRM: lost\n",
        "Mar  4 10:11:12 box a[1]: ready\nMar  4 10:11:12 box b[2]: ready\nMar  4 10:11:12 box a[1]: done\n",
        "2026-03-02T10:00:00.123456789Z step 1\n2026-03-02T10:00:09.123456789Z step 2\n",
        "[before] 3 ms\n[after] 4 ms\n",
        "[INFO] a\n[INFO] b\n[INFO] c\n",
        "loss: 1.2\nloss: 1.1\nloss: 1.0\n",
        "[run]\nsteps = 3\n",
        "(1/10) a\n(2/10) b\n(3/10) c\n",
        '{"loss": 1.0, "step": 1}\n{"loss": 0.9, "step": 2}\n',
        "a,b\n1,2\n3,4\n",
    ],
)
def test_what_tells_something_stays(text: str) -> None:
    assert plain(Artifact("x.log", content=text.encode())).lines() == text.splitlines()


def test_numbers_of_an_envelope_stay_with_the_message() -> None:
    row = json.dumps({"level": "info", "ts": "2024-05-06T07:08:09Z", "msg": "train", "loss": 1.5})
    assert (
        unwrapped(row + "\n" + row.replace(":09Z", ":19Z")).splitlines()[0]
        == "2024-05-06T07:08:09Z INFO train loss=1.5"
    )


def test_lines_that_two_writers_glued_are_cut_apart() -> None:
    text = (
        "node-1:10:20 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n"
        "node-1:10:20 [0] NCCL INFO Channel 01/0 : 0[0] ->node-1:11:21 [1] NCCL INFO Connected all rings\n"
        " 1[1] via P2P\n"
        "node-1:11:21 [1] NCCL INFO Init COMPLETE\n"
    )
    lines = unwrapped(text).splitlines()
    assert lines[1] == "node-1:10:20 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P"
    assert lines[2] == "node-1:11:21 [1] NCCL INFO Connected all rings"
    assert len(lines) == 4


def test_two_ranks_on_one_line() -> None:
    text = "[rank0]: ValueError: bad[rank1]: ValueError: bad\n[rank2]: ValueError: bad\n"
    assert unwrapped(text).splitlines() == [f"[rank{r}]: ValueError: bad" for r in range(3)]


def test_bytes_that_are_no_text_are_left_alone() -> None:
    artifact = Artifact("x.bin", content=b"\x00\x01\x02" * 100)
    assert plain(artifact) is artifact
