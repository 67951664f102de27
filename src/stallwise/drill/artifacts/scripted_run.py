"""A small host and a small device, to write traces of runs whose fault is known.

The host walks through a script and launches asynchronously; the device takes what was queued in order. What comes out is
a PyTorch profiler trace as a dict, with launches, operators, ranges and device work joined by ids as in real ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MAIN, ENGINE, PID = 100, 200, 10
LAUNCH_US = 4.0


class ScriptedRun:
    """Times are microseconds, as in the format."""

    def __init__(self, gpu: str = "NVIDIA H200", memory_bytes: float = 150e9) -> None:
        self.now = 1000.0
        self.free_at = 0.0  # when the device has done all that was queued
        self.events: list[dict[str, Any]] = []
        self.ids = 0
        self.lane = MAIN
        self.step_number = 0
        self.device = {"id": 0, "name": gpu, "totalGlobalMem": memory_bytes, "numSms": 132}

    def _add(self, cat: str, name: str, start: float, end: float, **args: Any) -> None:
        on_device = cat in ("kernel", "gpu_memcpy", "gpu_memset")
        place = {"pid": 0, "tid": 7} if on_device else {"pid": PID, "tid": self.lane}
        event = {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": end - start, "args": args, **place}
        self.events.append(event)

    @contextmanager
    def span(self, name: str, cat: str = "user_annotation") -> Iterator[None]:
        """A range around what happens inside."""
        self.ids += 1
        mine, start, lane = self.ids, self.now, self.lane
        yield
        here, self.lane = self.lane, lane
        self._add(cat, name, start, self.now, **{"External id": mine})
        self.lane = here

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step of the profiler."""
        with self.span(f"ProfilerStep#{self.step_number}"):
            yield
        self.step_number += 1

    @contextmanager
    def backward(self) -> Iterator[None]:
        """What the autograd engine runs, on its own thread."""
        self.lane = ENGINE
        yield
        self.lane = MAIN

    def host(self, us: float) -> None:
        """Time on the host with nothing recorded."""
        self.now += us

    def op(self, name: str, *kernels: tuple[str, float], host_us: float = 6.0, dims: Any = None) -> None:
        """An operator that launches kernels (name, microseconds)."""
        self.ids += 1
        mine, start = self.ids, self.now
        self.now += host_us
        for kernel, us in kernels:
            self._launch("kernel", kernel, us, mine)
        args: dict[str, Any] = {"External id": mine}
        if dims is not None:
            args |= {"Input Dims": dims, "Input type": ["c10::BFloat16"] * len(dims)}
        self._add("cpu_op", name, start, self.now, **args)

    def _launch(self, cat: str, name: str, us: float, owner: int, call: str = "cudaLaunchKernel", **args: Any) -> None:
        self.ids += 1
        start = self.now
        self.now += LAUNCH_US
        self._add("cuda_runtime", call, start, self.now, correlation=self.ids, **{"External id": owner})
        begin = max(self.now + 2.0, self.free_at + 1.0)
        self.free_at = begin + us
        ids = {"correlation": self.ids, "External id": owner, "device": 0, "stream": 7}
        self._add(cat, name, begin, self.free_at, **ids, **args)

    def copy(self, kind: str, size: float, us: float, *, blocking: bool = False) -> None:
        """A copy over the bus: kind as the profiler writes it, such as "HtoD (Pageable -> Device)"."""
        self.ids += 1
        mine, start = self.ids, self.now
        self._launch("gpu_memcpy", f"Memcpy {kind}", us, mine, "cudaMemcpyAsync", bytes=size)
        if blocking:
            self.sync()
        self._add("cpu_op", "aten::copy_", start, self.now, **{"External id": mine})

    def sync(self, name: str = "cudaStreamSynchronize") -> None:
        """Waits for the device."""
        start = self.now
        self.now = max(self.now, self.free_at) + 3.0
        self._add("cuda_runtime", name, start, self.now)

    def call(self, name: str, us: float) -> None:
        """Some other call into the driver."""
        self._add("cuda_runtime", name, self.now, self.now + us)
        self.now += us

    def layers(self, count: int, gemm_us: float = 400.0) -> None:
        """Forward and backward of plain layers with long kernels: what a healthy step does."""
        for _ in range(count):
            with self.span("aten::linear", "cpu_op"):
                self.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", gemm_us))
            self.op("aten::gelu", ("vectorized_elementwise_kernel<gelu>", gemm_us / 20))
        with self.backward():
            for _ in range(count):
                with self.span("autograd::engine::evaluate_function: GeluBackward0", "cpu_op"):
                    self.op("aten::gelu_backward", ("vectorized_elementwise_kernel<gelu_backward>", gemm_us / 20))
                with self.span("autograd::engine::evaluate_function: MmBackward0", "cpu_op"):
                    self.op("aten::mm", ("nvjet_sm90_tst_128x256_64x4", gemm_us))
                    self.op("aten::mm", ("nvjet_sm90_tst_128x256_64x4_NTN", gemm_us))

    def optimizer(self, us: float = 300.0) -> None:
        """A fused optimizer."""
        with self.span("Optimizer.step#AdamW.step"):
            self.op("aten::_fused_adamw_", ("multi_tensor_apply_kernel<FusedAdam>", us))

    @property
    def busy_share(self) -> float:
        """Share of the time in which the device had work: what a utilisation counter shows."""
        busy = sum(e["dur"] for e in self.events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"))
        return min(1.0, float(busy) / max(self.now - 1000.0, 1.0))

    def document(self) -> dict[str, Any]:
        """The trace."""
        self.sync("cudaDeviceSynchronize")
        for event in self.events:  # the last step lasts until the device is done
            if event["name"] == f"ProfilerStep#{self.step_number - 1}":
                event["dur"] = self.now - event["ts"]
        return {"schemaVersion": 1, "deviceProperties": [self.device], "traceEvents": self.events}

    def write(self, folder: Path) -> str:
        """As a file."""
        path = folder / "trace.json"
        path.write_text(json.dumps(self.document()), encoding="utf-8")
        return str(path)
