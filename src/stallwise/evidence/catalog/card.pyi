from stallwise.evidence.quantity import Quantity

MATRIX_TYPES: Quantity
HAND_WRITTEN_SHARE: Quantity
