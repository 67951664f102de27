"""Megabytes of log a second, from file to verdict, beyond start-up: kinds of logs that people have, grown to a few megabytes.

python bench/log_speed.py [MEGABYTES] [LOG...]    LOG: a file of your own, repeated with other clocks, counters and fractions;
                                                  one that is as long already is read as it is

What names a thing (a bus, an error code, a rank, how many steps there are) stays as it is: no program says a thousand of these.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("STALLWISE_CACHE", "off")

from stallwise.doctor.examine import diagnose
from stallwise.errors import StallwiseError

_LAST_DIGITS = re.compile(r"(?<=\.\d)\d{1,6}\b|(?<=:\d\d:\d)\d\b|(?<![\w:/.-]\d\d)(?<=[ =\[(]\d\d)\d{2,6}(?![\w:/.-])")
WARM_LINES = 400
WARM = "step 1 loss 2.0 step_time 0.5s\n" * 20


def megatron(n: int) -> str:
    return (
        f" [2025-03-01 10:{n // 60 % 60:02d}:{n % 60:02d}] iteration {n:8d}/  500000 | consumed samples: {n * 512:12d} | "
        f"elapsed time per iteration (ms): {900 + n % 37}.4 | throughput per GPU (TFLOP/s/GPU): 4{n % 10}1.2 | "
        f"learning rate: 1.5E-04 | global batch size: 512 | lm loss: {2 + 1 / (n + 1):.6E} | loss scale: 1.0 | "
        f"grad norm: 0.{n % 90 + 10} | number of skipped iterations: 0 | number of nan iterations: 0 |"
    )


def vllm(n: int) -> str:
    return (
        f"INFO 03-01 10:{n // 6 % 60:02d}:{n * 10 % 60:02d} [loggers.py:118] Engine 000: Avg prompt throughput: "
        f"{1000 + n % 97}.3 tokens/s, Avg generation throughput: {2000 + n % 89}.1 tokens/s, Running: {n % 40} reqs, "
        f"Waiting: {n % 3} reqs, "
        f"GPU KV cache usage: {n % 90}.5%, "
        f"Prefix cache hit rate: {n % 50}.0%"
    )


def nccl(n: int) -> str:
    rank = n % 16
    return (
        f"gpu-{rank // 8:02d}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO Channel {n // 16 % 32:02d}/0 : {rank}[{rank % 8}] -> "
        f"{(rank + 1) % 16}[{(rank + 1) % 8}] via P2P/CUMEM"
    )


def torchrun(n: int) -> str:
    return (
        f"[rank{n % 8}]: 2025-03-01 10:{n // 60 % 60:02d}:{n % 60:02d},{n % 1000:03d} INFO trainer: "
        f"step={n // 8} loss={2.5 - n % 100 / 1000:.4f} "
        f"tokens_per_sec={81000 + n % 700} step_time={0.41 + n % 9 / 100:.3f}s"
    )


def hugging_face(n: int) -> str:
    return (
        f"{{'loss': {2 - n % 50 / 100:.4f}, 'grad_norm': {n % 7}.31, 'learning_rate': {1e-4 - n * 1e-10:.6e}, "
        f"'epoch': {n / 1000:.2f}}}"
    )


def requests(n: int) -> str:
    return f'INFO:     10.0.{n % 7}.{n % 251}:{40000 + n % 9999} - "POST /v1/chat/completions HTTP/1.1" 200 OK'


KINDS = (megatron, vllm, nccl, torchrun, hugging_face, requests)


def grown(text: str, size: int) -> str:
    """The same lines again and again, with other last digits, until the size is reached. A long one stays as it is."""
    if len(text) >= size / 2:
        return text
    lines, rng, out, total = text.splitlines(), random.Random(0), [], 0
    while total < size:
        for line in lines:
            out.append(_LAST_DIGITS.sub(lambda m: str(rng.randrange(10 ** len(m[0]))).zfill(len(m[0])), line))
            total += len(out[-1]) + 1
    return "\n".join(out)


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    size = int(megabytes * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        path.write_text(WARM)
        diagnose(str(path), workers=1, cache=False)
        texts = {kind.__name__: kind for kind in KINDS}
        for name in [*texts, *sys.argv[2:]]:
            if name in texts:
                length = len(texts[name](1000)) + 1
                path.write_text("\n".join(texts[name](n) for n in range(size // length)))
            else:
                path.write_text(grown(Path(name).read_text(errors="replace"), size))
            text = path.read_text()
            actual = len(text) / 1e6
            path.write_text("\n".join(text.split("\n")[:WARM_LINES]))
            with suppress(StallwiseError):
                diagnose(str(path), workers=1, cache=False)  # what is loaded once is start-up
            path.write_text(text)
            began = time.process_time()
            for line in text.split("\n"):
                line.split()
            plain_s = time.process_time() - began
            began = time.process_time()
            try:
                diagnose(str(path), workers=1, cache=False)
            except StallwiseError as error:
                print(f"{Path(name).name:24s} {error.problem[:60]}")
            took_s = time.process_time() - began
            print(
                f"{Path(name).name:24s} {actual:5.1f} MB in {took_s:6.2f} s of CPU  {actual / took_s:6.1f} MB/s  "
                f"{took_s / plain_s:5.1f} x cutting it into words",
                flush=True,
            )


if __name__ == "__main__":
    main()
