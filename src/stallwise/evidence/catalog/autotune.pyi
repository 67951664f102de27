from stallwise.evidence.quantity import Quantity

CONFIGS: Quantity
TIMED: Quantity
BEST: Quantity
BEST_CONFIG: Quantity
LIBRARY: Quantity
SPREAD: Quantity
AXIS: Quantity
AXIS_EFFECT: Quantity
AXES_VARIED: Quantity
AXES_FIXED: Quantity
EDGES: Quantity
SPILLING: Quantity
FUSION_LIMIT: Quantity
PEAK_TIME: Quantity
