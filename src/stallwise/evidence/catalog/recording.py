"""A recording as a whole, before anybody looks for steps in it."""

from __future__ import annotations

from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit


def _q(name: str, unit: Unit, meaning: str) -> Quantity:
    return Quantity(f"recording.{name}", unit, meaning, TORCH_TRACE)


LENGTH = _q("length", Unit.SECOND, "from the first recorded event to the last")
STEPS_SHARE = _q("steps_share", Unit.SHARE, "of the recording that the steps cover")
DEVICE_SPAN = _q("device_span", Unit.SECOND, "from the device's first work to its last")
BUSY_SHARE = _q("busy_share", Unit.SHARE, "of that span in which the device works")
LEAD_IN = _q("lead_in", Unit.SECOND, "recorded before the device's first work")
KERNELS = _q("kernels", Unit.COUNT, "kernels in the recording")
KERNEL_TIME = _q("kernel_time", Unit.SECOND, "time of all kernels")
COPY_TIME = _q("copy_time", Unit.SECOND, "time of all copies between host and device")
READ_BACK_TIME = _q("read_back_time", Unit.SECOND, "time of the copies from the device to the host")
COPY_BYTES = _q("copy_bytes", Unit.BYTE, "bytes of all copies between host and device")
UPLOAD_TIME = _q("upload_time", Unit.SECOND, "time of the copies before the first matrix product")
UPLOAD_BYTES = _q("upload_bytes", Unit.BYTE, "bytes of the copies before the first matrix product")
UNKNOWN_CARD = _q("unknown_card", Unit.TEXT, "the recorded card, of which no data sheet is here")
