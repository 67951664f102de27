"""From a seed to an incident: 1 to 8 are the classic scenarios, every other number is generated."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from stallwise.doctor.catalogue import families
from stallwise.drill.incident import Exhibit, Incident, Plot, exhibit
from stallwise.drill.papers import gpu_state
from stallwise.drill.papers.dice import Dice
from stallwise.drill.papers.training import smooth_loss
from stallwise.drill.scenarios import authors
from stallwise.errors import BadRequest

CLASSICS = 8


@cache
def incident(seed: int) -> Incident:
    """The incident of this seed, the same everywhere."""
    if seed < 1:
        raise BadRequest(
            f"there is no incident {seed}", hint="1 to 8 are the classic ones; any larger number makes one"
        )
    return _classic(seed) if seed <= CLASSICS else _generated(seed)


def _generated(seed: int) -> Incident:
    dice = Dice(seed)
    cause = dice.pick(*authors())
    plot = dice.pick(*authors()[cause])(dice)
    papers = (*plot.exhibits, *_herrings(dice, plot))
    return Incident(seed, cause, families()[cause], plot.setup, papers, plot.also)


def _herrings(dice: Dice, plot: Plot) -> list[Exhibit]:
    """Papers of a healthy machine, some with a feature that tempts; never of a kind that the plot already has."""
    have = {e.kind for e in plot.exhibits}
    spare = {
        "gpu-state": lambda: exhibit("gpu-state", "nvidia_smi.csv", gpu_state.healthy_smi(dice, plot.gpu_use), False),
        "kernel-log": lambda: exhibit("kernel-log", "dmesg.txt", gpu_state.quiet_kernel_log(dice), False),
    }
    # A loss curve belongs to training, and a second log of the same run would have to agree with the first.
    if not have & {"train-log", "engine-log", "oom-message", "bench", "ncu"}:
        spare["loss-curve"] = lambda: exhibit("loss-curve", "loss.csv", smooth_loss(dice), False)
    return [spare[kind]() for kind in dice.some([k for k in spare if k not in have], 2)]


def _classic(number: int) -> Incident:
    folder = files("stallwise.drill.scenarios") / "data"
    told = tomllib.loads((folder / "classics.toml").read_text(encoding="utf-8"))[str(number)]
    case, deciding = ((folder / f"{number}_{part}.toml").read_bytes() for part in ("case", "deciding"))
    papers = (Exhibit("case", "case.toml", case, False), Exhibit(told["artifact"], told["file"], deciding))
    cause = told["cause"]
    return Incident(number, cause, families()[cause], told["setup"], papers, (), told["title"])
