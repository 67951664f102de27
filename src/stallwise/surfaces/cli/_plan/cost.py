"""What a successful training hour costs: failures, checkpoints, restarts, energy."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan cost --gpus 512 --params 70B --storage 20GB/s; "
    "stallwise plan cost --gpus 16384 --model llama-3.1-405b --async --days 54"
)
@click.option("--gpus", default=512, show_default=True, help="GPUs of the job.")
@click.option("--gpu", default="h100", show_default=True, help="Kind of GPU.")
@click.option("--price", type=float, help="Dollars per GPU-hour.")
@click.option("--params", help="Parameters, such as 70B: 14 bytes each are written (bf16 + Adam in fp32).")
@click.option("--model", "model_name", help="Take the parameters from a model.")
@click.option("--checkpoint", help="Size of a checkpoint, such as 980GB.")
@click.option("--storage", default="20GB/s", show_default=True, help="Write bandwidth of all ranks together.")
@click.option("--async", "asynchronous", is_flag=True, help="The step only waits for the copy to host memory.")
@click.option("--interval", help="Time between checkpoints; default: the best.")
@click.option("--mtbf", help="Time between failures of one GPU, such as 50000h.")
@click.option("--restart", default="10min", show_default=True, help="From the restart to the first step.")
@click.option("--detect", default="5min", show_default=True, help="From the failure to the restart.")
@click.option("--days", type=float, default=0.0, help="Useful training time wanted.")
@click.option("--free", help="Free GPUs per block (node, pod), such as 8,8,4,2: how many are stranded?")
@click.option("--block", default=8, show_default=True, help="GPUs a job needs from one block.")
@answer_options
def command(
    gpus: int,
    gpu: str,
    price: float | None,
    params: str | None,
    model_name: str | None,
    checkpoint: str | None,
    storage: str,
    asynchronous: bool,
    interval: str | None,
    mtbf: str | None,
    restart: str,
    detect: str,
    days: float,
    free: str | None,
    block: int,
    out: Output,
) -> None:
    """Goodput and cost per successful training hour of a job that fails now and then."""
    from stallwise.errors import BadRequest
    from stallwise.physics.specs.cluster import cluster_of
    from stallwise.planner.cost import CHECKPOINT_BYTES_PER_PARAM, CostQuestion, answer_cost
    from stallwise.units import Unit, parse

    def seconds(text: str) -> float:
        return parse(text, Unit.SECOND)

    if checkpoint:
        size = parse(checkpoint, Unit.BYTE)
    elif model_name:
        from stallwise.physics.specs.models import find_model

        size = CHECKPOINT_BYTES_PER_PARAM * find_model(model_name).parameters().total
    else:
        size = CHECKPOINT_BYTES_PER_PARAM * parse(params or "70B", Unit.COUNT)
    blocks = [part for part in (free or "").replace(" ", ",").split(",") if part]
    if not all(part.isdecimal() for part in blocks):
        raise BadRequest(f"'{free}' is not a list of GPU counts", hint="8,8,4,2")
    answer = answer_cost(
        CostQuestion(
            cluster_of(gpu, gpus),
            size,
            storage_byte_per_s=parse(storage, Unit.BYTE_PER_S),
            asynchronous=asynchronous,
            interval_s=seconds(interval) if interval else None,
            mtbf_gpu_s=seconds(mtbf) if mtbf else None,
            restart_s=seconds(restart),
            detect_s=seconds(detect),
            useful_s=days * 86400,
            price_dollar=price,
            free_blocks=tuple(map(int, blocks)),
            block=block,
        )
    )
    from stallwise.render.documents.cost import document

    out.give(partial(document, answer), lambda: answer)
