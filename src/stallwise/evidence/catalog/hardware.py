"""Quantities of hardware health: clocks, power, heat, links and errors of a GPU."""

from __future__ import annotations

from stallwise.evidence.capture import DMESG, NVIDIA_SMI, NVIDIA_SMI_Q
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

# A GPU counts as loaded in samples at or above this utilisation. At lower use the driver lowers clocks and link speed
# on purpose, so nothing seen there says anything about health.
LOADED_SHARE = 0.5

GPU_NAME = Quantity("gpu.name", Unit.TEXT, "the model of the GPU", NVIDIA_SMI, ("gpu", "card"))
GPU_SAMPLES = Quantity("gpu.samples", Unit.COUNT, "how often the GPU's state was sampled", NVIDIA_SMI)
GPU_LOADED_SHARE = Quantity(
    "gpu.loaded_share", Unit.SHARE, "samples in which the GPU was at least half busy", NVIDIA_SMI
)
GPU_UTILISATION = Quantity(
    "gpu.utilisation", Unit.SHARE, "mean share of time in which any kernel ran", NVIDIA_SMI, ("gpu util", "utilization")
)
GPU_MEMORY_USED = Quantity("gpu.memory_used", Unit.BYTE, "most device memory in use, all processes", NVIDIA_SMI)
GPU_MEMORY_TOTAL = Quantity("gpu.memory_total", Unit.BYTE, "device memory the driver reports", NVIDIA_SMI)
GPU_TEMPERATURE = Quantity("gpu.temperature", Unit.CELSIUS, "hottest core temperature seen", NVIDIA_SMI, ("temp",))
GPU_MEMORY_TEMPERATURE = Quantity("gpu.memory_temperature", Unit.CELSIUS, "hottest memory temperature seen", NVIDIA_SMI)
GPU_SLOWDOWN_TEMPERATURE = Quantity(
    "gpu.slowdown_temperature", Unit.CELSIUS, "core temperature at which the driver slows the clocks", NVIDIA_SMI_Q
)
GPU_MEMORY_SLOWDOWN_TEMPERATURE = Quantity(
    "gpu.memory_slowdown_temperature", Unit.CELSIUS, "memory temperature at which clocks are slowed", NVIDIA_SMI_Q
)
GPU_POWER = Quantity("gpu.power", Unit.WATT, "median power under load", NVIDIA_SMI, ("power draw",))
GPU_POWER_LIMIT = Quantity("gpu.power_limit", Unit.WATT, "the power limit in force", NVIDIA_SMI, ("power cap",))
GPU_POWER_DEFAULT = Quantity("gpu.power_default_limit", Unit.WATT, "the power limit the card ships with", NVIDIA_SMI_Q)
GPU_POWER_PUBLISHED = Quantity(
    "gpu.power_published", Unit.WATT, "the power its maker publishes for the card", NVIDIA_SMI
)
GPU_CLOCK = Quantity("gpu.clock", Unit.HERTZ, "median SM clock under load", NVIDIA_SMI, ("sm clock",))
GPU_CLOCK_IDLE = Quantity("gpu.clock_idle", Unit.HERTZ, "median SM clock without load", NVIDIA_SMI)
GPU_CLOCK_MAX = Quantity("gpu.clock_max", Unit.HERTZ, "highest SM clock of the card", NVIDIA_SMI)
GPU_CLOCK_FALL = Quantity(
    "gpu.clock_fall", Unit.SHARE, "how far the SM clock under load fell from its own best quarter", NVIDIA_SMI
)
GPU_CLOCK_BEHIND = Quantity(
    "gpu.clock_behind",
    Unit.SHARE,
    "how far the SM clock under load lies below the median of its neighbours",
    NVIDIA_SMI,
)
GPU_MEMORY_CLOCK = Quantity("gpu.memory_clock", Unit.HERTZ, "median memory clock under load", NVIDIA_SMI)

# Shares of the loaded samples (of all samples where no utilisation is known) with a throttle reason active.
GPU_POWER_CAP_SHARE = Quantity("gpu.power_cap_share", Unit.SHARE, "software power cap active", NVIDIA_SMI)
GPU_HW_SLOWDOWN_SHARE = Quantity("gpu.hw_slowdown_share", Unit.SHARE, "hardware slowdown active", NVIDIA_SMI)
GPU_POWER_BRAKE_SHARE = Quantity("gpu.power_brake_share", Unit.SHARE, "external power brake active", NVIDIA_SMI)
GPU_SW_THERMAL_SHARE = Quantity("gpu.sw_thermal_share", Unit.SHARE, "software thermal slowdown active", NVIDIA_SMI)
GPU_HW_THERMAL_SHARE = Quantity("gpu.hw_thermal_share", Unit.SHARE, "hardware thermal slowdown active", NVIDIA_SMI)

GPU_PCIE_GEN = Quantity("gpu.pcie_gen", Unit.COUNT, "PCIe generation in use under load", NVIDIA_SMI)
GPU_PCIE_GEN_IDLE = Quantity("gpu.pcie_gen_idle", Unit.COUNT, "PCIe generation in use without load", NVIDIA_SMI)
GPU_PCIE_GEN_MAX = Quantity("gpu.pcie_gen_max", Unit.COUNT, "highest PCIe generation of slot and card", NVIDIA_SMI)
GPU_PCIE_WIDTH = Quantity("gpu.pcie_width", Unit.COUNT, "PCIe lanes in use", NVIDIA_SMI)
GPU_PCIE_WIDTH_MAX = Quantity("gpu.pcie_width_max", Unit.COUNT, "PCIe lanes of slot and card", NVIDIA_SMI)
GPU_PCIE_REPLAYS = Quantity("gpu.pcie_replays", Unit.COUNT, "PCIe packets sent again since reset", NVIDIA_SMI_Q)

GPU_ECC_CORRECTED = Quantity("gpu.ecc_corrected", Unit.COUNT, "memory errors corrected", NVIDIA_SMI_Q)
GPU_ECC_UNCORRECTED = Quantity("gpu.ecc_uncorrected", Unit.COUNT, "memory errors not correctable", NVIDIA_SMI_Q)
GPU_REMAP_PENDING = Quantity("gpu.remap_pending", Unit.FLAG, "a row remap waits for a reset", NVIDIA_SMI_Q)
GPU_REMAP_FAILED = Quantity("gpu.remap_failed", Unit.FLAG, "a row could not be remapped", NVIDIA_SMI_Q)
GPU_REMAPPED_ROWS = Quantity("gpu.remapped_rows", Unit.COUNT, "rows remapped after uncorrectable errors", NVIDIA_SMI_Q)
GPU_LOST = Quantity("gpu.lost", Unit.TEXT, "the driver cannot reach the GPU; its own words", DMESG)
GPU_POWER_BEHIND = Quantity(
    "gpu.power_behind", Unit.SHARE, "how far the power under load lies below the median of its neighbours", NVIDIA_SMI
)
GPU_COOLER = Quantity("gpu.cooler", Unit.CELSIUS, "how much cooler than the median neighbour it is", NVIDIA_SMI)
GPU_THERMAL_MARGIN = Quantity(
    "gpu.thermal_margin", Unit.CELSIUS, "degrees left until the driver slows the clocks", NVIDIA_SMI_Q
)

GPU_XID = Quantity("gpu.xid", Unit.COUNT, "an error code of the NVIDIA driver", DMESG, ("xid",))
XID_BUS = Quantity("xid.bus", Unit.TEXT, "a driver error that says the GPU or its firmware is gone", DMESG)
XID_MEMORY = Quantity("xid.memory", Unit.TEXT, "a driver error about GPU memory that cannot be corrected", DMESG)
XID_NVLINK = Quantity("xid.nvlink", Unit.TEXT, "a driver error about NVLink or NVSwitch", DMESG)
XID_APPLICATION = Quantity("xid.application", Unit.TEXT, "a driver error that software causes", DMESG)
XID_OTHER = Quantity("xid.other", Unit.TEXT, "a driver error of another kind", DMESG)
XID_CONSEQUENCE = Quantity("xid.consequence", Unit.TEXT, "a driver message that only follows another error", DMESG)
XID_SPREAD = Quantity("xid.spread", Unit.COUNT, "GPUs on which software errors of one kind were seen", DMESG)
XID_SAME_ADDRESS = Quantity(
    "xid.same_address", Unit.FLAG, "one machine faults at one address in several processes", DMESG
)
XID_ORDER = Quantity("xid.order", Unit.TEXT, "driver errors in the order in which they came", DMESG)
DRIVER_VERSION = Quantity("driver.version", Unit.TEXT, "the version of the NVIDIA driver", DMESG)

NVLINK_ERRORS = Quantity("nvlink.errors", Unit.COUNT, "replays, recoveries or CRC errors of NVLinks", NVIDIA_SMI_Q)
NVLINK_ACTIVE = Quantity("nvlink.active", Unit.COUNT, "NVLinks that carry data", NVIDIA_SMI_Q)
NVLINK_INACTIVE = Quantity("nvlink.inactive", Unit.COUNT, "NVLinks that are down", NVIDIA_SMI_Q)
FABRIC_FAULT = Quantity("nvlink.fabric_fault", Unit.TEXT, "the fabric manager or NVSwitch reports a fault", DMESG)
PCIE_ERRORS = Quantity("pcie.errors", Unit.COUNT, "PCIe errors the kernel logged (AER)", DMESG)
PCIE_LIMITED = Quantity("pcie.limited", Unit.TEXT, "the kernel found a PCIe link slower than its device", DMESG)
ILLEGAL_ACCESS = Quantity(
    "gpu.illegal_access", Unit.TEXT, "a program reports an illegal address or device assert", DMESG
)
