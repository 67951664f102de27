"""A memory answer for a terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stallwise.planner.memory_answer import MemoryAnswer

GIB = 2.0**30


def to_dict(answer: MemoryAnswer) -> dict[str, Any]:
    """Everything a program may want."""
    worst = answer.worst.device_bytes
    return {
        "schema": "stallwise.plan.memory/1",
        "model": answer.model.name,
        "layout": {**asdict(answer.layout), "label": answer.layout.label},
        "fits": answer.fits,
        "room_bytes": answer.room_bytes,
        "peak_bytes": worst,
        "fit": answer.fit,
        "low_bytes": answer.interval_bytes[0],
        "high_bytes": answer.interval_bytes[1],
        "stages": [asdict(s) for s in answer.stages],
        "activation_tensors": answer.tensors,
        "knobs": [asdict(k) for k in answer.knobs],
    }


def verdict_words(answer: MemoryAnswer) -> str:
    """Whether it fits, as far as the interval says."""
    return answer.fit


def to_text(answer: MemoryAnswer) -> str:
    """The verdict, the parts of each stage, the tensors, the knobs."""
    worst = answer.worst
    card = answer.cluster.gpu
    lines = [
        f"{answer.model.name}, {answer.layout.label} on {answer.cluster.gpus} x {card.title}: {verdict_words(answer)}",
        f"  {worst.device_bytes / GIB:.1f} GiB ({answer.interval_bytes[0] / GIB:.1f} to "
        f"{answer.interval_bytes[1] / GIB:.1f}, 90% sure) on the fullest GPU, {worst.moment}; a plan may fill "
        f"{answer.room_bytes / GIB:.1f} of the card's {card.memory_bytes / GIB:.0f} GiB",
        "",
    ]
    names = [n for n in worst.parts if any(s.parts[n] > 0.01 * GIB for s in answer.stages)]
    lines.append(f"  {'GiB':24}" + "".join(f"{s.stage + ' stage':>14}" for s in answer.stages))
    lines += [f"  {n:24}" + "".join(f"{s.parts[n] / GIB:14.2f}" for s in answer.stages) for n in names]
    lines.append(f"  {'in all':24}" + "".join(f"{s.device_bytes / GIB:14.2f}" for s in answer.stages))
    lines += ["", "  saved for the backward pass by one microbatch (GiB a stage)"]
    lines += [f"    {name:42} {size / GIB:8.3f}" for name, size in sorted(answer.tensors.items(), key=lambda t: -t[1])]
    lines += ["", "  what frees memory"]
    lines += [
        f"    {k.change:26} frees {k.freed_bytes / GIB:6.1f} GiB -> {k.device_bytes / GIB:6.1f} GiB"
        f"{' (fits)' if k.fits else '':8}  costs {k.costs}"
        for k in answer.knobs
    ]
    return "\n".join(lines)
