"""What a search over kernel configurations measured."""

from __future__ import annotations

from stallwise.evidence.capture import Capture
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

SWEEP = Capture(
    "times of many configurations and of the library path",
    "TRITON_PRINT_AUTOTUNING=1 python bench.py 2>&1 | tee autotune.log",
    "minutes; time the unfused library path too",
)

CONFIGS = Quantity("autotune.configs", Unit.COUNT, "configurations listed or tried", SWEEP)
TIMED = Quantity("autotune.timed", Unit.COUNT, "configurations that ran and were timed", SWEEP)
BEST = Quantity("autotune.best_time", Unit.SECOND, "time of the best configuration", SWEEP)
BEST_CONFIG = Quantity("autotune.best_config", Unit.TEXT, "the best configuration", SWEEP)
LIBRARY = Quantity("autotune.library_time", Unit.SECOND, "time of the library path it replaces", SWEEP)
SPREAD = Quantity("autotune.spread", Unit.RATIO, "worst over best configuration", SWEEP)
AXIS = Quantity("autotune.axis", Unit.TEXT, "the axis that matters most by measurement", SWEEP)
AXIS_EFFECT = Quantity("autotune.axis_effect", Unit.RATIO, "best time at its worst value over best time at all", SWEEP)
AXES_VARIED = Quantity("autotune.axes_varied", Unit.COUNT, "axes tried at more than one value", SWEEP)
AXES_FIXED = Quantity("autotune.axes_fixed", Unit.TEXT, "axes tried at one value only", SWEEP)
EDGES = Quantity("autotune.edges", Unit.TEXT, "axes whose best value lies at the end of what was tried", SWEEP)
SPILLING = Quantity("autotune.spilling_share", Unit.SHARE, "configurations that spill registers", SWEEP)
FUSION_LIMIT = Quantity("autotune.fusion_limit", Unit.SECOND, "what fusing can save at best: bytes over bandwidth")
PEAK_TIME = Quantity("autotune.roof_time", Unit.SECOND, "time of the product at the chip's matrix peak")
