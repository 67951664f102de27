from stallwise.evidence.quantity import Quantity

BATCH_WAIT: Quantity
H2D: Quantity
FORWARD: Quantity
BACKWARD: Quantity
GRADIENT_SYNC: Quantity
OPTIMIZER: Quantity
REPLAY: Quantity
SIDE: Quantity
CHECKPOINT: Quantity
COLLECTION: Quantity
EVALUATION: Quantity
ON_DEVICE: Quantity
HANG_SILENCE: Quantity
HANG_STACK: Quantity
ENDED: Quantity
LAST_STEP: Quantity
USER_SPAN: Quantity
USER_GAUGE: Quantity
SIDE_LINE: Quantity
STAGE_OF: dict[str, Quantity]
