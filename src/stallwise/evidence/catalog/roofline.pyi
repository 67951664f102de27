from stallwise.evidence.quantity import Quantity

NEAR_SHARE: Quantity
KNOWN_SHARE: Quantity
BY_SHAPE_SHARE: Quantity
UNREAD_SHARE: Quantity
UNREAD_NAME: Quantity
MATRIX_SHARE: Quantity
MATRIX_RATE_SHARE: Quantity
MEMORY_RATE_SHARE: Quantity
ATTENTION_SHARE: Quantity
ATTENTION_BYTES_SHARE: Quantity
GEMM_BYTES_SHARE: Quantity
STEP_SPREAD: Quantity
