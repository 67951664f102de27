"""Megabytes of text a second, from file to verdict, beyond start-up: kinds of artifacts that people have, grown to a few megabytes.

python bench/log_speed.py [MEGABYTES] [LOG...]    LOG: a file of your own, repeated with other clocks, counters and fractions;
                                                  one that is as long already is read as it is

What names a thing (a bus, an error code, a rank, how many steps there are) stays as it is: no program says a thousand of these.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
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


WORDS = [a + b + c + a for a in "bdfgklmnprst" for b in "aeiou" for c in "dlmnrst"]  # as many as people use in a talk


def sglang(n: int) -> str:
    return (
        f"[2025-03-01 {_clock(n)} TP0] Decode batch. #running-req: {n % 40}, #token: {1000 + n % 9000}, token usage: 0.{n % 90 + 10}, "
        f"cuda graph: True, gen throughput (token/s): {2000 + n % 97}.31, #queue-req: {n % 5}"
    )


def containers(n: int) -> str:
    return json.dumps({
        "log": f"step {n} loss={2.5 - n % 100 / 1000:.4f} step_time={0.41 + n % 9 / 100:.3f}s\n", "stream": "stdout",
        "time": f"2025-03-01T{_clock(n)}.123456789Z",
    })  # fmt: skip


def answers(n: int) -> str:
    """What a model says: hardly a line like another."""
    rng = random.Random(n)
    said = " ".join(rng.choices(WORDS, k=40))
    return (
        f"step {n // 6} reward={rng.random():.3f} step_time=12.{n % 100:02d}s" if n % 6 == 0 else f"completion: {said}"
    )


def json_lines(n: int) -> str:
    return json.dumps(_step(n))


def steps_csv(n: int) -> str:
    return ",".join(map(str, (_step(n) if n else {name: name for name in _step(0)}).values()))


def cards_csv(n: int) -> str:
    if n == 0:
        return "timestamp, index, utilization.gpu [%], clocks.sm [MHz], power.draw [W], temperature.gpu"
    moment = f"2025/03/01 {_clock(n // 8)}.{n % 1000:03d}"
    return f"{moment}, {n % 8}, {90 + n % 9} %, {1900 + n % 80} MHz, 6{n % 90 + 10}.12 W, {60 + n % 9}"


def dmon(n: int) -> str:
    if n % 40 == 0:
        return "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk\n# Idx      W      C      C      %      %    MHz    MHz"
    return f"    {n % 8}    6{n % 90 + 10}     {60 + n % 9}     {70 + n % 9}     {90 + n % 9}     30   2619   {1900 + n % 80}"


def smi_report(n: int) -> str:
    return (
        f"==============NVSMI LOG==============\n\nTimestamp                                 : Sat Mar  1 {_clock(n)} 2025\n\n"
        + "\n".join(
            f"GPU 00000000:{g + 1}A:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n"
            f"    Utilization\n        Gpu                               : {90 + n % 9} %\n"
            f"    Clocks Event Reasons\n        SW Power Cap                      : Not Active\n"
            f"    GPU Power Readings\n        Power Draw                        : 6{n % 90 + 10}.12 W\n"
            f"    Clocks\n        SM                                : {1900 + n % 80} MHz"
            for g in range(8)
        )
    )


def metrics(n: int) -> str:
    """Pages of an engine, one after the other."""
    names = ("num_requests_running", "num_requests_waiting", "gpu_cache_usage_perc", "generation_tokens_total")
    gauges = (f'vllm:{name}{{engine="0",model_name="m"}} {n % 90}.5' for name in names)
    buckets = (
        f'vllm:e2e_request_latency_seconds_bucket{{engine="0",le="{b}",model_name="m"}} {n * b}.0' for b in range(1, 9)
    )
    return "\n".join(("# TYPE vllm:num_requests_running gauge", *gauges, *buckets))


def stacks(n: int) -> str:
    calls = "\n".join(f"    step{d} (train.py:{100 + d})" for d in range(12))
    return f'Process {4000 + n % 8}: python train.py\nThread {n % 64} (idle): "MainThread"\n    wait (threading.py:312)\n{calls}\n'


def _clock(n: int) -> str:
    return f"{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}"


def _step(n: int) -> dict[str, float]:
    return {
        "step": n, "loss": round(2 + 300 / (n + 300) + n % 7 / 100, 4), "grad_norm": n % 7 + 0.31,
        "step_time": round(0.41 + n % 9 / 100, 3),
        "data_time": round(0.01 + n % 5 / 1000, 4), "tokens_per_sec": 81000 + n % 700,
    }  # fmt: skip


KINDS = (
    megatron, vllm, nccl, torchrun, hugging_face, requests, sglang, containers, answers, json_lines, steps_csv, cards_csv, dmon,
    smi_report, metrics, stacks,
)  # fmt: skip


def text_of(kind: Callable[[int], str], size: int) -> str:
    """So many bytes of this kind, or a little more."""
    return "\n".join(kind(n) for n in range(1 + size // (len(kind(1001)) + 1)))


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
            text = text_of(texts[name], size) if name in texts else grown(Path(name).read_text(errors="replace"), size)
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
