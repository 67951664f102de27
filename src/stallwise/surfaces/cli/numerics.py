"""Find the layers that FP8 would damage on long inputs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from stallwise.surfaces.cli._output import Output, answer_options


@click.command(
    epilog="MODEL.py defines model() -> torch.nn.Module and inputs(length) -> what the model is called with. "
    "Examples: stallwise numerics my_model.py --short 512 --long 32768; stallwise numerics my_model.py --json > layers.json"
)
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--short", default=512, show_default=True, type=click.IntRange(1), help="Length that scales are calibrated on."
)
@click.option(
    "--long",
    "long_",
    multiple=True,
    type=click.IntRange(1),
    help="Lengths to try; default 8 and 64 times the short one.",
)
@click.option("--device", default="", help="cuda, cpu, ...; default: cuda where there is one.")
@click.option("--top", default=20, show_default=True, type=click.IntRange(1), help="Layers to print.")
@answer_options
def command(path: str, short: int, long_: tuple[int, ...], device: str, top: int, out: Output) -> None:
    """Run a model on short and long inputs and rank its layers by FP8 damage and cheapest repair."""
    from stallwise.doctor.fp8_damage import rank_damage
    from stallwise.recorder.layer_ranges import run
    from stallwise.render.documents.numerics import document

    model, inputs = _load(path, device)
    calibration = run(model, inputs(short))
    lengths = long_ or (8 * short, 64 * short)
    results = []
    for length in lengths:
        click.echo(f"running at {length} tokens", err=True)
        results.append((length, rank_damage(calibration, run(model, inputs(length)))))
    rows = [d.to_row(length) for length, damages in results for d in damages]
    out.give(partial(document, short, results, top), lambda: {"calibrated_on": short, "rows": rows})


def _load(path: str, device: str) -> tuple[Any, Any]:
    from runpy import run_path

    from stallwise.errors import BadRequest

    try:
        import torch
    except ImportError:
        raise BadRequest("this needs PyTorch", hint="run it in the environment of your model") from None
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        names = run_path(path, run_name="stallwise_numerics")
    except Exception as error:
        raise BadRequest(
            f"{path} does not run: {type(error).__name__}: {error}", hint="try it with python first"
        ) from error
    finally:
        sys.path.pop(0)
    if not callable(names.get("model")) or not callable(names.get("inputs")):
        raise BadRequest(f"{path} defines no model() and inputs(length)", hint="see stallwise numerics --help")
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    model = names["model"]().to(where)

    def inputs(length: int) -> Any:
        return _moved(names["inputs"](length), where)

    return model, inputs


def _moved(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        return {key: _moved(value, device) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return type(batch)(_moved(value, device) for value in batch)
    return batch.to(device) if hasattr(batch, "to") else batch
