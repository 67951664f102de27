"""Lightning: `Trainer(callbacks=[StallwiseCallback()])`. Stages come from the hooks; saves and epochs from here."""

from __future__ import annotations

from typing import Any

from stallwise.recorder import verbs

try:
    from lightning.pytorch.callbacks import Callback as _Parent
except Exception:
    try:
        from pytorch_lightning.callbacks import Callback as _Parent
    except Exception:

        class _Parent:  # type: ignore[no-redef]
            """Stands in for Lightning's Callback."""


class StallwiseCallback(_Parent):  # type: ignore[misc]
    """Records stages and marks validation, epochs and checkpoints."""

    def __init__(self, folder: str = "stallwise_run") -> None:
        super().__init__()
        self._folder = folder

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Starts recording."""
        verbs.start(self._folder)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        """Marks an epoch."""
        verbs.mark("epoch", str(getattr(trainer, "current_epoch", "")))

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        """Marks a validation."""
        verbs.mark("evaluate", "step %s" % getattr(trainer, "global_step", "?"))

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        """Marks a checkpoint."""
        verbs.mark("save", "step %s" % getattr(trainer, "global_step", "?"))

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """Closes the file."""
        verbs.stop()
