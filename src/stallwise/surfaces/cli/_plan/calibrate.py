"""Fit the uncertain constants to a run of yours, so that the next prediction is tighter."""

from __future__ import annotations

from functools import partial

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._files_to_write import FileToWrite, write_file
from stallwise.surfaces.cli._output import Output, print_options


@click.command(
    epilog="Examples: stallwise plan calibrate trace.json.gz --model llama-3-8b --cluster 8xh100 --seq 8192 "
    "--global-batch 128 --tp 2 -o mine.json; stallwise plan calibrate --step-time 9.3s --model llama-3-8b --cluster 8xh100 "
    "-o mine.json; stallwise plan train --model llama-3-8b --cluster 8xh100 --constants mine.json   what it is for"
)
@click.argument("run", nargs=-1)
@click.option("--step-time", help="Seconds of a step, where no artifact says it.")
@click.option("--model", "name", required=True, help="Catalogue name or config.json.")
@click.option("--cluster", "where", required=True, help="Such as 8xh100.")
@click.option("--seq", default=4096, show_default=True, help="Tokens per sequence.")
@click.option("--global-batch", default=512, show_default=True, help="Sequences per step.")
@click.option("--tp", default=1, show_default=True)
@click.option("--pp", default=1, show_default=True)
@click.option("--vp", default=1, show_default=True)
@click.option("--cp", default=1, show_default=True)
@click.option("--ep", default=1, show_default=True)
@click.option("--zero", type=click.IntRange(0, 3), default=1, show_default=True)
@click.option("--micro-batch", default=1, show_default=True)
@click.option(
    "--recompute", type=click.Choice(["none", "selective", "experts", "full"]), default="none", show_default=True
)
@click.option("--precision", default="bf16", show_default=True)
@click.option("--style", default="megatron", show_default=True, help="megatron, fsdp or ddp (plain PyTorch).")
@click.option("-o", "--output", type=FileToWrite(), help="Write the constants as JSON.")
@print_options
def command(
    run: tuple[str, ...], step_time: str | None, name: str, where: str, seq: int, global_batch: int, tp: int, pp: int,
    vp: int, cp: int, ep: int, zero: int, micro_batch: int, recompute: str, precision: str, style: str,
    output: str | None, out: Output,
) -> None:  # fmt: skip
    """Read one measured step from RUN (a trace or a log) and move the constants towards it."""
    from stallwise.physics.specs.cluster import find_cluster
    from stallwise.physics.specs.layout import Layout
    from stallwise.physics.specs.model import find_model
    from stallwise.physics.specs.workload import Workload
    from stallwise.planner.calibration import calibration
    from stallwise.surfaces.cli._measured_step import measured_step_s

    seconds, source = measured_step_s(run, step_time)
    cluster = find_cluster(where)
    layout = Layout(
        tp=tp, pp=pp, dp=max(cluster.gpus // max(tp * pp * cp, 1), 1), cp=cp, ep=ep, virtual_stages=vp,
        sequence_parallel=tp > 1, zero=zero, micro_batch=micro_batch, recompute=recompute, precision=precision,
        style=style,
    )  # fmt: skip
    found = calibration(find_model(name), cluster, Workload(seq, global_batch), layout, seconds)
    answer = {"schema": "stallwise.plan.constants/1", "measured_s": seconds, "source": source, **found}
    if output:
        write_file(output, json.dumps(answer, indent=2) + "\n")
    from stallwise.render.documents.calibration import document

    out.show(partial(document, answer, output or ""), lambda: answer)
