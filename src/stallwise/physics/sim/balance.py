"""How layers fall on pipeline stages: pass times of an uneven split, and the split that idles least.

The first stage also embeds, the last also holds the head and the loss; counted in layers (a head of 1.2 layers) they
are what makes an even split uneven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from stallwise.errors import BadRequest
from stallwise.physics.sim.pipeline import PassTimes, PipelineRun, run_program


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds of one layer for one microbatch, and what the ends weigh in layers."""

    forward_s: float
    input_grad_s: float
    weight_grad_s: float
    embedding_layers: float = 0.0
    head_layers: float = 0.0
    recompute: bool = False  # the forward runs again before the input gradient (not for the head)
    p2p_s: float = 0.0
    recompute_stages: tuple[int, ...] = ()  # virtual stages that recompute, where not all do

    def recomputes(self, stage: int) -> bool:
        """Whether this virtual stage runs its forward again."""
        return self.recompute and (not self.recompute_stages or stage in self.recompute_stages)


@dataclass(frozen=True, slots=True)
class Placement:
    """Which schedule runs on how many devices."""

    schedule: ModuleType
    devices: int
    microbatches: int
    chunks: int

    @property
    def stages(self) -> int:
        """Virtual stages of the model, which a split must fill."""
        return self.devices if self.schedule.NAME == "dualpipe" else self.devices * self.chunks


def even_split(layers: int, stages: int) -> tuple[int, ...]:
    """As even as whole layers allow, the longer stages in the middle."""
    if layers < stages:
        raise BadRequest(
            f"{layers} layers cannot fill {stages} virtual stages", hint=f"at most {layers} virtual stages"
        )
    base, extra = divmod(layers, stages)
    start = (stages - extra) // 2
    return tuple(base + (start <= s < start + extra) for s in range(stages))


def split_times(split: Sequence[int], layer: LayerTimes, place: Placement) -> PassTimes:
    """Pass times of each virtual stage under a split."""
    last = len(split) - 1
    forward, grad, weight = [], [], []
    for stage, count in enumerate(split):
        ends = (layer.embedding_layers if stage == 0 else 0.0) + (layer.head_layers if stage == last else 0.0)
        again = count * layer.forward_s if layer.recomputes(stage) else 0.0
        forward.append((count + ends) * layer.forward_s)
        grad.append((count + ends) * layer.input_grad_s + again)
        weight.append((count + ends) * layer.weight_grad_s)
    times = PassTimes(tuple(forward), tuple(grad), tuple(weight), p2p_s=layer.p2p_s)
    if place.schedule.NAME == "dualpipe":  # the second copy of the model runs the other way
        times = PassTimes(times.forward_s * 2, times.input_grad_s * 2, times.weight_grad_s * 2, p2p_s=layer.p2p_s)
    return times


def run_split(split: Sequence[int], layer: LayerTimes, place: Placement) -> PipelineRun:
    """The schedule simulated under a split."""
    times = split_times(split, layer, place)
    return run_program(place.schedule.program(place.devices, place.microbatches, place.chunks, times), times)


def best_split(layers: int, layer: LayerTimes, place: Placement) -> tuple[int, ...]:
    """The split with the shortest step: from the smallest possible maximum, single layers move while it helps."""
    stages = place.stages
    split = lightest_split(layers, stages, layer)
    if getattr(place.schedule, "ADAPTS", False):  # it searches its own order for every trial: too slow to search twice
        return split
    best_s = run_split(split, layer, place).step_s
    for _ in range(stages):  # each round moves one layer; the start is already close
        trials = []
        for source, target in _moves(split, layer):
            moved = list(split)
            moved[source] -= 1
            moved[target] += 1
            trials.append((run_split(moved, layer, place).step_s, tuple(moved)))
        step_s, moved_split = min(trials, default=(best_s, split))
        if step_s >= best_s * (1 - 1e-9):
            break
        best_s, split = step_s, moved_split
    return split


def _weights(split: Sequence[int], layer: LayerTimes) -> list[float]:
    last = len(split) - 1
    return [
        count + (layer.embedding_layers if s == 0 else 0) + (layer.head_layers if s == last else 0)
        for s, count in enumerate(split)
    ]


def lightest_split(layers: int, stages: int, layer: LayerTimes) -> tuple[int, ...]:
    """The smallest possible maximum: one layer at a time to the lightest stage; every stage keeps at least one."""
    even_split(layers, stages)  # refuses what cannot be
    split = [1] * stages
    for _ in range(layers - stages):
        weights = _weights(split, layer)
        split[weights.index(min(weights))] += 1
    return tuple(split)


MOVES = 24  # neighbours tried per round: from the heaviest stages to the lightest


def _moves(split: Sequence[int], layer: LayerTimes) -> list[tuple[int, int]]:
    order = sorted(range(len(split)), key=_weights(split, layer).__getitem__)
    width = max(2, int(MOVES**0.5))
    heavy = [s for s in reversed(order) if split[s] > 1][:width]
    return [(a, b) for a in heavy for b in order[:width] if a != b]
