"""The GPU's ceilings: bandwidth, matrix rates, launch and sync cost, host copies, all-reduce."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from stallwise.physics.probe.reading import Reading
from stallwise.physics.probe.timing import Timing, bench
from stallwise.units import Unit

BUFFER_BYTES = 1 << 30  # many times any L2
GEMM_SIZE = 8192
TINY_LAUNCHES = 1000
ROUNDS = 9  # of a thousand each: enough for quartiles


def probe_device(torch: Any, index: int = 0) -> Iterator[Reading]:
    """All readings of one GPU, quickest first."""
    torch.cuda.set_device(index)
    yield from _launches(torch)
    yield from _bandwidth(torch)
    yield from _host_copies(torch)
    yield from _matrix_rates(torch)
    yield from _all_reduce(torch)


def _all_reduce(torch: Any) -> Iterator[Reading]:
    """Bus bandwidth among all GPUs of this machine, driven from one process; nothing where there is only one."""
    count = torch.cuda.device_count()
    if count < 2:
        return
    buffers = [torch.ones(BUFFER_BYTES // 4, device=f"cuda:{i}") for i in range(count)]

    def reduce() -> float:
        for i in range(count):
            torch.cuda.synchronize(i)
        start = time.perf_counter()
        torch.cuda.nccl.all_reduce(buffers)
        for i in range(count):
            torch.cuda.synchronize(i)
        return time.perf_counter() - start

    for _ in range(3):
        reduce()
    timing = Timing.of([reduce() for _ in range(10)], "host")
    moved = 2 * (count - 1) / count * BUFFER_BYTES
    how = f"bus bandwidth, 1 GiB over {count} GPUs of this machine"
    yield Reading.rate("all-reduce", Unit.BYTE_PER_S, moved, timing, how)


def _bandwidth(torch: Any) -> Iterator[Reading]:
    count = BUFFER_BYTES // 4
    sources = [torch.randn(count, device="cuda") for _ in range(3)]
    target = torch.empty(count, device="cuda")
    copy = bench(lambda x: target.copy_(x), *[(x,) for x in sources])
    yield Reading.rate("copy", Unit.BYTE_PER_S, 2 * BUFFER_BYTES, copy, "bytes read and written")
    total = bench(lambda x: x.sum(), *[(x,) for x in sources])
    yield Reading.rate("reduce", Unit.BYTE_PER_S, BUFFER_BYTES, total, "bytes read")


def _matrix_rates(torch: Any) -> Iterator[Reading]:
    flop = 2 * GEMM_SIZE**3
    types = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32}
    for name, dtype in types.items():
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        a = torch.randn(GEMM_SIZE, GEMM_SIZE, device="cuda", dtype=dtype)
        b = torch.randn(GEMM_SIZE, GEMM_SIZE, device="cuda", dtype=dtype)
        yield Reading.rate(
            f"gemm {name}", Unit.FLOP_PER_S, flop, bench(torch.mm, (a, b)), f"{GEMM_SIZE}^3 on random data"
        )
    fp8 = _fp8(torch)
    if fp8 is not None:
        yield Reading.rate("gemm fp8", Unit.FLOP_PER_S, flop, bench(fp8), f"{GEMM_SIZE}^3, per-tensor scales")


def _fp8(torch: Any) -> Callable[[], object] | None:
    if torch.cuda.get_device_capability() < (8, 9) or not hasattr(torch, "float8_e4m3fn"):
        return None
    a = torch.randn(GEMM_SIZE, GEMM_SIZE, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(GEMM_SIZE, GEMM_SIZE, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _launches(torch: Any) -> Iterator[Reading]:
    x = torch.zeros(1, device="cuda")

    def launch_many() -> None:
        for _ in range(TINY_LAUNCHES):
            x.add_(1)

    launch_many()
    yield Reading.each("launch eager", TINY_LAUNCHES, _drained(torch, launch_many), "one tiny operator, host-bound")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch_many()
    how = "one tiny kernel of a replayed graph"
    yield Reading.each("launch in a graph", TINY_LAUNCHES, bench(graph.replay), how)

    def sync_many() -> None:
        for _ in range(TINY_LAUNCHES):
            torch.cuda.synchronize()

    yield Reading.each("sync", TINY_LAUNCHES, _drained(torch, sync_many), "synchronize() with nothing queued")


def _drained(torch: Any, work: Callable[[], object]) -> Timing:
    """Host time of work that begins and ends with an empty queue."""
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return Timing.of(times, "host")


def _host_copies(torch: Any) -> Iterator[Reading]:
    size = 256 << 20
    target = torch.empty(size, dtype=torch.uint8, device="cuda")
    pinned = torch.empty(size, dtype=torch.uint8).pin_memory()
    pageable = torch.empty(size, dtype=torch.uint8)
    for name, source in (("pinned", pinned), ("pageable", pageable)):
        timing = bench(lambda s=source: target.copy_(s, non_blocking=True))
        yield Reading.rate(f"host to device, {name}", Unit.BYTE_PER_S, size, timing, "256 MiB")
    back = bench(lambda: pinned.copy_(target, non_blocking=True))
    yield Reading.rate("device to host, pinned", Unit.BYTE_PER_S, size, back, "256 MiB")
