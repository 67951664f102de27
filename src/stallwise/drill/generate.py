"""From a seed to an incident: 1 to 8 are the classic scenarios, every other number is generated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from stallwise.doctor.catalogue import families
from stallwise.drill.artifacts import background, gpu_state
from stallwise.drill.artifacts.logs import smooth_loss
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.candidates import WEIGHED
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.account import account_of, classic
from stallwise.drill.incident import CLASSICS, Exhibit, Incident, Plot, exhibit
from stallwise.drill.scenarios import authors
from stallwise.drill.scenarios._classic_exhibits import EXHIBITS
from stallwise.errors import BadRequest

NEVER_DISAGREES = ("changes", "note", "kernel-log", "host-profile")


@cache
def incident(seed: int) -> Incident:
    """The incident of this seed, the same everywhere."""
    if seed < 1:
        raise BadRequest(
            f"there is no incident {seed}", hint="1 to 8 are the classic ones; any larger number makes one"
        )
    return _classic(seed) if seed <= CLASSICS else _generated(seed)


def _generated(seed: int) -> Incident:
    rng = Rng(seed)
    cause = rng.pick(*authors())
    return incident_of(seed, cause, rng.pick(*authors()[cause])(rng), rng)


def incident_of(seed: int, cause: str, plot: Plot, rng: Rng) -> Incident:
    """A plot among exhibits that settle nothing, one of them a note that blames something else."""
    planted = (cause, *plot.also)
    blamable = [
        c for c in cause_profiles() if c not in planted and not any(c in cause_profiles()[p].near for p in planted)
    ]
    rumoured = rng.pick(*(c for c in blamable if families()[c] in WEIGHED[families()[cause]] and c != "none"))
    more = _background(rng, {e.kind for e in plot.exhibits}, plot.gpu_use, cause_profiles()[rumoured].says)
    all_exhibits = (*plot.exhibits, *(e for e in more if not plot.source or e.kind in NEVER_DISAGREES))
    family, number, also = families()[cause], plot.number, plot.also
    return Incident(seed, cause, family, plot.setup, all_exhibits, number, also, "", plot.source, (cause,), rumoured)


def _background(rng: Rng, have: set[str], gpu_use: int, rumoured: str) -> list[Exhibit]:
    """Exhibits of a healthy machine, some with a feature that tempts; never of a kind that the plot already has."""
    spare: dict[str, Callable[[], Exhibit]] = {
        "gpu-state": lambda: exhibit("gpu-state", "nvidia_smi.csv", gpu_state.healthy_smi(rng, gpu_use), False),
        "kernel-log": lambda: exhibit("kernel-log", "dmesg.txt", gpu_state.quiet_kernel_log(rng), False),
        "changes": lambda: exhibit("changes", "git_log.txt", background.changes(rng), False),
        "note": lambda: Exhibit("note", "note.txt", background.note(rng, rumoured).encode(), False, True),
        "host-profile": lambda: exhibit("host-profile", "top.txt", background.host(rng), False),
        "topology": lambda: exhibit("topology", "topo.txt", background.topology(), False),
    }
    # A loss curve belongs to training, and a second log of the same run would have to agree with the first.
    if not have & {"train-log", "engine-log", "oom-message", "bench", "ncu"}:
        spare["loss-curve"] = lambda: exhibit("loss-curve", "loss.csv", smooth_loss(rng), False)
    return [make() for kind, make in spare.items() if kind not in have]


def _classic(number: int) -> Incident:
    row, rng = classic(number), Rng(number)
    started = [row["launch"]] if "launch" in row else []
    exhibits = (*EXHIBITS[number - 1](rng), *(exhibit("case", name, text, False) for name, text in started))
    more = _background(rng, {p.kind for p in exhibits}, 99, cause_profiles()[row["blamed"]].says)
    asked, family = account_of(row).challenges[-1].number, families()[row["cause"]]
    named, accepted = row["title"], tuple(row["accepted"])
    return Incident(
        number, row["cause"], family, row["setup"], (*exhibits, *more), asked, (), named, "", accepted, row["blamed"]
    )
