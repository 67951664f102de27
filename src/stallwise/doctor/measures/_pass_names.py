"""Passes that programs name: schedules of torch.distributed.pipelining, and the words people and frameworks use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stallwise.evidence.operations import UNKNOWN, Work

# "PP:3F12": virtual stage, action, microbatch.
_ACTION = re.compile(r"^PP:(\d+)(F|B|I|W)(\d+)$")
_ACTIONS = {"F": Work.FORWARD, "B": Work.BACKWARD, "I": Work.BACKWARD, "W": Work.WEIGHT_GRAD}
_WORDS = re.compile(
    r"^(?:(forward|fwd)|(backward|bwd))(?:[ _-]?(?:pass|step|compute|micro[ _-]?(?:step|batch)|mb))?[ _#:-]*(\d+)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Named:
    """What the name of a pass tells."""

    work: Work
    virtual_stage: int = UNKNOWN
    microbatch: int = UNKNOWN


@lru_cache(maxsize=4096)
def pass_named(name: str) -> Named | None:
    """The pass that a range is, by its name."""
    if action := _ACTION.match(name):
        return Named(_ACTIONS[action[2]], int(action[1]), int(action[3]))
    if words := _WORDS.match(name):
        return Named(Work.FORWARD if words[1] else Work.BACKWARD, microbatch=int(words[3]) if words[3] else UNKNOWN)
    return None
