"""The stages of a step, as the recorder inside the job timed them."""

from __future__ import annotations

from stallwise.evidence.capture import Capture
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

RECORD = Capture("stage timers of every rank", "stallwise record --light -- python train.py", "one run, almost no cost")


def _stage(name: str, meaning: str) -> Quantity:
    return Quantity(f"stage.{name}", Unit.SECOND, meaning, RECORD)


# On a GPU these are device seconds (events read late); on a CPU, host seconds.
BATCH_WAIT = _stage("batch_wait", "the step waits for its batch")
H2D = _stage("h2d", "the batch is copied to the device")
FORWARD = _stage("forward", "forward pass")
BACKWARD = _stage("backward", "backward pass, with gradient exchange that hides in it")
GRADIENT_SYNC = _stage("gradient_sync", "collectives called outside the backward pass")
OPTIMIZER = _stage("optimizer", "optimizer step")
REPLAY = _stage("replay", "a step that was captured into a CUDA graph, replayed")
SIDE = _stage("side", "what no other stage covers: logging, saving, evaluation, the rest")
CHECKPOINT = _stage("checkpoint", "saving on the training thread")
COLLECTION = _stage("gc", "Python's garbage collector")
EVALUATION = _stage("evaluation", "forward passes without training")

_ALL = (
    BATCH_WAIT, H2D, FORWARD, BACKWARD, GRADIENT_SYNC, OPTIMIZER, REPLAY, SIDE, CHECKPOINT, COLLECTION, EVALUATION
)  # fmt: skip
STAGE_OF = {q.name.removeprefix("stage."): q for q in _ALL}
ON_DEVICE = Quantity("stage.on_device", Unit.FLAG, "stage times are the device's own, not the host's", RECORD)
HANG_SILENCE = Quantity("stage.silence", Unit.SECOND, "how long no step has ended when the stacks were taken", RECORD)
HANG_STACK = Quantity("stage.stack", Unit.TEXT, "what every thread was doing in that silence", RECORD)
ENDED = Quantity("stage.ended", Unit.TEXT, "how the record ends: exit, exception, or cut off", RECORD)
LAST_STEP = Quantity("stage.last_step", Unit.COUNT, "the last step of this rank's record", RECORD)
USER_SPAN = Quantity("stage.user_span", Unit.SECOND, "a range that the user named with stallwise.span", RECORD)
USER_GAUGE = Quantity("stage.user_gauge", Unit.RATIO, "a number that the user recorded with stallwise.gauge", RECORD)
SIDE_LINE = Quantity(
    "stage.side_line", Unit.TEXT, "the line that held the training thread outside of every stage", RECORD
)
