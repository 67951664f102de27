"""Replay a trace without a fault: what the step takes then."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise whatif trace.json.gz; stallwise whatif trace.json.gz --no-input-wait --graphs; "
    "stallwise whatif trace.json.gz --dtype bf16 --fuse --json; stallwise whatif RUN_DIR/ --no-late-rank"
)
@click.argument("trace", type=click.Path(exists=True))
@click.option("--no-input-wait", is_flag=True, help="Every batch is ready when it is asked for.")
@click.option("--no-sync", is_flag=True, help="No synchronisation, no read of single values.")
@click.option("--graphs", is_flag=True, help="Launches are replayed as CUDA or HIP graphs.")
@click.option("--no-allocation", is_flag=True, help="No calls that allocate or free device memory.")
@click.option("--fused-optimizer", is_flag=True, help="The optimizer updates all parameters in a few launches.")
@click.option("--copies-ahead", is_flag=True, help="Batches cross from pinned memory, ahead of their use.")
@click.option("--no-save", is_flag=True, help="Checkpoints are written outside the loop.")
@click.option("--no-host-work", is_flag=True, help="The host does nothing between its operators.")
@click.option("--fuse", is_flag=True, help="Chains of pointwise kernels become one kernel each.")
@click.option("--no-recompute", is_flag=True, help="Activations are kept: the forward pass runs once.")
@click.option("--fused-attention", is_flag=True, help="Attention in one kernel, its scores never written.")
@click.option("--aligned", is_flag=True, help="Dimensions that whole vectors divide.")
@click.option("--channels-last", is_flag=True, help="Pictures with their channels together in memory.")
@click.option("--dtype", type=click.Choice(["bf16", "fp16"]), help="fp32 and TF32 work in 16 bits.")
@click.option(
    "--no-late-rank", is_flag=True, help="The late ranks come with the others; TRACE is a folder of all ranks."
)
@answer_options
def command(trace: str, dtype: str | None, out: Output, **flags: bool) -> None:
    """Replay TRACE with changes, each alone and all together; without options, all that can be tried."""
    from stallwise.doctor.whatif import what_if
    from stallwise.render.documents.what_if import data, document

    changes = [name.replace("_", "-") for name, wanted in flags.items() if wanted] + (["dtype"] if dtype else [])
    answer = what_if(trace, changes)
    out.give(partial(document, answer), partial(data, answer))
