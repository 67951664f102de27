"""Memory of one layout by the byte: each stage, each tensor, and which knob frees how much."""

from __future__ import annotations

from functools import partial

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise plan memory --model llama-3-70b --cluster h100x512 --tp 8 --dp 64 --seq 8192; "
    "stallwise plan memory --model qwen3-8b --cluster 8xh100 --dp 8 --zero 3 --recompute full"
)
@click.option("--model", "name", required=True, help="Catalogue name, config.json, or a folder holding one.")
@click.option("--cluster", "where", required=True, help="Such as h100x512, 8xh200.")
@click.option("--seq", default=4096, show_default=True, help="Tokens per sequence.")
@click.option("--global-batch", type=int, help="Sequences per step; by default 4 microbatches a stage.")
@click.option("--tp", default=1, show_default=True, help="Tensor parallelism.")
@click.option("--pp", default=1, show_default=True, help="Pipeline stages.")
@click.option("--vp", default=1, show_default=True, help="Virtual stages.")
@click.option("--cp", default=1, show_default=True, help="Context parallelism.")
@click.option("--ep", default=1, show_default=True, help="Expert parallelism.")
@click.option("--dp", type=int, help="Data parallelism; by default what is left.")
@click.option("--zero", type=click.IntRange(0, 3), default=1, show_default=True, help="ZeRO stage.")
@click.option("--micro-batch", default=1, show_default=True, help="Sequences per microbatch.")
@click.option(
    "--recompute",
    type=click.Choice(["none", "selective", "operator", "experts", "full"]),
    default="none",
    show_default=True,
)
@click.option("--precision", default="bf16", show_default=True, help="bf16, fp8, pure_bf16, amp (fp32 weights)...")
@click.option("--optimizer", default="adamw", show_default=True, help="adamw, adamw-8bit, lion, muon, sgd...")
@click.option("--schedule", default="1f1b", show_default=True, help="Pipeline schedule.")
@click.option("--recompute-module", "modules", multiple=True, help="Re-run one module: mlp_act, moe, mla_up, mlp...")
@click.option("--lora", default=0, help="Rank of LoRA adapters.")
@click.option("--framework", default="megatron", show_default=True, help="megatron, pytorch, deepspeed, jax...")
@click.option("--grad-dtype", default="", help="Gradients kept in fp32 or bf16; by default the framework's.")
@click.option("--param-dtype", default="", help="Weights kept in bf16, fp8 or fp32; by default the framework's.")
@click.option("--frozen-dtype", default="", help="Weights under adapters: bf16, fp8 or nf4 (QLoRA).")
@click.option("--lora-targets", default="attention", show_default=True, help="Adapters beside attention, or all.")
@click.option("--chunked-loss", is_flag=True, help="Head and loss a slice of tokens at a time (Liger and others).")
@click.option("--offload", default="none", show_default=True, help="none, optimizer, params or activations.")
@click.option("--no-flash", is_flag=True, help="Attention keeps its scores.")
@click.option(
    "--sequence-parallel/--no-sequence-parallel",
    "sequence_parallel",
    default=None,
    help="Split what tensor parallelism leaves whole along the sequence; on by default where TP is above 1.",
)
@answer_options
def command(
    name: str, where: str, seq: int, global_batch: int | None, tp: int, pp: int, vp: int, cp: int, ep: int,
    dp: int | None, zero: int, micro_batch: int, recompute: str, precision: str, optimizer: str, schedule: str,
    modules: tuple[str, ...], lora: int, framework: str, grad_dtype: str, param_dtype: str, frozen_dtype: str,
    lora_targets: str, chunked_loss: bool, offload: str, no_flash: bool,
    sequence_parallel: bool | None, out: Output,
) -> None:  # fmt: skip
    """Does this layout fit, what fills it, what would free it."""
    from stallwise.physics.specs.cluster import find_cluster
    from stallwise.physics.specs.layout import Layout
    from stallwise.physics.specs.model import find_model
    from stallwise.physics.specs.workload import Workload
    from stallwise.planner.ask import layout_recipe
    from stallwise.planner.memory_answer import memory_answer
    from stallwise.render.documents.memory_answer import data, document

    model, cluster = find_model(name), find_cluster(where)
    rest = max(cluster.gpus // max(tp * pp * cp, 1), 1)
    layout = Layout(
        tp=tp, pp=pp, dp=dp or rest, cp=cp, ep=ep, virtual_stages=vp, zero=zero,
        sequence_parallel=tp > 1 if sequence_parallel is None else sequence_parallel and tp > 1,
        micro_batch=micro_batch, recompute=recompute, precision=precision, optimizer=optimizer, schedule=schedule,
        lora_rank=lora, attention="unfused" if no_flash else "", recompute_modules=modules,
        offload=offload,
    )  # fmt: skip
    recipe = layout_recipe(
        layout,
        framework,
        param=param_dtype,
        grad=grad_dtype,
        frozen=frozen_dtype,
        lora_targets=lora_targets,
        chunked_loss=chunked_loss,
    )
    batch = global_batch or 4 * max(pp, 1) * layout.dp * max(micro_batch, 1)
    answer = memory_answer(model, cluster, Workload(seq, batch), layout, recipe)
    out.give(partial(document, answer), partial(data, answer))
