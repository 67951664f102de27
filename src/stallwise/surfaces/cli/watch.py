"""Watch a running job or service: which stage stalls, who is late, what got worse."""

from __future__ import annotations

import click


@click.command(
    epilog="Examples: stallwise watch stallwise_run/; stallwise watch run/ --prometheus 9400; stallwise watch http://HOST:8000/metrics"
)
@click.argument("target")
@click.option("--every", default="2s", show_default=True, help="Time between looks.")
@click.option("--once", is_flag=True, help="Look once and leave.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a look.")
@click.option("--prometheus", type=int, metavar="PORT", help="Also serve the numbers at 127.0.0.1:PORT/metrics.")
@click.option(
    "--to",
    "sinks",
    multiple=True,
    type=click.Choice(["tensorboard", "wandb", "mlflow"]),
    help="Also log scalars there.",
)
@click.option("--flop-per-step", type=float, help="Model FLOP of one step of one rank, for MFU.")
@click.option("--gpu", help="GPU name, for MFU (with --flop-per-step).")
@click.option("--dtype", default="bf16", show_default=True, help="Number type whose dense peak MFU divides by.")
def command(
    target: str,
    every: str,
    once: bool,
    as_json: bool,
    prometheus: int | None,
    sinks: tuple[str, ...],
    flop_per_step: float | None,
    gpu: str | None,
    dtype: str,
) -> None:
    """Watch TARGET: a folder of rank records, or the /metrics address of an LLM server."""
    from stallwise.units import Unit, parse

    every_s = parse(every, Unit.SECOND)
    if target.startswith(("http://", "https://")):
        from stallwise.surfaces.cli._watch_url import watch_url

        watch_url(target, every_s=every_s, once=once, as_json=as_json)
        return
    from stallwise.surfaces.cli._watch_folder import watch_folder

    peak = None
    if flop_per_step is not None:
        from stallwise.physics.specs.hardware import gpu as find

        peak = flop_per_step / find(gpu or "h100-sxm").peak(dtype)
    watch_folder(target, every_s=every_s, once=once, as_json=as_json, port=prometheus, sinks=sinks, ideal_step_s=peak)
