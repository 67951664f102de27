"""Which GPUs and layouts hold a latency target at a rate, and what they cost."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Example: stallwise plan serve --model llama-3.1-70b --gpu h100-sxm --isl 2000 --osl 300 --rate 16 --ttft 500ms --tpot 40ms"
)
@click.option("--model", "model_name", required=True, help="Catalogue name, config.json, or its folder.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    default=("h100-sxm",),
    show_default=True,
    help="Kind of GPU; several with commas, or given again.",
)
@click.option("--isl", type=float, default=1000, show_default=True, help="Tokens of a prompt.")
@click.option("--osl", type=float, default=300, show_default=True, help="Tokens of an answer.")
@click.option("--rate", default="1/s", show_default=True, help="Requests a second.")
@click.option("--ttft", default="1s", show_default=True, help="Target for the first token.")
@click.option("--tpot", default="50ms", show_default=True, help="Target for each later token.")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    default=("vllm",),
    show_default=True,
    help="vllm, sglang or trtllm; may be given again.",
)
@click.option("--weights", multiple=True, help="Only these number formats: bf16, fp8, int4, fp4.")
@click.option("--kv", multiple=True, help="Only these formats of the KV cache: bf16, fp8.")
@click.option("--prefix-hit", default="0%", show_default=True, help="Share of a prompt that is cached.")
@click.option("--headroom", default="10%", show_default=True, help="Capacity to keep beyond the rate.")
@click.option("--max-gpus", default=1024, show_default=True, help="No more than this.")
@click.option(
    "--engine-version", default="", help="Its release, for example 0.11.0; unset: not known, and intervals are wider."
)
@click.option(
    "--sort",
    default="price",
    show_default=True,
    help="Order of the options: price, gpus, latency, ttft, tpot or headroom.",
)
@click.option("--no-simulation", is_flag=True, help="Skip the simulated check: sized for the mean request.")
@answer_options
def command(
    model_name: str,
    gpus: tuple[str, ...],
    isl: float,
    osl: float,
    rate: str,
    ttft: str,
    tpot: str,
    engines: tuple[str, ...],
    weights: tuple[str, ...],
    kv: tuple[str, ...],
    prefix_hit: str,
    headroom: str,
    max_gpus: int,
    engine_version: str,
    sort: str,
    no_simulation: bool,
    out: Output,
) -> None:
    """Layouts that hold the target, cheapest (or as --sort asks) first, why the cheaper fail, and what would change it."""
    from stallwise.physics.specs.dtype import dtype
    from stallwise.physics.specs.hardware import gpu
    from stallwise.physics.specs.model import find_model
    from stallwise.planner.card_sharing import share_card
    from stallwise.planner.serving import Curve, Question, what_if
    from stallwise.planner.serving_check import sized
    from stallwise.progress import shown
    from stallwise.render.documents.sizing import data, document
    from stallwise.units import Unit, parse

    question = Question(
        find_model(model_name),
        tuple(gpu(name) for given in gpus for name in given.split(",")),
        isl,
        osl,
        parse(rate, Unit.PER_S),
        parse(ttft, Unit.SECOND),
        parse(tpot, Unit.SECOND),
        tuple(engines),
        tuple(dtype(w) for w in weights),
        tuple(dtype(k) for k in kv),
        max_gpus,
        parse(prefix_hit, Unit.SHARE),
        parse(headroom, Unit.SHARE),
        sort.strip().lower(),
        engine_version,
    )
    sizing, checked = sized(question, simulated=not no_simulation)
    best = sizing.options[0] if sizing.options else None
    curve = Curve(best.deployment, question).points() if best else []
    sharing = share_card(best, question) if best else []
    changes = []
    others = list(what_if(question)) if best else []
    for what, other in shown(others, len(others), "sizing what would change it", "services"):
        changed, _ = sized(other, simulated=not no_simulation)
        changes.append((what, next(iter(changed.options), None)))
    answer = (sizing, curve, checked, sharing, changes)
    out.give(partial(document, *answer), partial(data, *answer))
