"""Keeps what was measured, and compares a machine with its catalogue entry and its peers."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.physics.probe.reading import Reading
from stallwise.physics.specs.hardware import Gpu, profile_path

TYPES = ("fp32", "tf32", "fp16", "bf16", "fp8")
FAR_BELOW_PEERS = 0.95  # healthy cards of one kind agree within a few percent; a node at 95% drags the whole job
BELOW_CATALOGUE = {"copy": 0.80, "gemm": 0.55}  # of the data sheet: what no healthy card has been seen below


def shares(readings: Sequence[Reading], card: Gpu) -> dict[str, float]:
    """Measured rates over the data sheet's."""
    by_name = {r.name: r.value for r in readings}
    found = {t: by_name[f"gemm {t}"] / card.peak(t) for t in TYPES if f"gemm {t}" in by_name}
    if "copy" in by_name:
        found["bandwidth"] = by_name["copy"] / card.bandwidth_byte_per_s
    return found


def save(readings: Sequence[Reading], card: Gpu | None) -> Path:
    """Writes the profile that planner and doctor read from then on."""
    path = profile_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    kept: dict[str, Any] = {"achieved_share": {}}
    if path.exists():
        with suppress(ValueError):  # a damaged profile is replaced
            kept = json.loads(path.read_text(encoding="utf-8"))
    kept["readings"] = [r.to_dict() for r in readings]
    if card is not None:
        kept.setdefault("achieved_share", {})[card.name] = shares(readings, card)
    path.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Complaint:
    """A node that should not join the run, and why."""

    node: str
    reading: str
    value: float
    expected: float
    against: str

    def __str__(self) -> str:
        return f"{self.node}: {self.reading} is {self.value / self.expected:.0%} of {self.against}"


def preflight(nodes: Mapping[str, Mapping[str, float]], card: Gpu | None) -> list[Complaint]:
    """Compares each node's readings with the catalogue and with the median of its peers."""
    complaints = []
    for node, readings in nodes.items():
        for name, value in readings.items():
            if card is not None:
                peak = (
                    card.bandwidth_byte_per_s
                    if name == "copy"
                    else card.peak(name[5:])
                    if name.startswith("gemm ")
                    else 0.0
                )
                floor = BELOW_CATALOGUE.get(name.split()[0], 0.0)
                if peak and name != "gemm fp32" and value < floor * peak:
                    complaints.append(Complaint(node, name, value, peak, f"the data sheet of the {card.name}"))
            peers = [r[name] for other, r in nodes.items() if other != node and name in r]
            higher_is_better = not name.startswith(("launch", "sync"))
            if len(peers) >= 2 and higher_is_better and value < FAR_BELOW_PEERS * statistics.median(peers):
                complaints.append(Complaint(node, name, value, statistics.median(peers), "the median of its peers"))
    return complaints


def load_readings(path: Path) -> dict[str, float]:
    """Readings saved by `stallwise measure --json`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {str(r["name"]): float(r["value"]) for r in document["readings"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableInput(
            f"{path.name} holds no readings", hint="make it on each node: stallwise measure --json > $(hostname).json"
        ) from error
