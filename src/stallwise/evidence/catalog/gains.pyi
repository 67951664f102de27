from stallwise.evidence.quantity import Quantity

NO_INPUT_WAIT: Quantity
NO_SYNC: Quantity
GRAPHS: Quantity
NO_ALLOCATION: Quantity
FUSED_OPTIMIZER: Quantity
COPIES_AHEAD: Quantity
NO_SAVE: Quantity
NO_HOST_WORK: Quantity
FUSE: Quantity
DTYPE: Quantity
NO_RECOMPUTE: Quantity
FUSED_ATTENTION: Quantity
ALIGNED: Quantity
CHANNELS_LAST: Quantity
LESS_DEVICE_WORK: Quantity
OF_CHANGE: dict[str, Quantity]
