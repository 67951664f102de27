"""Answers for the page and for agents: plain data in, plain data out. Names come from the catalogues, never from paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from stallwise.errors import BadRequest
from stallwise.units import Unit, parse

Body = Mapping[str, Any]
MOST_OPTIONS = 6
MOST_POINTS = 60
MOST_GPUS = 1 << 20


def number(body: Body, key: str, default: float, low: float, high: float) -> float:
    """A number inside its bounds."""
    value = body.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise BadRequest(f"{key} must be a number from {low:g} to {high:g}", hint=f"{key}: {default:g}")
    return float(value)


def whole(body: Body, key: str, default: int, low: int, high: int) -> int:
    """A whole number inside its bounds."""
    value = number(body, key, default, low, high)
    if value != int(value):
        raise BadRequest(f"{key} must be whole", hint=f"{key}: {round(value)}")
    return int(value)


def word(body: Body, key: str, default: str, known: tuple[str, ...] | list[str] = ()) -> str:
    """A word, one of those known where a list is given."""
    value = body.get(key, default)
    if not isinstance(value, str) or len(value) > 200:
        raise BadRequest(f"{key} must be a short text", hint=f"{key}: {default}")
    if known and value not in known:
        from difflib import get_close_matches

        close = get_close_matches(value, known, n=3) or list(known)[:6]
        raise BadRequest(f"{key} '{value[:60]}' is not known", hint=f"one of: {', '.join(close)}")
    return value


@lru_cache(maxsize=1)
def catalog() -> dict[str, Any]:
    """What can be chosen."""
    from stallwise.physics.sim.schedules import all_schedules
    from stallwise.physics.specs.hardware import all_gpus
    from stallwise.physics.specs.models import model_names

    return {
        "models": sorted(model_names()),
        "gpus": [{"name": g.name, "title": g.title} for g in all_gpus()],
        "schedules": [{"name": n, "title": m.TITLE} for n, m in all_schedules().items()],
        "engines": ["vllm", "sglang", "trtllm"],
    }


@lru_cache(maxsize=64)
def _model(name: str) -> Any:
    from stallwise.physics.specs.model import find_model

    if name not in catalog()["models"]:  # a path would read any file of this machine
        word({"model": name}, "model", "llama-3-70b", catalog()["models"])
    return find_model(name)


@lru_cache(maxsize=64)
def _cluster(gpu: str, gpus: int) -> Any:
    from stallwise.physics.specs.cluster import cluster_of

    return cluster_of(word({"gpu": gpu}, "gpu", "h100-sxm", [g["name"] for g in catalog()["gpus"]]), gpus)


def layout(body: Body) -> dict[str, Any]:
    """One layout of a model on a cluster: seconds, interval, memory; quick enough for sliders."""
    from stallwise.physics.costs.grid import grid_of
    from stallwise.physics.specs.layout import Layout
    from stallwise.physics.specs.recipe import Recipe
    from stallwise.physics.specs.recipe_text import usual_states
    from stallwise.physics.specs.workload import Workload
    from stallwise.planner.ask import PRECISIONS, check_axes, check_precision
    from stallwise.planner.search import USABLE_SHARE, candidates
    from stallwise.planner.space import Fixed
    from stallwise.planner.standing import standing_of

    model = _model(word(body, "model", "llama-3-70b"))
    gpus = whole(body, "gpus", 512, 1, MOST_GPUS)
    cluster = _cluster(word(body, "gpu", "h100-sxm"), gpus)
    axes = {key: whole(body, key, 1, 1, 4096) for key in ("tp", "pp", "cp", "ep", "vp")}
    precision = word(body, "precision", "bf16", PRECISIONS)
    used = axes["tp"] * axes["pp"] * axes["cp"]
    if used > gpus:
        raise BadRequest(f"TP x PP x CP = {used} is more than {gpus} GPUs", hint="lower one of them")
    check_axes(
        model, Fixed(tp=axes["tp"], pp=axes["pp"], cp=axes["cp"], ep=axes["ep"] if axes["ep"] > 1 else None), gpus
    )
    dp = gpus // used
    if axes["ep"] > axes["tp"] * axes["cp"] * dp:
        raise BadRequest(f"EP {axes['ep']} is more than TP x CP x DP = {axes['tp'] * axes['cp'] * dp}", hint="lower it")
    micro = whole(body, "micro_batch", 1, 1, 1024)
    batch = whole(body, "global_batch", 1024, 1, 1 << 24)
    if batch < dp * micro:
        raise BadRequest(
            f"{batch} sequences are too few for DP {dp} x microbatch {micro}", hint=f"at least {dp * micro}"
        )
    chosen = Layout(
        tp=axes["tp"], pp=axes["pp"], cp=axes["cp"], ep=axes["ep"], dp=dp, virtual_stages=axes["vp"] if axes["pp"] > 1 else 1,
        sequence_parallel=axes["tp"] > 1, zero=whole(body, "zero", 1, 0, 3), micro_batch=micro,
        recompute=word(body, "recompute", "none", ("none", "selective", "full")), precision=precision,
    )  # fmt: skip
    workload = Workload(whole(body, "seq", 8192, 1, 1 << 24), batch)
    check_precision(cluster.gpu, precision)
    recipe = Recipe(precision=precision, states=usual_states(Recipe.framework, precision))
    found = candidates(model, cluster, workload, grid_of([chosen], workload), recipe)[0]
    answers = standing_of(model, cluster, workload, recipe).in_seconds(found.seconds)
    return {
        **_candidate(found),
        "answers": [asdict(answer) for answer in answers],
        "dp": dp,
        "room_bytes": USABLE_SHARE * cluster.gpu.memory_bytes,
        "memory_of_gpu_bytes": cluster.gpu.memory_bytes,
    }


def _candidate(found: Any) -> dict[str, Any]:
    answer = asdict(found)
    answer["label"] = found.layout.label
    del answer["layout"]
    return answer


def best_layouts(body: Body) -> dict[str, Any]:
    """The search over all layouts, best first."""
    from stallwise.planner.ask import PRECISIONS, ask_plan

    model, gpu = _model(word(body, "model", "llama-3-70b")), word(body, "gpu", "h100-sxm")
    gpus = whole(body, "gpus", 512, 1, 1 << 17)
    _cluster(gpu, gpus)
    plan = ask_plan(
        model.name if model.name in catalog()["models"] else word(body, "model", "llama-3-70b"),
        f"{gpus}x{gpu}",
        seq=whole(body, "seq", 8192, 1, 1 << 24),
        global_batch=whole(body, "global_batch", 1024, 1, 1 << 24),
        precision=word(body, "precision", "bf16", PRECISIONS),
        top=MOST_OPTIONS,
    )
    return {
        "considered": plan.considered,
        "feasible": plan.feasible,
        "best": [{**_candidate(c), "axes": asdict(c.layout)} for c in plan.best],
        "lost": plan.lost,
    }


def service(body: Body) -> dict[str, Any]:
    """Layouts that hold a latency target at a rate, cheapest first, and the curve of the first."""
    from stallwise.physics.specs.hardware import gpu
    from stallwise.planner.serving import Curve, Question
    from stallwise.planner.serving_check import sized

    name = word(body, "gpu", "h100-sxm", [g["name"] for g in catalog()["gpus"]])
    question = Question(
        _model(word(body, "model", "llama-3.1-70b")),
        (gpu(name),),
        number(body, "isl", 2000, 1, 1e7),
        number(body, "osl", 300, 1, 1e7),
        number(body, "rate", 16, 1e-6, 1e6),
        seconds(body, "ttft", 0.5),
        seconds(body, "tpot", 0.04),
        (word(body, "engine", "vllm", catalog()["engines"]),),
        hit_share=number(body, "prefix_hit", 0.0, 0.0, 0.99),
    )
    sizing, _ = sized(question)
    best = sizing.options[0] if sizing.options else None
    points = Curve(best.deployment, question).points()[:MOST_POINTS] if best else []
    return {
        "tried": sizing.tried,
        "refused": sizing.refused,
        "options": [
            {
                "layout": _deployment(o.deployment),
                "replicas": o.replicas,
                "gpus": o.gpus,
                "ttft_s": o.now.ttft_s,
                "tpot_s": o.now.tpot_s,
                "interval_tpot_s": o.interval[0],
                "interval_ttft_s": o.interval[1],
                "headroom_share": o.headroom_share,
                "dollar_per_hour": o.dollar_per_hour,
                "dollar_per_million_tokens": o.dollar_per_million_tokens(question.osl),
                "limited_by": o.limited_by,
            }
            for o in sizing.options[:MOST_OPTIONS]
        ],
        "curve": [
            {"rate_per_s": p.rate_per_s, "tpot_s": p.tpot_s, "ttft_s": p.ttft_s, "batch": p.batch} for p in points
        ],
    }


def _deployment(found: Any) -> str:
    return str(getattr(found, "label", "") or getattr(found, "title", "") or found)


def seconds(body: Body, key: str, default: float) -> float:
    """A time: seconds, or text such as 40ms."""
    value = body.get(key, default)
    if isinstance(value, str):
        value = parse(value[:40], Unit.SECOND)
    return number({key: value}, key, default, 1e-9, 1e9)


def pipeline(body: Body) -> dict[str, Any]:
    """A schedule simulated and drawn."""
    from stallwise.physics.sim.balance import LayerTimes, Placement, lightest_split, run_split
    from stallwise.physics.sim.schedules import schedule_named
    from stallwise.planner.pipeline import picture
    from stallwise.render.pipeline_svg import to_svg

    devices = whole(body, "stages", 8, 1, 64)
    microbatches = whole(body, "microbatches", 32, 1, 256)
    if devices * microbatches > 4096:
        raise BadRequest("that picture would have too many boxes", hint="stages x microbatches up to 4096")
    module = schedule_named(word(body, "schedule", "1f1b", [s["name"] for s in catalog()["schedules"]]))
    chunks = module.CHUNKS or whole(body, "chunks", 2, 2, 16)
    layer = LayerTimes(
        1e-3, 1e-3 * number(body, "input_grad", 1.0, 0.0, 10.0), 1e-3 * number(body, "weight_grad", 0.9, 0.0, 10.0),
        head_layers=number(body, "head_layers", 0.0, 0.0, 100.0), p2p_s=1e-3 * number(body, "p2p", 0.0, 0.0, 100.0),
    )  # fmt: skip
    place = Placement(module, devices, microbatches, chunks)
    layers = max(whole(body, "layers", 0, 0, 1024), place.stages)
    run = run_split(lightest_split(layers, place.stages, layer), layer, place)
    svg = to_svg(picture(run), run.step_s, title=f"{module.TITLE}, {devices} stages, {microbatches} microbatches")
    return {
        "schedule": module.TITLE,
        "chunks": chunks,
        "step_forwards": run.step_s / 1e-3,
        "bubble_step_share": run.bubble_step_share,
        "bubble_useful_ratio": run.bubble_useful_ratio,
        "held_microbatches": list(run.held_peak),
        "svg": svg,
    }
