"""No checkpoint: what saving costs. Saved as is into a scratch file beside the real one's place, which is removed at once."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Callable, Optional

from stallwise.experiment.change import Change, Undo

OFTEN = 3  # saves, so that their distance is known
LONGEST = 64  # steps between two saves that blocks can still hold


class NoCheckpoint(Change):
    """`torch.save` does nothing."""

    name = "no-checkpoint"
    title = "no checkpoint"
    usual = 0.1
    causes = ("checkpoint-stall",)
    removes = True
    needs = "save less often, or in the background (torch.distributed.checkpoint.async_save)"
    risk = "more work is lost when the job dies"
    costly = True  # late, so that saves have been seen by then
    asked_late = True

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.held_off is None:
            return "only a rehearsal can tell"
        if len(scene.saves) < OFTEN:
            return "torch.save was called %d times so far; blocks need %d" % (len(scene.saves), OFTEN)
        if self._interval(scene) > LONGEST:
            return "saves are %d steps apart, blocks are shorter" % self._interval(scene)
        return None

    def _interval(self, scene: Any) -> int:
        steps = sorted(set(scene.saves))
        return max(1, int(steps[-1] - steps[0]) // max(1, len(steps) - 1))

    def block_steps(self, scene: Any, steps: int) -> int:
        """Whole rounds from save to save, so that both sides hold as many."""
        interval = self._interval(scene)
        return -(-steps // interval) * interval

    def begin(self, scene: Any, undo: Undo) -> None:
        """As is, the real thing is done, and its file removed."""
        held = scene.held_off
        before = held.saving
        undo.later(lambda: setattr(held, "saving", before))
        held.saving = _scratch(scene)

    def apply(self, scene: Any, undo: Undo) -> None:
        held = scene.held_off
        before = held.saving
        undo.later(lambda: setattr(held, "saving", before))
        held.saving = None


def _scratch(scene: Any) -> Callable[..., None]:
    def save_and_forget(save: Callable[..., Any], thing: Any, target: Any = None, *args: Any, **kwargs: Any) -> None:
        """The same bytes to the same file system, and away with them."""
        target = kwargs.pop("f", target)
        where = None
        if isinstance(target, (str, os.PathLike)):
            where = os.path.dirname(os.path.abspath(os.fspath(target)))
        try:
            with tempfile.TemporaryDirectory(
                prefix=".stallwise_", dir=where if where and os.path.isdir(where) else None
            ) as folder:
                save(thing, os.path.join(folder, "scratch.pt"), *args, **kwargs)
        except Exception as error:
            scene.failed(error)

    return save_and_forget
