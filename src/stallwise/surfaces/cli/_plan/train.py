"""The fastest layout that fits, with its memory, its interval and why the others lost."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan train --model llama-3.1-405b --cluster h100x16384 --seq 8192 --global-batch 2048; "
    "stallwise plan train --model ./config.json --cluster 8xh200 --seq 4096 --global-batch 64 --tp 2 --explain"
)
@click.option("--model", "name", required=True, help="Catalogue name, config.json, or a folder holding one.")
@click.option("--cluster", "where", required=True, help="Such as h100x16384, 512xh200, 2x8xa100.")
@click.option("--seq", default=4096, show_default=True, help="Tokens per sequence.")
@click.option("--global-batch", default="512", show_default=True, help="Sequences per optimizer step.")
@click.option("--tokens", help="Tokens of the whole run, such as 15T: adds its days and price.")
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp16, fp8, mxfp8, nvfp4 or fp32.")
@click.option(
    "--optimizer", default="adamw", show_default=True, help="adamw, adamw-8bit, adafactor, lion, muon, sgd..."
)
@click.option("--lora", default=0, help="Rank of LoRA adapters; 0 trains everything.")
@click.option("--schedule", default="1f1b", show_default=True, help="1f1b, zb-h1, zb-h2, v-half, dualpipe...")
@click.option("--offload", default="none", show_default=True, help="none, optimizer or activations.")
@click.option("--tp", type=int, help="Pin tensor parallelism.")
@click.option("--pp", type=int, help="Pin pipeline stages.")
@click.option("--vp", type=int, help="Pin virtual stages.")
@click.option("--cp", type=int, help="Pin context parallelism.")
@click.option("--ep", type=int, help="Pin expert parallelism.")
@click.option("--dp", type=int, help="Pin data parallelism.")
@click.option("--zero", type=click.IntRange(0, 3), help="Pin the ZeRO stage.")
@click.option("--micro-batch", type=int, help="Pin the microbatch.")
@click.option(
    "--recompute", type=click.Choice(["none", "selective", "operator", "experts", "full"]), help="Pin recomputation."
)
@click.option(
    "--framework", default="megatron", show_default=True, help="megatron, pytorch, deepspeed, jax, paddle, other."
)
@click.option(
    "--release", default=0.0, help="Year of the software, such as 2025.5; expert layers grow faster by the year."
)
@click.option(
    "--attention", default="", help="unfused, fa1, fa2 or fa3 (also cuDNN); by default the newest the card runs."
)
@click.option(
    "--kernels", default="", help="fused (Transformer Engine, torch.compile) or eager; by default the framework's."
)
@click.option("--tp-overlap", default="", help="none, async or ring: how tensor-parallel messages hide.")
@click.option("--scaling", default="", help="8-bit scales: tensorwise, rowwise, blockwise or mx.")
@click.option("--gather", default="layer", show_default=True, help="Sharded weights gathered per layer, pass or step.")
@click.option("--param-dtype", default="", help="Weights kept in bf16, fp8 or fp32; by default the framework's.")
@click.option("--grad-dtype", default="", help="Gradients kept and sent in fp32 or bf16; by default the framework's.")
@click.option("--frozen-dtype", default="", help="Weights under adapters: bf16, fp8 or nf4 (QLoRA).")
@click.option("--lora-targets", default="attention", show_default=True, help="Adapters beside attention, or all.")
@click.option("--chunked-loss", is_flag=True, help="Head and loss a slice of tokens at a time (Liger and others).")
@click.option("--expert-overlap", is_flag=True, help="All-to-all runs beside another microbatch (1F1B with overlap).")
@click.option("--wiring", default="", help="Cards without NVLink: switch, root (one root complex) or sockets.")
@click.option("--peer-access/--no-peer-access", default=None, help="Whether such cards reach each other directly.")
@click.option("--nic", help="Network per GPU, such as 400Gb/s.")
@click.option("--pod", type=int, help="GPUs of one pod; beyond it the network narrows by --oversubscription.")
@click.option("--oversubscription", default=1.0, show_default=True, help="Between pods: 4 leaves a quarter.")
@click.option("--imbalance", default=1.0, show_default=True, help="Busiest expert rank over the mean.")
@click.option("--short", is_flag=True, help="Time a benchmark of a few steps, before clocks settle at the power limit.")
@click.option("--constants", type=click.Path(), help="Constants written by `stallwise plan calibrate`.")
@click.option(
    "--measured", default="", help='A step of yours: "step=9.3s,layout=TP8 PP4x2 ZeRO1 mb1 recompute=selective".'
)
@click.option("--top", default=5, show_default=True, help="Layouts to show.")
@click.option("--smaller", is_flag=True, help="Also plan for a half, a quarter... of the GPUs: time against cost.")
@click.option("--explain", is_flag=True, help="Show the arithmetic line by line.")
@answer_options
def command(
    name: str, where: str, seq: int, global_batch: str, tokens: str | None, out: Output,
    **chosen: object,
) -> None:  # fmt: skip
    """Search every layout of a model on a cluster: does it fit, how fast, which cut."""
    from stallwise.physics.specs.recipe import Recipe
    from stallwise.planner.ask import ask_plan, count
    from stallwise.planner.explain import explain
    from stallwise.render.documents.plan import data, document
    from stallwise.units import Unit, parse

    plan = ask_plan(
        name,
        where,
        seq=seq,
        global_batch=count(global_batch, "--global-batch"),
        tokens=parse(tokens, Unit.TOKEN) if tokens else 0.0,
        **chosen,  # type: ignore[arg-type]
    )
    assert isinstance(plan.recipe, Recipe)
    explained = (
        explain(plan.model, plan.cluster, plan.workload, plan.recipe, plan.best[0]) if chosen["explain"] else None
    )
    out.give(partial(document, plan, explained), partial(data, plan, explained))
