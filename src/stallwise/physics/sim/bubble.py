"""Why a bubble is larger than the formula: one effect after the other, and how much of each alone would explain it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stallwise.errors import BadRequest
from stallwise.physics.sim.balance import LayerTimes, Placement, best_split, even_split, run_split
from stallwise.physics.sim.pipeline import PipelineRun

MOST = 64.0  # a factor or share beyond this is no explanation


@dataclass(frozen=True, slots=True)
class Effect:
    """The bubble once this effect is added to those before it."""

    name: str
    step_share: float
    added_share: float


@dataclass(frozen=True, slots=True)
class Needed:
    """How large one effect alone would have to be to explain the measured bubble."""

    name: str
    value: float | None  # None: no size of it would do
    meaning: str


@dataclass(frozen=True, slots=True)
class BubbleCategory:
    """A bubble taken apart."""

    effects: tuple[Effect, ...]
    modelled_share: float
    measured_share: float | None
    unexplained_share: float | None
    needed: tuple[Needed, ...]
    split: tuple[int, ...]
    best: tuple[int, ...]
    best_share: float
    best_step_ratio: float  # step time of the best split against the current one
    run: PipelineRun


def useful_to_step(ratio: float) -> float:
    """Idle over useful time, as a share of the whole step: x / (1 + x)."""
    return ratio / (1 + ratio)


def step_to_useful(share: float) -> float:
    """The other way round."""
    if share >= 1:
        raise BadRequest("a bubble of the whole step leaves no work", hint="a share below 100%")
    return share / (1 - share)


def formula_share(devices: int, microbatches: int, chunks: int = 1) -> float:
    """Balanced 1F1B, interleaved over `chunks`: (p-1)/(v m) of useful time, as a share of the step."""
    return useful_to_step((devices - 1) / (chunks * microbatches))


def category(
    layers: int,
    layer: LayerTimes,
    place: Placement,
    *,
    split: tuple[int, ...] | None = None,
    measured_share: float | None = None,
) -> BubbleCategory:
    """Adds uneven stages, recompute and transfers to the ideal, in this order, each simulated."""
    if measured_share is not None and not 0 <= measured_share < 1:
        raise BadRequest(f"a bubble of {measured_share:.0%} of the step cannot be", hint="between 0% and 99%")
    chosen = split or even_split(layers, place.stages)
    if sum(chosen) != layers or len(chosen) != place.stages:
        raise BadRequest(
            f"the split {chosen} does not put {layers} layers on {place.stages} virtual stages",
            hint=f"like {','.join(map(str, even_split(layers, place.stages)))}",
        )
    plain = replace(layer, embedding_layers=0.0, head_layers=0.0, recompute=False, p2p_s=0.0)
    uneven = replace(layer, recompute=False, p2p_s=0.0)
    again = replace(layer, p2p_s=0.0)
    balanced = _balanced(layers, plain, place)
    shares = [("schedule, balanced and without transfers", balanced)]
    shares.append(("uneven split of the layers", run_split(chosen, plain, place).bubble_step_share))
    if layer.embedding_layers or layer.head_layers:
        shares.append(("embedding and head", run_split(chosen, uneven, place).bubble_step_share))
    if layer.recompute:
        some = f"recompute on {len(layer.recompute_stages)} of {place.stages} stages" if layer.recompute_stages else ""
        shares.append((some or "recompute (not of the head)", run_split(chosen, again, place).bubble_step_share))
    run = run_split(chosen, layer, place)
    if layer.p2p_s:
        shares.append(("transfers between stages", run.bubble_step_share))
    effects = []
    before = 0.0
    for name, share in shares:
        effects.append(Effect(name, share, share - before))
        before = share
    best = best_split(layers, layer, place)
    best_run = run_split(best, layer, place)
    modelled = run.bubble_step_share
    return BubbleCategory(
        effects=tuple(effects),
        modelled_share=modelled,
        measured_share=measured_share,
        unexplained_share=None if measured_share is None else measured_share - modelled,
        needed=() if measured_share is None else _needed(layers, layer, place, chosen, measured_share),
        split=chosen,
        best=best,
        best_share=best_run.bubble_step_share,
        best_step_ratio=best_run.step_s / run.step_s if run.step_s else 1.0,
        run=run,
    )


def _balanced(layers: int, layer: LayerTimes, place: Placement) -> float:
    """All virtual stages equal, fractions of a layer allowed."""
    per_stage = layers / place.stages
    scaled = replace(
        layer,
        forward_s=layer.forward_s * per_stage,
        input_grad_s=layer.input_grad_s * per_stage,
        weight_grad_s=layer.weight_grad_s * per_stage,
    )
    return run_split((1,) * place.stages, scaled, place).bubble_step_share


def _needed(
    layers: int, layer: LayerTimes, place: Placement, split: tuple[int, ...], target: float
) -> tuple[Needed, ...]:
    """What each effect alone, on top of everything known, would have to be."""
    layer_s = layer.forward_s + layer.input_grad_s + layer.weight_grad_s + (layer.forward_s if layer.recompute else 0)
    stage_s = layer_s * layers / place.devices

    def slower_last(extra: float) -> float:
        heavier = replace(layer, head_layers=layer.head_layers + extra * split[-1])
        return run_split(split, heavier, place).bubble_step_share

    def slower_transfer(share: float) -> float:
        return run_split(split, replace(layer, p2p_s=layer.p2p_s + share * stage_s), place).bubble_step_share

    extra = _solve(slower_last, target)
    transfer = _solve(slower_transfer, target)
    fewer = _fewer_microbatches(layer, place, split, target)
    return (
        Needed(
            "one slow stage",
            None if extra is None else 1 + extra,
            "times the work of the others on the last virtual stage",
        ),
        Needed(
            "transfers",
            None if transfer is None else transfer * stage_s,
            "seconds more per message between stages",
        ),
        Needed("fewer microbatches", fewer, "microbatches really in flight per step"),
    )


def _solve(bubble: Callable[[float], float], target: float) -> float | None:
    """Smallest value from 0 up that reaches the target; the bubble grows with it."""
    if bubble(0.0) >= target:
        return 0.0
    high = 0.05
    while bubble(high) < target:
        high *= 2
        if high > MOST:
            return None
    low = 0.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if bubble(middle) < target else (low, middle)
    return high


def _fewer_microbatches(layer: LayerTimes, place: Placement, split: tuple[int, ...], target: float) -> float | None:
    step = place.devices if place.schedule.CHUNKS is None else 1
    for count in range(place.microbatches, 0, -step):
        try:
            share = run_split(split, layer, replace(place, microbatches=count)).bubble_step_share
        except BadRequest:
            return None
        if share >= target:
            return float(count)
    return None
