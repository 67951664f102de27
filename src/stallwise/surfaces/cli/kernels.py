"""Rank profiled kernels by the time at stake."""

from __future__ import annotations

from typing import Any

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._answer_file import output_option, write_answer


@click.command(
    epilog="Examples: stallwise kernels details.csv; stallwise kernels report.ncu-rep --json; "
    "stallwise kernels kern_sum.csv triton_sweep.json"
)
@click.argument("paths", nargs=-1, required=True)
@click.option("--gpu", help="The card, where the files do not name it: draws their roofline.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print the kernels as JSON.")
@click.option("--all", "wide", is_flag=True, help="Explain kernels with nothing at stake too.")
def command(paths: tuple[str, ...], gpu: str | None, outputs: tuple[str, ...], as_json: bool, wide: bool) -> None:
    """Read Nsight Compute, nsys or autotune output and say for each kernel what limits it and what fixing it wins."""
    from stallwise.doctor.examine import diagnose
    from stallwise.errors import UnreadableInput
    from stallwise.physics.specs.hardware import gpu as known_gpu
    from stallwise.render.answers.kernels import to_html
    from stallwise.render.json import to_dict
    from stallwise.render.kernels import rows_of, to_text, tuned_text

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

    def text() -> str:
        return "\n".join([*([to_text(diagnosis, wide=wide)] if kernels else []), *map(tuned_text, tuned)])

    write_answer(outputs, lambda: to_html(diagnosis, tuned), data, text)
    click.echo(json.dumps(data(), indent=2, ensure_ascii=False) if as_json else text())
