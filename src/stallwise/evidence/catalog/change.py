"""How a run changed over its steps: a drop, a drift, a period, a slow start, growing memory."""

from __future__ import annotations

from stallwise.evidence.capture import TRAIN_LOG
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_C = TRAIN_LOG
DROP_RATIO = Quantity("change.drop_ratio", Unit.RATIO, "step time after the change point over before", _C)
DROP_STEP = Quantity("change.drop_step", Unit.COUNT, "the step at which steps became slower", _C)
DRIFT_RATIO = Quantity("change.drift_ratio", Unit.RATIO, "step time at the end of a steady drift over its start", _C)
STALL_COUNT = Quantity("change.stall_count", Unit.COUNT, "isolated slow steps", _C)
STALL_EXCESS = Quantity("change.stall_excess", Unit.SECOND, "what a slow step takes beyond its neighbours", _C)
STALL_SHARE = Quantity("change.stall_share", Unit.SHARE, "share of wall time beyond the usual step", _C)
STALL_PERIOD = Quantity("change.stall_period", Unit.COUNT, "steps from one slow step to the next", _C)
STALL_REGULARITY = Quantity(
    "change.stall_regularity", Unit.SHARE, "1 when slow steps come at an exact period, 0 when they fall at random", _C
)
EVALUATION_SHARE = Quantity("change.evaluation_share", Unit.SHARE, "share of wall time that evaluations take", _C)
STALL_IN_DATA = Quantity("change.stall_in_data", Unit.SHARE, "part of the slow steps' excess that is loader wait", _C)
LATE_BATCH_SHARE = Quantity(
    "change.late_batch_share", Unit.SHARE, "share of wall time lost in the few steps whose batch came late", _C
)
STALL_AT_GC = Quantity("change.stall_at_gc", Unit.SHARE, "slow steps that coincide with a full garbage collection", _C)
FIRST_STEPS_RATIO = Quantity("change.first_steps_ratio", Unit.RATIO, "the first steps over the steady step", _C)
FIRST_STEPS_EXCESS = Quantity("change.first_steps_excess", Unit.SECOND, "time lost in the first steps", _C)
STEADY_STEP = Quantity("change.steady_step", Unit.SECOND, "median step without first, slow and changed steps", _C)
STEPS_LOGGED = Quantity("change.steps_logged", Unit.COUNT, "steps with a time in the log", _C)
GPU_MEMORY_GROWTH = Quantity("change.gpu_memory_growth", Unit.BYTE, "GPU memory gained over the log, still rising", _C)
GPU_MEMORY_FACTOR = Quantity("change.gpu_memory_factor", Unit.RATIO, "GPU memory at the end over the start", _C)
HOST_MEMORY_GROWTH = Quantity(
    "change.host_memory_growth", Unit.BYTE, "host memory gained over the log, still rising", _C
)
HOST_MEMORY_FACTOR = Quantity("change.host_memory_factor", Unit.RATIO, "host memory at the end over the start", _C)
OBJECT_GROWTH = Quantity(
    "change.object_growth", Unit.RATIO, "graph nodes or live objects at the end over the start", _C
)
RETRIES_AT_DROP = Quantity("change.retries_gained", Unit.COUNT, "allocation retries gained over the log", _C)
STALL_AT_SAVE = Quantity("change.stall_at_save", Unit.SHARE, "slow steps that come with a checkpoint save", _C)
STALL_AT_EVAL = Quantity("change.stall_at_eval", Unit.SHARE, "slow steps that come with an evaluation", _C)

# The generic comparisons; the name of the quantity they speak of is the layer of their scope.
WORSE_RATIO = Quantity(
    "change.worse_ratio", Unit.RATIO, "how much worse a quantity is than it was, whichever direction is worse", _C
)
PART_SHARE = Quantity("change.part_share", Unit.SHARE, "a part over the whole that it belongs to", _C)
UNEXPLAINED_SHARE = Quantity("change.unexplained_share", Unit.SHARE, "of a whole that its named parts leave over", _C)
CEILING_SHARE = Quantity("change.roof_share", Unit.SHARE, "a rate over the ceiling of the named card", _C)
SPREAD_RATIO = Quantity(
    "change.spread_ratio", Unit.RATIO, "the farthest of ranks, cards, nodes or experts over their median", _C
)
SETTING = Quantity("change.setting", Unit.TEXT, "a setting that differs between the good and the bad run", _C)
