"""What one card gives a model whole, cut by MIG, or shared by MPS: memory, bandwidth, latency, tokens, price, isolation."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan share --model llama-3.1-8b --gpu h100-sxm; "
    "stallwise plan share --model qwen2.5-1.5b --gpu h200 --by mig --by mps --rate 20 --tpot 30ms"
)
@click.option("--model", "model_name", required=True, help="Catalogue name, config.json, or its folder.")
@click.option("--gpu", "gpu_name", default="h100-sxm", show_default=True, help="Kind of GPU.")
@click.option("--by", multiple=True, help="Only these ways: whole, mig, mps; may be given again.")
@click.option("--isl", type=float, default=1000, show_default=True, help="Tokens of a prompt.")
@click.option("--osl", type=float, default=300, show_default=True, help="Tokens of an answer.")
@click.option("--rate", default="1/s", show_default=True, help="Requests a second, to count cards for.")
@click.option("--ttft", default="1s", show_default=True, help="Target for the first token.")
@click.option("--tpot", default="50ms", show_default=True, help="Target for each later token.")
@click.option("--engine", default="vllm", show_default=True, help="vllm, sglang or trtllm.")
@click.option("--weights", default="bf16", show_default=True, help="Number format: bf16, fp8, int4, fp4.")
@click.option("--kv", default="", help="Number format of the KV cache; unset: as engines choose.")
@answer_options
def command(
    model_name: str,
    gpu_name: str,
    by: tuple[str, ...],
    isl: float,
    osl: float,
    rate: str,
    ttft: str,
    tpot: str,
    engine: str,
    weights: str,
    kv: str,
    out: Output,
) -> None:
    """One card for this model: whole, in the slices of MIG, or shared by MPS; what each gives, costs and keeps apart."""
    from stallwise.physics.specs.deployment import Deployment
    from stallwise.physics.specs.dtype import dtype
    from stallwise.physics.specs.hardware import gpu
    from stallwise.physics.specs.model import find_model
    from stallwise.planner.card_sharing import WAYS, ways
    from stallwise.planner.serving import Question
    from stallwise.render.documents.sharing import data, document
    from stallwise.units import Unit, parse

    card = gpu(gpu_name)
    question = Question(
        find_model(model_name),
        (card,),
        isl,
        osl,
        parse(rate, Unit.PER_S),
        parse(ttft, Unit.SECOND),
        parse(tpot, Unit.SECOND),
        (engine,),
    )
    deployment = Deployment(question.model, card, weights=dtype(weights), kv=dtype(kv) if kv else "", engine=engine)
    found = ways(deployment, question, tuple(dict.fromkeys(w.strip().lower() for w in by)) or WAYS)
    shown = (found, deployment, question)
    out.give(partial(document, *shown), partial(data, *shown))
