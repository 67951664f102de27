"""Whether the machine itself slowed down during a block: clocks, power and temperature of the GPU, heat of the CPU.

`nvidia-smi` runs beside the job and appends to a file; what came during a block is read at its end, without a call into CUDA.
"""

from __future__ import annotations

import glob
import os
from typing import Dict, List, Optional

# Bits of clocks_event_reasons: hardware slowdown, software thermal, hardware thermal, power brake. A power cap (0x4) is
# what a full load looks like and shows in the clock.
SLOWED = 0x8 | 0x20 | 0x40 | 0x80
_CPU = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count"


class Throttle:
    """Reads on from where it stopped."""

    def __init__(self, folder: str, gpu: Optional[str] = None) -> None:
        self._path = os.path.join(folder, "nvidia_smi.csv")
        self._gpu = gpu
        self._names: List[str] = []
        self._at = 0
        self._cpu = _cpu_count()

    def since(self) -> Dict[str, float]:
        """Since the last call: the mean SM clock in MHz, and 1 under `slowed` where the machine was held back."""
        found: Dict[str, float] = {}
        clocks: List[float] = []
        for row in self._rows():
            if self._gpu is not None and row.get("index") != self._gpu:
                continue
            number = _number(row.get("clocks.current.sm [MHz]") or row.get("clocks.sm [MHz]") or "")
            if number is not None:
                clocks.append(number)
            reasons = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or ""
            try:
                if int(reasons, 16) & SLOWED:
                    found["slowed"] = 1.0
            except ValueError:
                pass
        if clocks:
            found["clock_mhz"] = sum(clocks) / len(clocks)
        cpu = _cpu_count()
        if cpu > self._cpu:
            found["slowed"] = 1.0
        self._cpu = cpu
        return found

    def _rows(self) -> List[Dict[str, str]]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        whole = data.rfind(b"\n") + 1
        self._at += whole
        rows = []
        for line in data[:whole].decode("utf-8", "replace").splitlines():
            cells = [cell.strip() for cell in line.split(",")]
            if not self._names:
                self._names = cells
            elif len(cells) == len(self._names):
                rows.append(dict(zip(self._names, cells)))
        return rows


def gpu_index(local: int) -> str:
    """What nvidia-smi calls the device that PyTorch calls `local`."""
    visible = [v for v in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if v.strip()]
    return visible[local].strip() if local < len(visible) and visible[local].strip().isdigit() else str(local)


def _number(text: str) -> Optional[float]:
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def _cpu_count() -> int:
    total = 0
    for path in glob.glob(_CPU)[:256]:
        try:
            with open(path, encoding="ascii") as file:
                total += int(file.read())
        except (OSError, ValueError):
            continue
    return total
