"""What a card can be cut into by MIG, by its name (`catalog/mig.toml`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from stallwise.physics.specs.hardware import Gpu
from stallwise.tables import parsed


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of slice, and how many of it a card holds."""

    name: str  # "3g.40gb"
    compute_share: float
    memory_share: float  # of capacity, bandwidth and L2 alike
    count: int

    @property
    def whole(self) -> bool:
        """The card in one piece."""
        return self.count == 1 and self.compute_share == 1.0

    def cut(self, gpu: Gpu) -> Gpu:
        """The slice as a card of its own."""
        return part_of(gpu, self.compute_share, self.memory_share)


def part_of(gpu: Gpu, compute_share: float, memory_share: float) -> Gpu:
    """A card with so much of the compute and of the memory, its bandwidth and its L2."""
    return replace(
        gpu,
        memory_bytes=gpu.memory_bytes * memory_share,
        bandwidth_byte_per_s=gpu.bandwidth_byte_per_s * memory_share,
        l2_bytes=gpu.l2_bytes * memory_share,
        sm_count=max(1, int(gpu.sm_count * compute_share)),
        peak_flop_per_s={k: v * compute_share for k, v in gpu.peak_flop_per_s.items()},
    )


def profiles(gpu: Gpu) -> tuple[Profile, ...]:
    """The slices of this card, the smallest first; none where it cannot be cut."""
    return _boards().get(gpu.name, ())


@cache
def _boards() -> dict[str, tuple[Profile, ...]]:
    text = (Path(__file__).parent / "catalog" / "mig.toml").read_text(encoding="utf-8")
    found = {}
    for gpu_row in parsed(text)["board"]:
        compute, memory = gpu_row["compute_slices"], gpu_row["memory_slices"]
        cut = tuple(Profile(name, c / compute, m / memory, count) for name, c, m, count in gpu_row["profiles"])
        found.update(dict.fromkeys(gpu_row["gpus"], cut))
    return found
