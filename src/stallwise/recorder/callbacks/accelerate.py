"""Accelerate: `stallwise_prepare(accelerator)` once after creating it; collectives of the accelerator count as sync."""

from __future__ import annotations

from typing import Any

from stallwise.recorder import schema, verbs


def stallwise_prepare(accelerator: Any, folder: str = "stallwise_run") -> Any:
    """Starts recording and times the accelerator's own waits; returns the accelerator."""
    verbs.start(folder)
    for name, stage in (
        ("wait_for_everyone", schema.GRADIENT_SYNC),
        ("gather", schema.GRADIENT_SYNC),
        ("gather_for_metrics", schema.GRADIENT_SYNC),
        ("reduce", schema.GRADIENT_SYNC),
        ("save_state", schema.CHECKPOINT),
    ):
        call = getattr(accelerator, name, None)
        if call is not None:
            setattr(accelerator, name, _timed(call, stage))
    return accelerator


def _timed(call: Any, stage: str) -> Any:
    def timed(*args: Any, **kwargs: Any) -> Any:
        with verbs.span(stage):
            return call(*args, **kwargs)

    return timed
