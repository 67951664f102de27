"""Plan before renting: does it fit, how fast, which layout, what does it cost."""

from __future__ import annotations

from pathlib import Path

import click

from stallwise.surfaces.cli import Commands


class PlanCommands(Commands):
    """The sub-commands: one file each in `_plan`."""

    folder = Path(__file__).parent / "_plan"
    package = "stallwise.surfaces.cli._plan"


@click.command(
    cls=PlanCommands,
    epilog="Examples: stallwise plan collective allreduce 2GB --gpus 512; stallwise plan pipeline --stages 8",
)
def command() -> None:
    """Answer planning questions with numbers, intervals and the arithmetic behind them."""
