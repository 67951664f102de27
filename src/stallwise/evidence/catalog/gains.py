"""What a replayed change wins: seconds of a mean step, with a range that includes what the change itself costs."""

from __future__ import annotations

from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit


def _won(change: str, meaning: str) -> Quantity:
    return Quantity(
        f"gain.{change.replace('-', '_')}", Unit.SECOND, f"a step wins this, replayed {meaning}", TORCH_TRACE
    )


NO_INPUT_WAIT = _won("no-input-wait", "with every batch ready when it is asked for")
NO_SYNC = _won("no-sync", "without synchronisations and reads of single values")
GRAPHS = _won("graphs", "with the launches as CUDA graphs")
NO_ALLOCATION = _won("no-allocation", "without calls that allocate or free device memory")
FUSED_OPTIMIZER = _won("fused-optimizer", "with an optimizer of a few launches")
COPIES_AHEAD = _won("copies-ahead", "with batches copied from pinned memory ahead of their use")
NO_SAVE = _won("no-save", "with checkpoints written elsewhere")
NO_HOST_WORK = _won("no-host-work", "without the host's own work between operators")
FUSE = _won("fuse", "with each chain of pointwise kernels as one")
DTYPE = _won("dtype", "with matrix work and its bytes in 16 bits")
NO_RECOMPUTE = _won("no-recompute", "with activations kept")
FUSED_ATTENTION = _won("fused-attention", "with attention in one kernel")
ALIGNED = _won("aligned", "with matrix kernels that load whole vectors")
CHANNELS_LAST = _won("channels-last", "with channels last in memory")
LESS_DEVICE_WORK = Quantity(
    "gain.less_device_work",
    Unit.SECOND,
    "a step wins this, replayed with this part of the device's computing time gone",
    TORCH_TRACE,
)

OF_CHANGE = {
    "no-input-wait": NO_INPUT_WAIT,
    "no-sync": NO_SYNC,
    "graphs": GRAPHS,
    "no-allocation": NO_ALLOCATION,
    "fused-optimizer": FUSED_OPTIMIZER,
    "copies-ahead": COPIES_AHEAD,
    "no-save": NO_SAVE,
    "no-host-work": NO_HOST_WORK,
    "fuse": FUSE,
    "dtype": DTYPE,
    "no-recompute": NO_RECOMPUTE,
    "fused-attention": FUSED_ATTENTION,
    "aligned": ALIGNED,
    "channels-last": CHANNELS_LAST,
}
