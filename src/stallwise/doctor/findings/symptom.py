"""What people complain of. A cause declares which symptoms it explains, and how often it is the reason."""

from __future__ import annotations

from enum import Enum
from typing import Literal

Often = Literal["mostly", "often", "at times", "seldom"]  # how often a cause is behind a symptom, as its author holds


class Symptom(Enum):
    """The complaint, before any measurement."""

    SLOW_STEP = "training steps are slow"
    SUDDEN_SLOWDOWN = "throughput or MFU fell at some moment and stayed low"
    GRADUAL_SLOWDOWN = "each step is a little slower than the last"
    PERIODIC_STALL = "every so many steps one is slow"
    LOW_GPU_UTILISATION = "the GPU is idle much of the time"
    BUSY_BUT_SLOW = "the GPU is busy all the time and yet gives little"
    SLOW_KERNEL = "one kernel is slower than it should be"
    CUSTOM_KERNEL_SLOWER = "a custom kernel is slower than the library path"
    SLOW_SCALING = "adding GPUs helps less than it should"
    SLOW_COLLECTIVE = "collectives take too long"
    PIPELINE_IDLE = "pipeline stages wait more than the schedule says"
    HANG = "the job hangs or times out"
    CRASH = "the job dies"
    OUT_OF_MEMORY = "out of memory"
    MEMORY_GROWTH = "memory grows over time"
    BAD_LOSS = "loss diverges, spikes or is NaN"
    ACCURACY_DROP = "accuracy fell after a change of precision"
    SERVING_SLOW = "tokens come too slowly"
    SERVING_COLLAPSE = "latency explodes at higher load"
    HIGH_TTFT = "the first token takes too long"
    SERVER_WONT_START = "the server does not start"
    SLOW_START = "the first iterations or requests are slow"
    GPU_ERROR = "the driver reports an error"

    @property
    def kind(self) -> Kind:
        """What sort of trouble it is."""
        return _KINDS.get(self, Kind.SPEED)


class Kind(Enum):
    """Sorts of trouble. Who lost a job, a tensor's place or a loss says so; a complaint of speed alone tells that none was lost."""

    SPEED = "too slow"
    STOPPED = "stopped"
    MEMORY = "no memory left"
    NUMBERS = "wrong numbers"


_KINDS = {
    Symptom.HANG: Kind.STOPPED,
    Symptom.CRASH: Kind.STOPPED,
    Symptom.GPU_ERROR: Kind.STOPPED,
    Symptom.SERVER_WONT_START: Kind.STOPPED,
    Symptom.OUT_OF_MEMORY: Kind.MEMORY,
    Symptom.MEMORY_GROWTH: Kind.MEMORY,
    Symptom.BAD_LOSS: Kind.NUMBERS,
    Symptom.ACCURACY_DROP: Kind.NUMBERS,
}
