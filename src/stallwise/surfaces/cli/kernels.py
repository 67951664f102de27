"""Rank profiled kernels by the time at stake."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="Examples: stallwise kernels details.csv; stallwise kernels report.ncu-rep --json; "
    "stallwise kernels kern_sum.csv triton_sweep.json"
)
@click.argument("paths", nargs=-1, required=True)
@click.option("--gpu", help="The card, where the files do not name it: draws their roofline.")
@click.option("--all", "wide", is_flag=True, help="Explain kernels with nothing at stake too.")
@answer_options
def command(paths: tuple[str, ...], gpu: str | None, wide: bool, out: Output) -> None:
    """Read Nsight Compute, nsys or autotune output and say for each kernel what limits it and what fixing it wins."""
    from stallwise.doctor.examine import diagnose
    from stallwise.errors import UnreadableInput
    from stallwise.physics.specs.hardware import gpu as known_gpu
    from stallwise.render.documents.kernels import document, rows_of
    from stallwise.render.json import to_dict

    diagnosis = diagnose(*paths, facts=[f"gpu={known_gpu(gpu).name}"] if gpu else ())
    kernels = to_dict(diagnosis).get("kernels", [])
    tuned = [f for f in diagnosis.findings if f.cause in ("fusion-not-worth-it", "autotune-space-too-small")]
    if not kernels and not tuned:
        raise UnreadableInput(
            "no kernel was found in the input", hint="ncu --set full --csv --page details app > details.csv"
        )

    def data() -> dict[str, Any]:
        order = {row.name: place for place, row in enumerate(rows_of(diagnosis))}
        ranked = sorted(kernels, key=lambda entry: order.get(entry["name"], len(order)))
        run = [f for f in to_dict(diagnosis)["findings"] if f["family"] == "kernel"]
        return {"kernels": ranked, "findings": run}

    out.give(partial(document, diagnosis, tuned, wide=wide), data)
