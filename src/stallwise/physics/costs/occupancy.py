"""How many blocks of a kernel fit on one multiprocessor, what stops more, and the peaks of a chip by its capability.

Granularities are those of NVIDIA's occupancy tables (CUDA C++ programming guide, compute capabilities): registers are
handed out per warp in units of 256, shared memory in units of 128 bytes (256 before Ampere), and from Ampere on the
driver keeps 1 KiB of shared memory per block.
"""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.physics.specs.hardware import Gpu, Multiprocessor, all_gpus, find_gpu

WARP = 32
REGISTER_UNIT = 256
AMPERE = 8.0
DRIVER_SHARED_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks by each limit; the smallest decides."""

    by_registers: int
    by_shared: int
    by_warps: int
    by_blocks: int
    warps_per_block: int
    max_warps: int

    @property
    def blocks(self) -> int:
        """Blocks resident at once."""
        return min(self.by_registers, self.by_shared, self.by_warps, self.by_blocks)

    @property
    def share(self) -> float:
        """Resident warps over the most an SM can hold."""
        return self.blocks * self.warps_per_block / self.max_warps

    @property
    def limiter(self) -> str:
        """What to spend less of to fit another block."""
        return limiter(self.by_registers, self.by_shared, self.by_warps, self.by_blocks)


def limiter(by_registers: float, by_shared: float, by_warps: float, by_blocks: float) -> str:
    """The resource that runs out first; warp slots last, because then the SM is simply full."""
    smallest = min(by_registers, by_shared, by_warps, by_blocks)
    if by_warps == smallest:
        return "warp slots"
    if by_registers == smallest and by_shared == smallest:
        return "registers and shared memory"
    if by_registers == smallest:
        return "registers"
    return "shared memory" if by_shared == smallest else "block slots"


def occupancy(
    sm: Multiprocessor, capability: float, *, registers: int, shared_bytes: float, block_threads: int
) -> Occupancy:
    """The vendor's occupancy arithmetic for a launch."""
    warps = max(-(-block_threads // WARP), 1)
    per_warp = -(-max(registers, 1) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    unit = 128 if capability >= AMPERE else 256
    shared = shared_bytes + (DRIVER_SHARED_BYTES if capability >= AMPERE else 0)
    shared = -(-int(shared) // unit) * unit
    return Occupancy(
        by_registers=sm.registers // per_warp // warps,
        by_shared=int(sm.shared_bytes // shared) if shared else sm.blocks,
        by_warps=sm.warps // warps,
        by_blocks=sm.blocks,
        warps_per_block=warps,
        max_warps=sm.warps,
    )


def chip(device: str = "", capability: str = "") -> Gpu | None:
    """The catalogue's entry for a device name or, failing that, for a compute capability."""
    if device and (found := find_gpu(device)):
        return found
    same = [g for g in all_gpus() if g.compute_capability == capability] if capability else []
    return same[0] if same else None


def matrix_over_vector(gpu: Gpu) -> float:
    """How much faster 16-bit matrix units are than the ordinary cores."""
    return max(gpu.peak("fp16"), gpu.peak("bf16")) / gpu.peak("fp32")


def fp32_over_fp64(gpu: Gpu) -> float:
    """What leaving double precision is worth at best."""
    return gpu.peak("fp32") / gpu.peak("fp64")
