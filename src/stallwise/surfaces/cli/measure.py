"""Measure this machine's real ceilings, or check a fleet before a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from stallwise.render import strict_json as json


@click.group(
    invoke_without_command=True,
    epilog="Examples: stallwise measure; stallwise measure --json > node1.json; stallwise measure preflight *.json",
)
@click.option("--json", "as_json", is_flag=True, help="Print the readings as JSON.")
@click.option("--storage", type=click.Path(file_okay=False), help="Folder that checkpoints would be written to.")
@click.option("--no-save", is_flag=True, help="Do not keep the profile for planner and doctor.")
@click.pass_context
def command(context: click.Context, as_json: bool, storage: str | None, no_save: bool) -> None:
    """Copies, matrix rates, launch and sync cost, host copies and storage, with warm-up, medians and spread.

    Kept for planner and doctor only where the machine was quiet: a load average above its cores, or repeats that differ by
    more than 10%, make it exit with 1 and keep what was known before.
    """
    if context.invoked_subcommand is not None:
        return
    from stallwise.physics.probe.host import probe_host
    from stallwise.physics.probe.profile import save
    from stallwise.physics.probe.steadiness import doubts, load_now
    from stallwise.physics.specs.hardware import find_gpu

    load, cores = load_now()  # before our own work is part of it
    readings = []
    for reading in probe_host(Path(storage) if storage else None):
        readings.append(reading)
        _progress(str(reading), as_json)
    card = None
    torch = _torch()
    if torch is not None and torch.cuda.is_available():
        from stallwise.physics.probe.device import probe_device

        card = find_gpu(torch.cuda.get_device_name(), memory_bytes=torch.cuda.get_device_properties(0).total_memory)
        for reading in probe_device(torch):
            readings.append(reading)
            _progress(str(reading), as_json)
    else:
        click.echo("no GPU seen by torch here: host only", err=True)
    doubtful = doubts(readings, load, cores)
    if as_json:
        document = {"gpu": card.name if card else None, "doubts": doubtful, "readings": [r.to_dict() for r in readings]}
        click.echo(json.dumps(document, indent=2))
    if doubtful:
        verb = "not reliable" if no_save else "not kept"
        click.echo(f"{verb}: {'; '.join(doubtful)}. Measure again when nothing else runs here.", err=True)
        sys.exit(0 if no_save else 1)
    if not no_save:
        click.echo(f"kept in {save(readings, card)}; planner and doctor use it from now on", err=True)


@command.command("preflight", epilog="Example: stallwise measure preflight node1.json node2.json --gpu h100-sxm")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--gpu", help="Kind of GPU (default: what the files say).")
@click.option("--json", "as_json", is_flag=True, help="Print the complaints as JSON.")
def preflight(files: tuple[str, ...], gpu: str | None, as_json: bool) -> None:
    """Compare each node's readings with the catalogue and its peers; exit 1 if a node should not join the run."""
    from stallwise.physics.probe.profile import load_readings
    from stallwise.physics.probe.profile import preflight as check
    from stallwise.physics.specs.hardware import gpu as find

    nodes = {Path(f).stem: load_readings(Path(f)) for f in files}
    name = gpu or next((json.loads(Path(f).read_text(encoding="utf-8")).get("gpu") for f in files), None)
    complaints = check(nodes, find(name) if name else None)
    if as_json:
        click.echo(json.dumps({"nodes": len(nodes), "complaints": [str(c) for c in complaints]}, indent=2))
    else:
        for complaint in complaints:
            click.echo(str(complaint))
        click.echo(f"{len(nodes)} nodes, {len({c.node for c in complaints})} to leave out")
    sys.exit(1 if complaints else 0)


@command.command("loader", epilog="Example: stallwise measure loader train.py --name train_loader --for 20s")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.option("--name", default="loader", show_default=True, help="The loader's name in the script.")
@click.option("--for", "duration", default="10s", show_default=True, help="How long to read.")
@click.option("--json", "as_json", is_flag=True, help="Print the reading as JSON.")
def loader(script: str, name: str, duration: str, as_json: bool) -> None:
    """Import SCRIPT as a module and read its loader as fast as it goes, with nobody computing."""
    import runpy

    from stallwise.errors import BadRequest
    from stallwise.physics.probe.host import loader_rate
    from stallwise.units import Unit, parse

    module = runpy.run_path(script, run_name="stallwise_loader")
    if name not in module:
        raise BadRequest(f"{script} defines no '{name}'", hint="name it: --name train_loader (a module-level loader)")
    reading = loader_rate(module[name], parse(duration, Unit.SECOND))
    click.echo(json.dumps(reading.to_dict()) if as_json else str(reading))


def _progress(line: str, as_json: bool) -> None:
    click.echo(line, err=as_json)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch
