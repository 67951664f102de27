"""Quantities of hangs: who waits where, who failed first, and what the libraries said."""

from __future__ import annotations

from stallwise.evidence.capture import DMESG, FLIGHT_RECORDER, NCCL_LOG, RANK_LOGS, STACKS
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

# What single lines say.
SHM_ERROR = Quantity("hang.shm_error", Unit.TEXT, "shared memory could not be allocated", NCCL_LOG)
MEMLOCK_ERROR = Quantity("hang.memlock_error", Unit.TEXT, "memory could not be locked for RDMA", NCCL_LOG)
MEMLOCK_LIMIT = Quantity("limits.memlock", Unit.BYTE, "the locked-memory limit of a process", NCCL_LOG, ("ulimit -l",))
INTERFACE_ERROR = Quantity("hang.interface_error", Unit.TEXT, "an address cannot be bound or reached", NCCL_LOG)
TRUNCATED_MESSAGE = Quantity(
    "hang.truncated_message", Unit.TEXT, "peers exchanged messages of different layouts", NCCL_LOG
)
MISMATCH_MESSAGE = Quantity(
    "hang.mismatch_message", Unit.TEXT, "a library says that ranks called different collectives", NCCL_LOG
)
PROCESS_KILLED = Quantity("hang.process_killed", Unit.TEXT, "somebody ended a process from outside", DMESG)
RANK_ERROR = Quantity("hang.rank_error", Unit.TEXT, "an error a rank made itself", RANK_LOGS)
PEER_LOST = Quantity("hang.peer_lost", Unit.TEXT, "a rank says that its peer went away", RANK_LOGS)
STALLED_TENSORS = Quantity("hang.stalled_tensors", Unit.TEXT, "tensors that some ranks have not submitted", RANK_LOGS)
IOMMU_FAULT = Quantity("hang.iommu_fault", Unit.TEXT, "the IOMMU refused a device's access", DMESG)
ACS_ENABLED = Quantity("pcie.acs_enabled", Unit.COUNT, "PCIe bridges that redirect peer traffic (ACS)", DMESG)

# What the measures make of them. How a mismatch was seen, where only the calls' places tell:
OTHER_PAIRS_WORK = "other pairs work"
PLACES_DIFFER = "different collectives"
PLACES_DIFFER_AT_THE_END = "different collectives by traceback"
HANG_TIMEOUT = Quantity("hang.timeout", Unit.SECOND, "how long a collective waited before it was given up", RANK_LOGS)
HANG_RANKS = Quantity("hang.ranks", Unit.COUNT, "ranks that report a stuck collective", FLIGHT_RECORDER)
HANG_WORLD = Quantity("hang.world", Unit.COUNT, "ranks of the job", RANK_LOGS)
HANG_OP = Quantity("hang.op", Unit.TEXT, "the collective that most ranks wait in", FLIGHT_RECORDER)
HANG_MISSING = Quantity(
    "hang.missing", Unit.TEXT, "ranks that did not join the collective others wait in", FLIGHT_RECORDER
)
HANG_MISMATCH = Quantity("hang.mismatch", Unit.TEXT, "how the ranks' collectives differ", FLIGHT_RECORDER)
HANG_BEHIND = Quantity("hang.behind", Unit.TEXT, "ranks whose queue of collectives stopped earlier", FLIGHT_RECORDER)
HANG_NEVER_WORKED = Quantity("hang.never_worked", Unit.FLAG, "no collective ever completed", FLIGHT_RECORDER)
HANG_FRAME = Quantity("hang.frame", Unit.TEXT, "the line of the user's code that called the stuck collective", STACKS)
HANG_LAST_ACT = Quantity("hang.last_act", Unit.TEXT, "what a rank was doing before it stopped", RANK_LOGS)
FIRST_FAILURE = Quantity(
    "hang.first_failure", Unit.TEXT, "the earliest failure that is nobody's consequence", RANK_LOGS
)
BATCHES_UNEVEN = Quantity("hang.batches_uneven", Unit.TEXT, "ranks with different numbers of batches", RANK_LOGS)
SLOW_RANK = Quantity("hang.slow_rank", Unit.TEXT, "ranks that took far longer than the others at one task", RANK_LOGS)
NCCL_VERSIONS = Quantity("nccl.versions", Unit.TEXT, "NCCL versions that differ between ranks", NCCL_LOG)
P2P_BROKEN = Quantity("hang.p2p_broken", Unit.TEXT, "GPU pairs that hang over peer-to-peer", NCCL_LOG)
P2P_OFF_WORKS = Quantity("hang.p2p_off_works", Unit.TEXT, "the same works with peer-to-peer switched off", NCCL_LOG)
UNREACHABLE_ADDRESS = Quantity(
    "nccl.unreachable_address", Unit.TEXT, "an address that other nodes cannot reach", NCCL_LOG
)
LATE_RANK = Quantity("hang.late_rank", Unit.TEXT, "a rank whose collectives are short because it comes last", NCCL_LOG)
