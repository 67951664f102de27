"""The answer to "what is my pipeline bubble made of": the schedule simulated, taken apart, compared, re-split."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

from stallwise.errors import BadRequest, StallwiseError
from stallwise.physics.sim.balance import LayerTimes, Placement, lightest_split, run_split
from stallwise.physics.sim.bubble import BubbleCategory, category, formula_share, step_to_useful, useful_to_step
from stallwise.physics.sim.pipeline import PipelineRun
from stallwise.physics.sim.schedules import all_schedules, schedule_named
from stallwise.physics.specs.model import Model

EMBEDDING_LAYERS = 0.05  # a lookup and its scatter: memory traffic of one hidden vector per token, no product
MOST_MICROBATCHES = 4096  # beyond this a picture or a search of minutes helps nobody
MOST_STAGES = 512


@dataclass(frozen=True, slots=True)
class Question:
    """A pipeline as a user describes it; times are per layer and microbatch."""

    devices: int
    microbatches: int
    schedule: str = "1f1b"
    chunks: int = 1
    layers: int = 0  # 0: one per virtual stage
    forward_s: float = 1e-3
    input_grad_ratio: float = 1.0  # of the forward: the same products once
    weight_grad_ratio: float = 0.9  # the products without attention
    embedding_layers: float = 0.0
    head_layers: float = 0.0
    recompute: bool = False
    recompute_stages: tuple[int, ...] = ()  # virtual stages that recompute; none: all of them
    p2p_s: float = 0.0
    split: tuple[int, ...] = ()
    measured_share: float | None = None
    measured_of: str = "step"  # or "useful"


def head_layers(model: Model, seq: int) -> float:
    """What the output head weighs in layers of this model: its product against a layer's products and attention."""
    head = 2.0 * model.hidden * model.vocab
    shares = [
        n * (2.0 * (model.attention_params(a) + model.active_mlp_params(m)) + 2.0 * seq * model.q_dim)
        for a, m, n in model.kinds  # causal attention: half of 4 s d per token
    ]
    return head / (sum(shares) / model.layers)


def answer_pipeline(question: Question) -> dict[str, Any]:
    """Everything `stallwise plan pipeline` says, as plain data."""
    _check(question)
    module = schedule_named(question.schedule)
    chunks = module.CHUNKS or max(question.chunks, 2)
    place = Placement(module, question.devices, question.microbatches, chunks)
    layers = question.layers or place.stages
    if any(stage >= place.stages for stage in question.recompute_stages):
        raise BadRequest(
            f"there is no virtual stage {max(question.recompute_stages)}", hint=f"from 0 to {place.stages - 1}"
        )
    layer = _layer(question)
    measured = question.measured_share
    if measured is not None and question.measured_of == "useful":
        measured = useful_to_step(measured)
    found = category(layers, layer, place, split=question.split or None, measured_share=measured)
    run = found.run
    if not isfinite(run.step_s):
        raise BadRequest("a step without end has no bubble", hint="times and weights in layers that a GPU could have")
    return {
        "schedule": module.TITLE,
        "devices": question.devices,
        "microbatches": question.microbatches,
        "chunks": chunks,
        "layers": layers,
        "step_s": run.step_s,
        "bubble_step_share": run.bubble_step_share,
        "bubble_useful_ratio": run.bubble_useful_ratio,
        "bubble_own_span_share": run.own_span_share,
        "held_microbatches": list(run.held_peak),
        "formulas": _formulas(question, chunks, module.CHUNKS is None),
        "effects": [asdict(e) for e in found.effects],
        "modelled_share": found.modelled_share,
        "measured_share": found.measured_share,
        "measured_useful_ratio": None if measured is None else step_to_useful(measured),
        "unexplained_share": found.unexplained_share,
        "needed": [asdict(n) for n in found.needed],
        "split": list(found.split),
        "best_split": list(found.best),
        "best_split_share": found.best_share,
        "best_split_step_ratio": found.best_step_ratio,
        "alternatives": _alternatives(question, layers, layer, found),
        "picture": picture(run),
    }


def _check(question: Question) -> None:
    if not 1 <= question.devices <= MOST_STAGES:
        raise BadRequest(f"{question.devices} pipeline stages cannot be", hint=f"from 1 to {MOST_STAGES}")
    if not 1 <= question.microbatches <= MOST_MICROBATCHES:
        raise BadRequest(f"{question.microbatches} microbatches cannot be", hint=f"from 1 to {MOST_MICROBATCHES}")
    if question.chunks < 1:
        raise BadRequest("a device needs at least one chunk of the model", hint="--virtual 2")
    if question.forward_s <= 0 or question.p2p_s < 0:
        raise BadRequest("pass times must be above zero", hint="--forward 10ms --p2p 0.3ms")
    if question.measured_of not in ("step", "useful"):
        raise BadRequest(f"a bubble is a share of the step or of useful time, not of '{question.measured_of}'")


def _layer(question: Question) -> LayerTimes:
    return LayerTimes(
        question.forward_s,
        question.forward_s * question.input_grad_ratio,
        question.forward_s * question.weight_grad_ratio,
        embedding_layers=question.embedding_layers,
        head_layers=question.head_layers,
        recompute=question.recompute or bool(question.recompute_stages),
        recompute_stages=question.recompute_stages,
        p2p_s=question.p2p_s,
    )


def _formulas(question: Question, chunks: int, interleaved: bool) -> dict[str, float]:
    """The folk figures, each by the name of what it divides by."""
    p, m = question.devices, question.microbatches
    formulas = {
        "(p-1)/m, of useful time": (p - 1) / m,
        "(p-1)/(m+p-1), of the step": formula_share(p, m),
    }
    if interleaved:
        formulas["(p-1)/(v m), of useful time"] = (p - 1) / (chunks * m)
        formulas["the same, of the step"] = formula_share(p, m, chunks)
    return formulas


def _alternatives(question: Question, layers: int, layer: LayerTimes, found: BubbleCategory) -> list[dict[str, Any]]:
    """Every schedule that can run here, on its most even split, quickest first."""
    rows = []
    for name, module in all_schedules().items():
        for chunks in _chunk_choices(module.CHUNKS, layers, question):
            place = Placement(module, question.devices, question.microbatches, chunks)
            try:
                # Which of other virtual stages would recompute nobody said: all, as far as any does.
                step_s, work_s, held = _step(layers, replace(layer, recompute_stages=()), place)
            except StallwiseError:
                continue
            rows.append(
                {
                    "schedule": module.TITLE,
                    "name": name,
                    "chunks": chunks,
                    "step_ratio": step_s / found.run.step_s if found.run.step_s else 1.0,
                    "bubble_step_share": 1 - work_s / (step_s * question.devices) if step_s else 0.0,
                    "held_microbatches": held,
                }
            )
    return sorted(rows, key=lambda row: row["step_ratio"])


def _step(layers: int, layer: LayerTimes, place: Placement) -> tuple[float, float, float]:
    """Step and busy seconds and activations held; a long steady state is continued in a straight line."""
    split = lightest_split(layers, place.stages, layer)
    p, m = place.devices, place.microbatches
    few, more = 4 * p, 6 * p
    long = m > more and place.schedule.NAME != "gpipe" and (place.schedule.CHUNKS is not None or m % p == 0)
    if not long:
        run = run_split(split, layer, place)
        return run.step_s, sum(run.busy_s), max(run.held_peak)
    first, second = (run_split(split, layer, replace(place, microbatches=n)) for n in (few, more))
    slope = (m - more) / (more - few)
    step_s = second.step_s + slope * (second.step_s - first.step_s)
    return step_s, sum(second.busy_s) * m / more, max(second.held_peak)


def _chunk_choices(fixed: int | None, layers: int, question: Question) -> list[int]:
    if fixed is not None:
        return [fixed]
    per_device = layers // question.devices
    return [v for v in (2, 3, 4, 5, 6, 8) if v <= per_device]


def picture(run: PipelineRun) -> list[list[dict[str, Any]]]:
    """The schedule as boxes per device, for renderers."""
    return [
        [
            {
                "start_s": item.start_s,
                "end_s": item.end_s,
                "passes": [{"kind": op.kind.value, "microbatch": op.microbatch, "stage": op.stage} for op in item.slot],
            }
            for item in device
        ]
        for device in run.devices
    ]


def with_model(question: Question, model: Model, seq: int) -> Question:
    """Layers, head and embedding from a model."""
    return replace(
        question, layers=model.layers, head_layers=head_layers(model, seq), embedding_layers=EMBEDDING_LAYERS
    )
