"""The device as borders use it: functions of PyTorch as they were before any trial.

A trial replaces functions of PyTorch by name, and a border that looks the same name up would wait for nothing. So whatever
a border calls is looked up once, here, before the first trial, and cannot be replaced afterwards.
"""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, Optional

# What is called between blocks. Each kind of device offers some of them.
CALLED = (
    "is_initialized", "synchronize", "current_device", "device_count", "memory_reserved", "max_memory_allocated",
    "reset_peak_memory_stats", "get_device_properties", "empty_cache", "Event",
)  # fmt: skip
KINDS = ("cuda", "xpu", "mps", "npu", "hpu")  # modules of PyTorch (and its plug-ins) with a queue of their own


class Mark:
    """A moment: on the host's clock, and in the device's queue where it has one."""

    def __init__(self, host_s: float, event: Optional[Any]) -> None:
        self.host_s = host_s
        self.event = event


class Device:
    """Every accelerator that PyTorch has here, by kind, with its functions as they are now."""

    def __init__(self, torch: Any) -> None:
        found: Dict[str, Any] = {}
        for kind in KINDS:
            module = getattr(torch, kind, None)
            own = {name: getattr(module, name) for name in CALLED if callable(getattr(module, name, None))}
            if "synchronize" in own:
                found[kind] = SimpleNamespace(**own)
        self._kinds: Mapping[str, Any] = MappingProxyType(found)

    def drain(self) -> None:
        """Returns when every queue of this process is empty."""
        for kind, calls in self._kinds.items():
            if self._started(kind):
                for one in self._used(calls):
                    calls.synchronize(*one)

    def mark(self, now: Callable[[], float]) -> Mark:
        """This moment. Where one device has all the work it is a stamp in its queue, so that a host that runs ahead is timed by
        what the device has done, and a block is not charged with filling the queue."""
        cuda = self._kinds.get("cuda")
        if cuda is None or not hasattr(cuda, "Event") or not self._started("cuda") or len(self._used(cuda)) > 1:
            self.drain()
            return Mark(now(), None)
        event = cuda.Event(enable_timing=True)
        event.record()
        return Mark(now(), event)

    def seconds(self, first: Mark, last: Mark) -> float:
        """Between two marks; both have passed by then."""
        self.drain()
        if first.event is not None and last.event is not None:
            return float(first.event.elapsed_time(last.event)) / 1e3
        return last.host_s - first.host_s

    def _started(self, kind: str) -> bool:
        """The process uses it: asking an idle one would start it and take its memory."""
        calls = self._kinds[kind]
        if hasattr(calls, "is_initialized"):
            return bool(calls.is_initialized())
        return kind == "mps" and bool(calls.device_count())

    def _used(self, calls: Any) -> List[Any]:
        """Arguments of `synchronize`, one for each device with memory of ours; none where there can be one device alone."""
        if not hasattr(calls, "device_count") or not hasattr(calls, "memory_reserved"):
            return [()]
        here = calls.current_device() if hasattr(calls, "current_device") else 0
        count = calls.device_count()
        return [(n,) for n in range(count) if n == here or calls.memory_reserved(n)] if count > 1 else [()]

    def forget_peak(self) -> None:
        """The peak of memory counts from here."""
        self._cuda.reset_peak_memory_stats()

    def peak_bytes(self) -> int:
        """The most memory in use since."""
        return int(self._cuda.max_memory_allocated())

    def memory_bytes(self) -> int:
        """What the device has in all."""
        return int(self._cuda.get_device_properties(self._cuda.current_device()).total_memory)

    def give_back(self) -> None:
        """Memory that is reserved and not in use."""
        self._cuda.empty_cache()

    @property
    def _cuda(self) -> Any:
        return self._kinds["cuda"]
