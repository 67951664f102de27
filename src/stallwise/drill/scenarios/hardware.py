# ruff: noqa: E501
"""Broken or throttled cards, told by `nvidia-smi` and the kernel log."""

from __future__ import annotations

from typing import Any

from stallwise.drill.artifacts import gpu_state as smi
from stallwise.drill.artifacts.logs import megatron
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted

GPUS = 8


def _samples(rng: Rng, card: smi.Card, ill: set[int], count: int, **how: Any) -> str:
    """So many samples of all cards of a node; how the ill ones differ."""
    return "".join(smi.row(rng, card, g, **(how if g in ill else {})) for _ in range(count) for g in range(GPUS))


def _slower(rng: Rng, ratio: float, samples: str, value: float) -> Drawn:
    """A node's samples, and a training log whose steps get longer at some point."""
    base, at = rng.between(300, 1500), rng.whole(40, 80)
    log = "".join(megatron(i * 10, rng.near(base * (ratio if i >= at else 1)), 2.4 - i * 0.003) for i in range(120))
    files = (
        exhibit("gpu-state", "nvidia_smi.csv", smi.HEADER + samples),
        exhibit("train-log", "train.log", log, False),
    )
    return drawn(value, *files, base=base, slow=base * ratio, at=at * 10)


@planted("thermal-throttle")
def hot_card(rng: Rng) -> Drawn:
    ratio, card, gpu = rng.between(1.3, 1.9), rng.pick(*smi.CARDS), rng.whole(0, GPUS - 1)
    hot = _samples(
        rng,
        card,
        {gpu},
        10,
        heat=rng.between(87, 91),
        clock=card.clock_mhz / ratio,
        watt=card.watt * 0.7,
        mask=smi.THERMAL,
    )
    return _slower(rng, ratio, _samples(rng, card, set(), 8) + hot, gpu)


@planted("power-throttle")
def lowered_limit(rng: Rng) -> Drawn:
    ratio, card = rng.between(1.4, 2.0), rng.pick(*smi.CARDS)
    limit = int(card.watt * rng.between(0.4, 0.6))
    rows = _samples(
        rng, card, set(range(GPUS)), 8, limit=limit, watt=limit * 0.99, clock=card.clock_mhz / ratio, mask=smi.POWER_CAP
    )
    return _slower(rng, ratio, rows, limit)


@planted("power-throttle")
def power_brake(rng: Rng) -> Drawn:
    ratio, card, gpu = rng.between(1.6, 2.4), rng.pick(*smi.CARDS), rng.whole(0, GPUS - 1)
    rows = _samples(
        rng, card, {gpu}, 10, heat=52, watt=card.watt * 0.45, clock=card.clock_mhz / ratio, mask=smi.BRAKE | 0x8
    )
    return _slower(rng, ratio, rows, gpu)


@planted("pcie-link-downgrade")
def narrow_link(rng: Rng) -> Drawn:
    card, gpu = rng.pick(*smi.CARDS), rng.whole(0, GPUS - 1)
    rows = smi.HEADER + _samples(rng, card, {gpu}, 8, gen=rng.pick(1, 2), width=rng.pick(16, 8, 4))
    log = exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng), False)
    return drawn(gpu, exhibit("gpu-state", "nvidia_smi.csv", rows), log)


def _reported(rng: Rng, code: int, text: str) -> Drawn:
    """The driver's line in the kernel log of a node whose job died."""
    return drawn(code, exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng) + text))


@planted("gpu-fell-off-bus")
def lost_card(rng: Rng) -> Drawn:
    code, words = rng.pick(
        (79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
        (
            119,
            "pid=4211, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76.",
        ),
    )
    return _reported(rng, code, smi.xid(rng, code, words))


@planted("gpu-memory-errors")
def bad_memory(rng: Rng) -> Drawn:
    bus = f"0000:{rng.whole(16, 200):02x}:00"
    ended = "pid=77, name=python, Ch 00000010"
    code, words, later, more = rng.pick(
        (48, "pid=77, name=python, DBE (double bit error) detected", 45, ended),
        (95, "pid=77, name=python, Uncontained ECC error", 45, ended),
        (63, "Row Remapper: New row marked for remapping, reset gpu to activate.", 94, "pid=77, name=python, Contained ECC error"),
    )  # fmt: skip
    return _reported(rng, code, smi.xid(rng, code, words, bus, 9000.0) + smi.xid(rng, later, more, bus, 9000.5))


@planted("nvlink-fault")
def broken_link(rng: Rng) -> Drawn:
    fatal = f"pid=77, name=python, NVLink: fatal error detected on link {rng.whole(0, 17)}(0x10000, 0x0, 0x0)"
    switch = f"[ 7700.1] nvidia-nvswitch{rng.whole(0, 3)}: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link {rng.whole(0, 63)} LTSSM Fault Up\n"
    return _reported(rng, *rng.pick((74, smi.xid(rng, 74, fatal)), (20034, switch)))


@planted("application-fault")
def bad_address(rng: Rng) -> Drawn:
    code, words = rng.pick(
        (
            31,
            "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_3 faulted @ 0x7f12_34560000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
        ),
        (13, "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address"),
    )
    return _reported(rng, code, smi.xid(rng, code, f"pid={rng.whole(900, 99999)}, name=python, {words}"))
