# ruff: noqa: E501  (lines as the tools print them)
"""`nvidia-smi` in CSV and the kernel's Xid lines."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.drill.artifacts.rng import Rng

HEADER = "index, name, utilization.gpu [%], temperature.gpu, power.draw [W], power.limit [W], power.default_limit [W], clocks.sm [MHz], clocks_event_reasons.active, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n"
POWER_CAP, THERMAL, BRAKE = 0x4, 0x20, 0x80  # bits of clocks_event_reasons


@dataclass(frozen=True, slots=True)
class Card:
    """A card in a server: name, board power, boost clock, PCIe generation."""

    name: str
    watt: int
    clock_mhz: int
    pcie: int


CARDS = (
    Card("NVIDIA H100 80GB HBM3", 700, 1755, 5),
    Card("NVIDIA H200", 700, 1755, 5),
    Card("NVIDIA A100-SXM4-80GB", 400, 1410, 4),
)


def row(rng: Rng, card: Card, gpu: int, *, heat: float = 62, watt: float | None = None, limit: int | None = None,
        clock: float | None = None, mask: int = 0, gen: int | None = None, width: int = 16, use: int = 98) -> str:  # fmt: skip
    """One sample of one card under load."""
    drawn = rng.near(watt or card.watt * 0.93, 0.005)
    return (
        f"{gpu}, {card.name}, {min(100, max(0, use + rng.whole(-1, 2)))} %, {rng.near(heat, 0.01):.0f}, {drawn:.1f} W, {limit or card.watt} W, {card.watt} W, "
        f"{rng.near(clock or card.clock_mhz, 0.004):.0f} MHz, 0x{mask:016x}, {gen or card.pcie}, {card.pcie}, {width}, 16\n"
    )


def healthy_smi(rng: Rng, use: int = 98, gpus: int = 8, samples: int = 6) -> str:
    """Eight busy cards; the power cap at its default limit is normal and tempts."""
    card = rng.pick(*CARDS)
    tempting = use > 90 and rng.chance(0.5)
    return HEADER + "".join(
        row(rng, card, g, watt=card.watt * 0.99, clock=card.clock_mhz * 0.86, mask=POWER_CAP)
        if tempting
        else row(rng, card, g, watt=card.watt * (0.15 + 0.0078 * use), use=use)
        for _ in range(samples)
        for g in range(gpus)
    )


def xid(rng: Rng, code: int, text: str, bus: str = "", at_s: float | None = None) -> str:
    """One line of the kernel's ring buffer."""
    place = bus or f"0000:{rng.whole(16, 200):02x}:00"
    return f"[{at_s or rng.between(1e4, 9e5):12.6f}] NVRM: Xid (PCI:{place}): {code}, {text}\n"


def quiet_kernel_log(rng: Rng) -> str:
    """A boot without trouble."""
    return f"[    4.{rng.whole(100000, 999999)}] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.{rng.whole(54, 163)}.0{rng.whole(1, 9)}\n"
