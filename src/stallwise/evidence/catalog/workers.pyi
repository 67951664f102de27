from stallwise.evidence.quantity import Quantity

WORKERS: Quantity
IDEAL_STEP: Quantity
SLOWDOWN: Quantity
SLOWEST_SHARE: Quantity
LAST_STAGE_SHARE: Quantity
REPLAY_ERROR: Quantity
WORKER_FACTOR: Quantity
WORKER_HOST: Quantity
STAGE_COST: Quantity
STAGE_BALANCED: Quantity
STAGE_LAYERS: Quantity
SEQUENCE_COST: Quantity
SEQUENCE_SPREAD: Quantity
SEQUENCE_LONGEST: Quantity
SEQUENCE_TOGETHER: Quantity
LINK_COST: Quantity
LINK_RATIO: Quantity
LINK: Quantity
PAUSE_COST: Quantity
PAUSE_OFTEN: Quantity
PAUSE_ONE: Quantity
LEAST_WAIT: Quantity
OTHERS_WAIT: Quantity
