"""torchtitan: `trainer = stallwise_trainer(trainer)` before `trainer.train()`."""

from __future__ import annotations

from typing import Any

from stallwise.recorder import schema, verbs


def stallwise_trainer(trainer: Any, folder: str = "stallwise_run") -> Any:
    """Times the batch generator and the checkpointer of a torchtitan trainer; the rest is found by the hooks."""
    verbs.start(folder)
    generator = getattr(trainer, "batch_generator", None)
    if generator is not None:

        def timed_batches(*args: Any, **kwargs: Any) -> Any:
            batches = iter(generator(*args, **kwargs))
            while True:
                with verbs.span(schema.BATCH_WAIT):
                    try:
                        batch = next(batches)
                    except StopIteration:
                        return
                yield batch

        trainer.batch_generator = timed_batches
    checkpointer = getattr(trainer, "checkpointer", None)
    save = getattr(checkpointer, "save", None)
    if checkpointer is not None and save is not None:

        def timed_save(*args: Any, **kwargs: Any) -> Any:
            with verbs.span(schema.CHECKPOINT):
                return save(*args, **kwargs)

        checkpointer.save = timed_save
    return trainer
