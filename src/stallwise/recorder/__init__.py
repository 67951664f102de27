"""Inside the user's job: four verbs, standard library only, and nothing at all when off.

    import stallwise
    stallwise.start("run/")                 # or run the script under `stallwise run --`
    for batch in stallwise.steps(loader):   # each pass is a step; the wait for the batch is timed
        with stallwise.span("forward"):
            loss = model(batch)
        stallwise.gauge("loss_scale", scale)

Whatever goes wrong in here, the job goes on as without us. Old Pythons down to 3.9 are tolerated in this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stallwise.recorder.verbs import gauge, mark, recording, span, start, step, steps, stop

__all__ = ["gauge", "mark", "recording", "span", "start", "step", "steps", "stop"]


def __getattr__(name: str) -> Any:
    """Loads the verbs at the first use of one, all at once. Then goes: beside a `__getattr__` every use would take a third longer."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stallwise.recorder import verbs

    found = {verb: getattr(verbs, verb) for verb in __all__}
    globals().update(found)
    globals().pop("__getattr__", None)
    return found[name]
