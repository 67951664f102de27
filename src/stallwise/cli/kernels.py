"""Rank profiled kernels by the time at stake."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


@click.command(
    epilog="Examples: stallwise kernels details.csv; stallwise kernels report.ncu-rep --json; "
    "stallwise kernels kern_sum.csv triton_sweep.json"
)
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the kernels as JSON.")
@click.option("--all", "wide", is_flag=True, help="Explain healthy kernels too.")
def command(paths: tuple[str, ...], as_json: bool, wide: bool) -> None:
    """Read Nsight Compute, nsys or autotune output and say for each kernel what limits it and what fixing it wins."""
    from stallwise.doctor.examine import diagnose
    from stallwise.errors import UnreadableInput
    from stallwise.render.json import to_dict
    from stallwise.render.kernels import rows_of, to_text

    diagnosis = diagnose(*paths)
    kernels = to_dict(diagnosis).get("kernels", [])
    tuned = [f for f in diagnosis.findings if f.cause in ("fusion-not-worth-it", "autotune-space-too-small")]
    if not kernels and not tuned:
        raise UnreadableInput(
            "no kernel was found in the input", hint="ncu --set full --csv --page details app > details.csv"
        )
    if as_json:
        order = {row.name: place for place, row in enumerate(rows_of(diagnosis))}
        ranked = sorted(kernels, key=lambda entry: order.get(entry["name"], len(order)))
        run = [f for f in to_dict(diagnosis)["findings"] if f["family"] == "kernel"]
        click.echo(json.dumps({"kernels": ranked, "findings": run}, indent=2, ensure_ascii=False))
        return
    if kernels:
        click.echo(to_text(diagnosis, wide=wide))
    for finding in tuned:
        click.echo(f"\n{finding.headline}\n  {finding.summary}".rstrip())
        for reason in finding.because:
            click.echo(f"  because  {reason.text}")
