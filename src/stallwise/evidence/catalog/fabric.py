"""Quantities of the fabric: who talks to whom over what, and how fast it should be."""

from __future__ import annotations

from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS, TOPOLOGY, TRAIN_LOG
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

NCCL_VERSION = Quantity("nccl.version", Unit.TEXT, "the NCCL (or RCCL) build of a rank", NCCL_LOG)
NCCL_COMPLETE = Quantity("nccl.complete", Unit.TEXT, "NCCL says that its communicator is set up", NCCL_LOG)
NCCL_NET = Quantity("nccl.net", Unit.TEXT, "the network NCCL chose", NCCL_LOG)
NCCL_PROVIDER = Quantity("nccl.provider", Unit.TEXT, "the libfabric provider under NCCL's plugin", NCCL_LOG)
NCCL_INTERFACE = Quantity("nccl.interface", Unit.TEXT, "interface and address NCCL uses", NCCL_LOG)
NCCL_RDMA_ABSENT = Quantity("nccl.rdma_absent", Unit.TEXT, "why NCCL found no RDMA device", NCCL_LOG)
NCCL_GDR_OFF = Quantity("nccl.gdr_off", Unit.TEXT, "NCCL says GPUDirect RDMA is off", NCCL_LOG)
NCCL_ENV = Quantity("nccl.env", Unit.TEXT, "a setting of NCCL, NAME=VALUE", NCCL_LOG)
NCCL_WARNING = Quantity("nccl.warning", Unit.TEXT, "a warning of NCCL of no special kind", NCCL_LOG)
NCCL_TIME = Quantity("nccl.bus_bandwidth", Unit.BYTE_PER_S, "best bus bandwidth of a collective test", NCCL_TESTS)
NCCL_EXPECTED = Quantity("nccl.expected_bandwidth", Unit.BYTE_PER_S, "what the links should give", NCCL_TESTS)
NCCL_NVLINK_RATE = Quantity(
    "nccl.nvlink_rate", Unit.BYTE_PER_S, "NVLink from a card to another or to the switch, by NCCL's own map", NCCL_LOG
)
NCCL_WRONG = Quantity("nccl.wrong_results", Unit.COUNT, "values that a collective test got wrong", NCCL_TESTS)

FABRIC_RANKS = Quantity("fabric.ranks", Unit.COUNT, "ranks of the communicator", NCCL_LOG)
FABRIC_NODES = Quantity("fabric.nodes", Unit.COUNT, "nodes of the communicator", NCCL_LOG)
CROSS_NODE_VIA = Quantity("fabric.cross_node_via", Unit.TEXT, "how data leaves a node", NCCL_LOG)
CROSS_NODE_GDR_SHARE = Quantity(
    "fabric.cross_node_gdr_share", Unit.SHARE, "RDMA connections that use GPUDirect", NCCL_LOG
)
IN_NODE_VIA = Quantity("fabric.in_node_via", Unit.TEXT, "how GPUs of one node exchange data", NCCL_LOG)
GPU_PATHS = Quantity("fabric.gpu_paths", Unit.TEXT, "kinds of path between GPU pairs", TOPOLOGY)
NVLINK_PAIRS_SHARE = Quantity("fabric.nvlink_pairs_share", Unit.SHARE, "GPU pairs joined by NVLink", TOPOLOGY)
TP_SIZE = Quantity(
    "layout.tp",
    Unit.COUNT,
    "ranks of a tensor-parallel group",
    TRAIN_LOG,
    (
        "tp",
        "tensor_parallel",
        "tensor parallel",
    ),
)
NODES = Quantity("layout.nodes", Unit.COUNT, "nodes of the job", TRAIN_LOG, ("nnodes",))
GPUS_PER_NODE = Quantity(
    "layout.gpus_per_node", Unit.COUNT, "GPUs of the job on each node", TRAIN_LOG, ("gpus_per_node",)
)

SCALING_BOUNDARY = Quantity(
    "scaling.border", Unit.COUNT, "ranks from which the group crosses a slower link", NCCL_TESTS
)
SCALING_JUMP = Quantity("scaling.jump", Unit.RATIO, "measured over expected time at the border", NCCL_TESTS)
SCALING_EXCESS = Quantity("scaling.excess", Unit.SECOND, "time above the model's at the border", NCCL_TESTS)
SCALING_BEFORE = Quantity("scaling.before", Unit.TEXT, "the series before and after the border", NCCL_TESTS)
SCALING_ADVICE = Quantity("scaling.advice", Unit.TEXT, "the algorithm that suits the border", NCCL_TESTS)
SCALING_EFFICIENCY = Quantity(
    "scaling.efficiency", Unit.SHARE, "speed per GPU at the most GPUs against the fewest", TRAIN_LOG
)
SCALING_SMOOTH = Quantity("scaling.smooth", Unit.FLAG, "efficiency falls gradually, without a border", TRAIN_LOG)
RUN_CARDS = Quantity("scaling.run_cards", Unit.COUNT, "cards that a run was started with", TRAIN_LOG)
RUN_TIME = Quantity("scaling.run_time", Unit.SECOND, "how long the whole training took", TRAIN_LOG)
RUN_PEERS_OFF = Quantity("scaling.run_peers_off", Unit.FLAG, "peer-to-peer was switched off for this run", TRAIN_LOG)
RUN_ONE_PROCESS = Quantity("scaling.run_one_process", Unit.FLAG, "one process drives all cards", TRAIN_LOG)
RUN_SLOWDOWN = Quantity("scaling.run_slowdown", Unit.RATIO, "step time with more GPUs over that with fewer", TRAIN_LOG)
P2P_OFF_SLOWDOWN = Quantity("fabric.p2p_off_slowdown", Unit.RATIO, "run time without over with peer-to-peer", TRAIN_LOG)
NCCL_SHARE_IN_NODE = Quantity(
    "nccl.share_in_node", Unit.SHARE, "bus bandwidth inside a node over what its links should give", NCCL_TESTS
)
NCCL_SHARE_ACROSS = Quantity(
    "nccl.share_across", Unit.SHARE, "bus bandwidth between nodes over what the network should give", NCCL_TESTS
)
RDMA_RATE = Quantity("link.rdma_rate", Unit.BYTE_PER_S, "RDMA between two hosts, best average of a test", NCCL_TESTS)
ONE_NODE = Quantity("fabric.one_node", Unit.FLAG, "every rank of the communicator is on one node", NCCL_LOG)
