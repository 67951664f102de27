from stallwise.evidence.quantity import Quantity

LENGTH: Quantity
STEPS_SHARE: Quantity
DEVICE_SPAN: Quantity
BUSY_SHARE: Quantity
LEAD_IN: Quantity
KERNELS: Quantity
KERNEL_TIME: Quantity
COPY_TIME: Quantity
READ_BACK_TIME: Quantity
COPY_BYTES: Quantity
UPLOAD_TIME: Quantity
UPLOAD_BYTES: Quantity
UNKNOWN_CARD: Quantity
HOST_SUM: Quantity
DEVICE_SUM: Quantity
ISSUED: Quantity
NOT_ISSUING: Quantity
FIRST_CALLS: Quantity
