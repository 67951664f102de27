"""What a pipeline bubble should be, what it is made of, and which split or schedule shrinks it."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._files_to_write import FileToWrite, write_file
from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan pipeline --stages 8 --microbatches 32 --schedule interleaved --virtual 2 "
    "--measured 41%; stallwise plan pipeline --stages 16 --microbatches 128 --model llama-3.1-405b --svg schedule.svg"
)
@click.option("--stages", default=8, show_default=True, help="Pipeline stages (devices).")
@click.option("--microbatches", default=32, show_default=True, help="Microbatches per step.")
@click.option(
    "--schedule", default="1f1b", show_default=True, help="gpipe, 1f1b, interleaved, zb-h1, zb-v, dualpipe..."
)
@click.option("--virtual", "chunks", default=2, show_default=True, help="Chunks per device when interleaved.")
@click.option("--model", "model_name", help="Take layers and the weight of the head from a model.")
@click.option("--seq", default=4096, show_default=True, help="Tokens per sequence, for the head's weight.")
@click.option("--layers", default=0, help="Layers in all; default one per virtual stage.")
@click.option("--head-layers", type=float, help="What the head and loss weigh, in layers.")
@click.option("--embedding-layers", type=float, help="What the embedding weighs, in layers.")
@click.option("--forward", default="1ms", show_default=True, help="Forward of one layer and microbatch.")
@click.option("--input-grad", default=1.0, show_default=True, help="Input gradient, as a multiple of the forward.")
@click.option("--weight-grad", default=0.9, show_default=True, help="Weight gradient, as a multiple of the forward.")
@click.option("--recompute", is_flag=True, help="The forward runs again in the backward.")
@click.option("--recompute-stages", help="Only these virtual stages recompute, such as 0,1.")
@click.option("--p2p", default="0s", show_default=True, help="One message between stages.")
@click.option("--split", help="Layers per virtual stage, such as 10,10,10,10.")
@click.option("--measured", help="The bubble you see, such as 41%.")
@click.option("--of", "measured_of", type=click.Choice(["step", "useful"]), default="step", show_default=True)
@click.option("--svg", type=FileToWrite(), help="Also draw the schedule into this file.")
@answer_options
def command(
    stages: int,
    microbatches: int,
    schedule: str,
    chunks: int,
    model_name: str | None,
    seq: int,
    layers: int,
    head_layers: float | None,
    embedding_layers: float | None,
    forward: str,
    input_grad: float,
    weight_grad: float,
    recompute: bool,
    recompute_stages: str | None,
    p2p: str,
    split: str | None,
    measured: str | None,
    measured_of: str,
    svg: str | None,
    out: Output,
) -> None:
    """Simulate a pipeline step and explain its bubble."""
    from dataclasses import replace

    from stallwise.planner.pipeline import Question, answer_pipeline, with_model
    from stallwise.units import Unit, parse

    question = Question(
        devices=stages,
        microbatches=microbatches,
        schedule=schedule,
        chunks=chunks,
        layers=layers,
        forward_s=parse(forward, Unit.SECOND),
        input_grad_ratio=input_grad,
        weight_grad_ratio=weight_grad,
        recompute=recompute,
        p2p_s=parse(p2p, Unit.SECOND),
        measured_share=parse(measured, Unit.SHARE) if measured else None,
        measured_of=measured_of,
    )
    if model_name:
        from stallwise.physics.specs.models import find_model

        question = with_model(question, find_model(model_name), seq)
    if head_layers is not None:
        question = replace(question, head_layers=head_layers)
    if embedding_layers is not None:
        question = replace(question, embedding_layers=embedding_layers)
    if split:
        question = replace(question, split=_counts(split, "layer counts", "10,10,10,10"))
    if recompute_stages:
        question = replace(question, recompute_stages=_counts(recompute_stages, "stages", "0,1"))
    answer = answer_pipeline(question)
    if svg:
        from stallwise.render.pipeline_svg import to_svg

        write_file(svg, to_svg(answer["picture"], answer["step_s"], title=answer["schedule"]))
    from stallwise.render.documents.pipeline import document

    out.give(partial(document, answer), lambda: answer)


def _counts(text: str, what: str, example: str) -> tuple[int, ...]:
    from stallwise.errors import BadRequest

    counts = [c.strip() for c in text.replace(" ", ",").split(",") if c.strip()]
    if not counts or not all(c.isdecimal() for c in counts):
        raise BadRequest(f"'{text}' is not a list of {what}", hint=example)
    return tuple(int(c) for c in counts)
