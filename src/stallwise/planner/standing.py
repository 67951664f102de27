"""How much is known about a cluster, and what the answer is with that much: nothing, its framework and cards, one step.

Each answer is a ratio on the model's own seconds and the half-width that is left. The last one whose ratio is known
stands at the head of a plan; a measured step's ratio is known when it has been measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.physics.costs.published_kin import Kin, kin_of
from stallwise.physics.costs.spread import doubt_of, family_of
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.anchors import Anchor, anchor_for

UNKNOWN = "unknown cluster"
KNOWN = "known framework and card"
BESIDE = "beside a published run of this model"
MEASURED = "after one measured step"


@dataclass(frozen=True)
class Answer:
    """One state of knowledge."""

    name: str
    ratio: float | None  # on the seconds of physics alone; None while nobody has measured
    half_width_ratio: float  # of the 90% interval, up and down
    basis: str


@dataclass(frozen=True)
class AnswerSeconds:
    """An answer in seconds for one layout; None while nobody has measured a step."""

    name: str
    seconds: float | None
    low_s: float | None
    high_s: float | None
    half_width_ratio: float
    basis: str
    taken: bool


@dataclass(frozen=True)
class Standing:
    """All answers to one question."""

    answers: tuple[Answer, ...]
    anchor: Anchor | None = None

    @property
    def taken(self) -> Answer:
        """The answer from the most that is known."""
        return [a for a in self.answers if a.ratio is not None][-1]

    @property
    def ratio(self) -> float:
        """On the seconds of physics alone."""
        return self.taken.ratio or 1.0

    def in_seconds(self, seconds: float, *, picked: float = 1.0) -> list[AnswerSeconds]:
        """Every answer for a layout of so many seconds by the one taken; `picked` raises upper ends."""
        found = []
        for a in self.answers:
            own = None if a.ratio is None else seconds / self.ratio * a.ratio
            low, high = (None, None) if own is None else (own / a.half_width_ratio, own * a.half_width_ratio * picked)
            found.append(AnswerSeconds(a.name, own, low, high, a.half_width_ratio, a.basis, a is self.taken))
        return found


def standing_of(
    model: Model, cluster: Cluster, workload: Workload, recipe: Recipe, *, calibrated: bool = False
) -> Standing:
    """What is known; constants of the user's own make everything but his step irrelevant."""
    measured = doubt_of(model, cluster, recipe, calibrated=True).factor
    if calibrated:
        return Standing((Answer(MEASURED, 1.0, measured, "constants calibrated on a step of this cluster"),))
    answers = [Answer(UNKNOWN, 1.0, doubt_of(model, cluster, recipe).factor, "measured operators and published runs")]
    kin = kin_of(family_of(model, recipe), recipe.framework, cluster.gpu.architecture)
    if kin is not None:
        left = doubt_of(model, cluster, recipe, between=kin.between).factor
        answers.append(Answer(KNOWN, kin.ratio, left, _kin_basis(kin, recipe.framework, cluster.gpu.architecture)))
    anchor = anchor_for(model, cluster, workload, recipe)
    if anchor is not None:
        left = doubt_of(model, cluster, recipe, between=anchor.between, beyond=False).factor
        answers.append(Answer(BESIDE, anchor.shrunk_scale, left, anchor.source))
    answers.append(Answer(MEASURED, None, measured, '--measured "step=...,layout=..."'))
    return Standing(tuple(answers), anchor)


def _kin_basis(kin: Kin, framework: str, architecture: str) -> str:
    who = "one publisher" if len(kin.publishers) == 1 else f"{len(kin.publishers)} publishers"
    return f"{kin.rows} runs of {who} with {framework} on {architecture}: {kin.ratio - 1:+.0%}"
