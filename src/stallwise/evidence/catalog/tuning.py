"""What an autotuner's own log says: how many configurations it timed, and where the best one lies."""

from __future__ import annotations

from stallwise.evidence.capture import Capture
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

AUTOTUNE_LOG = Capture(
    "the autotuner's timing of every configuration",
    "TRITON_PRINT_AUTOTUNING=1 python bench.py 2> autotune.log",
    "one run",
)
TIMED_CONFIGS = Quantity("tuning.timed_configs", Unit.COUNT, "configurations the autotuner timed", AUTOTUNE_LOG)
BEST_AT_EDGE = Quantity(
    "tuning.best_at_edge", Unit.TEXT, "parameters whose best value is the last one tried", AUTOTUNE_LOG
)
SPREAD = Quantity("tuning.spread", Unit.RATIO, "slowest over fastest configuration timed", AUTOTUNE_LOG)
