"""Megatron-LM: `pretrain(...)` calls `train_step`; wrap it once: `training.train_step = stallwise_train_step(training.train_step)`."""

from __future__ import annotations

from typing import Any, Callable

from stallwise.recorder import step_boundaries, verbs


def stallwise_train_step(train_step: Callable[..., Any], folder: str = "stallwise_run") -> Callable[..., Any]:
    """The same train_step; every call is one step. Its optimizer may step several inner ones, so borders come from here."""
    verbs.start(folder, auto=True)
    recorder = verbs.recording()
    if recorder is not None:
        recorder.boundaries.lead(step_boundaries.USER)

    def step(*args: Any, **kwargs: Any) -> Any:
        try:
            return train_step(*args, **kwargs)
        finally:
            verbs.step()

    return step
