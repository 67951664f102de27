"""Hugging Face Trainer: `Trainer(..., callbacks=[StallwiseCallback()])`.

The Trainer's loop uses PyTorch's own loader, backward and optimizer, so the stages are found by the hooks; the callback
starts the recording and adds what only the Trainer knows: saves, evaluations, epochs, logged numbers.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from stallwise.recorder import verbs

try:
    from transformers import TrainerCallback as _Parent
except Exception:  # not installed: the class still works with anything that calls these methods

    class _Parent:  # type: ignore[no-redef]
        """Stands in for transformers.TrainerCallback."""


class StallwiseCallback(_Parent):  # type: ignore[misc]
    """Records stages, and marks what the Trainer does between steps."""

    def __init__(self, folder: str = "stallwise_run") -> None:
        self._folder = folder

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Starts recording (a no-op under `stallwise run`, which has started already)."""
        verbs.start(self._folder)

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        """Keeps the numbers that the Trainer logs anyway."""
        for name, value in (logs or {}).items():
            verbs.gauge(name, value)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Marks a checkpoint."""
        verbs.mark("save", "global step %s" % getattr(state, "global_step", "?"))

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Marks an evaluation."""
        verbs.mark("evaluate", "global step %s" % getattr(state, "global_step", "?"))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Marks an epoch."""
        verbs.mark("epoch", str(getattr(state, "epoch", "")))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Closes the file."""
        verbs.stop()
