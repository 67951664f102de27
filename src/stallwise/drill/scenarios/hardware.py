# ruff: noqa: E501
"""Broken or throttled cards, told by `nvidia-smi` and the kernel log."""

from __future__ import annotations

from stallwise.drill.artifacts import gpu_state as smi
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.training import megatron
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


def _slower(rng: Rng, ratio: float) -> tuple[str, float, int]:
    """A training log whose steps get longer at some point."""
    base, at = rng.between(300, 1500), rng.whole(40, 80)
    text = "".join(megatron(i * 10, rng.near(base * (ratio if i >= at else 1)), 2.4 - i * 0.003) for i in range(120))
    return text, base, at * 10


def _setup(rng: Rng, base: float, ratio: float, at: int) -> str:
    gpus = rng.pick(8, 16, 64, 256)
    return (
        f"A {rng.pick(7, 13, 34, 70)}B model trains on {gpus} GPUs. Steps took {base:.0f} ms; since step {at} they take "
        f"{base * ratio:.0f} ms and stay there. No code or data changed, the loss is normal, nothing crashed. What do you check?"
    )


@planted("thermal-throttle")
def hot_card(rng: Rng) -> Plot:
    ratio, card, gpu = rng.between(1.3, 1.9), rng.pick(*smi.CARDS), rng.whole(0, 7)
    log, base, at = _slower(rng, ratio)
    rows = [smi.row(rng, card, g) for _ in range(8) for g in range(8)]
    rows += [
        smi.row(rng, card, g, heat=rng.between(87, 91), clock=card.clock_mhz / ratio, watt=card.watt * 0.7, mask=smi.THERMAL)
        if g == gpu else smi.row(rng, card, g)
        for _ in range(10) for g in range(8)
    ]  # fmt: skip
    return Plot(
        _setup(rng, base, ratio, at),
        (
            exhibit("gpu-state", "nvidia_smi.csv", smi.HEADER + "".join(rows)),
            exhibit("train-log", "train.log", log, False),
        ),
        number=Decisive("Which GPU is it (its index)?", gpu, within=EXACT),
    )


@planted("power-throttle")
def lowered_limit(rng: Rng) -> Plot:
    ratio, card, share = rng.between(1.4, 2.0), rng.pick(*smi.CARDS), rng.between(0.4, 0.6)
    limit = int(card.watt * share)
    log, base, at = _slower(rng, ratio)
    rows = [
        smi.row(rng, card, g, limit=limit, watt=limit * 0.99, clock=card.clock_mhz / ratio, mask=smi.POWER_CAP)
        for _ in range(8)
        for g in range(8)
    ]
    return Plot(
        _setup(rng, base, ratio, at),
        (
            exhibit("gpu-state", "nvidia_smi.csv", smi.HEADER + "".join(rows)),
            exhibit("train-log", "train.log", log, False),
        ),
        number=Decisive("Which power limit is in force?", limit, Unit.WATT),
    )


@planted("power-throttle")
def power_brake(rng: Rng) -> Plot:
    ratio, card, gpu = rng.between(1.6, 2.4), rng.pick(*smi.CARDS), rng.whole(0, 7)
    log, base, at = _slower(rng, ratio)
    rows = [
        smi.row(rng, card, g, heat=52, watt=card.watt * 0.45, clock=card.clock_mhz / ratio, mask=smi.BRAKE | 0x8) if g == gpu else smi.row(rng, card, g)
        for _ in range(10) for g in range(8)
    ]  # fmt: skip
    return Plot(
        _setup(rng, base, ratio, at),
        (
            exhibit("gpu-state", "nvidia_smi.csv", smi.HEADER + "".join(rows)),
            exhibit("train-log", "train.log", log, False),
        ),
        number=Decisive("Which GPU is it (its index)?", gpu, within=EXACT),
    )


@planted("pcie-link-downgrade")
def narrow_link(rng: Rng) -> Plot:
    card, gpu, gen, width = rng.pick(*smi.CARDS), rng.whole(0, 7), rng.pick(1, 2), rng.pick(16, 8, 4)
    rows = [
        smi.row(rng, card, g, gen=gen, width=width) if g == gpu else smi.row(rng, card, g)
        for _ in range(8)
        for g in range(8)
    ]
    setup = f"On one of {rng.whole(4, 40)} servers, batches reach one of its eight GPUs much later than the others, so the whole job steps {rng.between(1.2, 1.8):.1f}x slower whenever that server is in it. Swapping the input files changes nothing. Why?"
    return Plot(
        setup,
        (
            exhibit("gpu-state", "nvidia_smi.csv", smi.HEADER + "".join(rows)),
            exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng), False),
        ),
        number=Decisive("Which GPU is it (its index)?", gpu, within=EXACT),
    )


def _crashed(rng: Rng) -> str:
    return f"A job on {rng.pick(8, 32, 64, 512)} GPUs died after {rng.whole(2, 70)} hours with a CUDA error on one rank; every other rank then reported a communication error. Restarting it on the same nodes fails again. What do you do?"


@planted("gpu-fell-off-bus")
def lost_card(rng: Rng) -> Plot:
    code, text = rng.pick(
        (79, smi.xid(rng, 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")),
        (
            119,
            smi.xid(
                rng,
                119,
                "pid=4211, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76.",
            ),
        ),
    )
    return Plot(
        _crashed(rng),
        (exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng) + text),),
        number=Decisive("Which code did the driver report?", code, within=EXACT),
    )


@planted("gpu-memory-errors")
def bad_memory(rng: Rng) -> Plot:
    bus = f"0000:{rng.whole(16, 200):02x}:00"
    first = rng.pick((48, "pid=77, name=python, DBE (double bit error) detected"), (95, "pid=77, name=python, Uncontained ECC error"),
                      (63, "Row Remapper: New row marked for remapping, reset gpu to activate."))  # fmt: skip
    text = smi.xid(rng, *first, bus=bus, at_s=9000.0) + (
        smi.xid(rng, 94, "pid=77, name=python, Contained ECC error", bus, 9000.5)
        if first[0] == 63
        else smi.xid(rng, 45, "pid=77, name=python, Ch 00000010", bus, 9000.5)
    )
    return Plot(
        _crashed(rng),
        (exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng) + text),),
        number=Decisive("Which code did the driver report first?", first[0], within=EXACT),
    )


@planted("nvlink-fault")
def broken_link(rng: Rng) -> Plot:
    code, text = rng.pick(
        (
            74,
            smi.xid(
                rng,
                74,
                f"pid=77, name=python, NVLink: fatal error detected on link {rng.whole(0, 17)}(0x10000, 0x0, 0x0)",
            ),
        ),
        (
            20034,
            f"[ 7700.1] nvidia-nvswitch{rng.whole(0, 3)}: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link {rng.whole(0, 63)} LTSSM Fault Up\n",
        ),
    )
    return Plot(
        _crashed(rng),
        (exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng) + text),),
        number=Decisive("Which code was reported?", code, within=EXACT),
    )


@planted("application-fault")
def bad_address(rng: Rng) -> Plot:
    code, words = rng.pick((31, "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_3 faulted @ 0x7f12_34560000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"),
                            (13, "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address"))  # fmt: skip
    text = smi.xid(rng, code, f"pid={rng.whole(900, 99999)}, name=python, {words}")
    return Plot(
        _crashed(rng).replace("Restarting it on the same nodes", "Restarting it on other nodes"),
        (exhibit("kernel-log", "dmesg.txt", smi.quiet_kernel_log(rng) + text),),
        number=Decisive("Which code did the driver report?", code, within=EXACT),
    )
