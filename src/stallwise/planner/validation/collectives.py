"""Collective timings (columns as in collectives.csv): the fabric is read from what a row says about its machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from statistics import median

from stallwise.errors import StallwiseError
from stallwise.physics.costs.collectives import Estimate, Op, collective_time, op_named
from stallwise.physics.costs.topology import BRIDGE_EFFICIENCY_SHARE, Fabric, Wiring, fabric_of
from stallwise.physics.specs.cluster import cluster_of
from stallwise.physics.specs.hardware import find_gpu
from stallwise.planner.scoring import Row, Scored, number

KIND = "collectives"
PAIRED_NIC_BYTE_PER_S = 3.1e9  # servers of bridged cards: one 100 Gb/s port for four GPUs is usual
TCP_EFFICIENCY_SHARE = 0.5  # without RDMA the host copies every byte


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """Predicts each row's time; with `calibrate`, a source's first rows set one factor per kind of limit."""
    scored: list[Scored] = []
    by_source: dict[str, list[Row]] = {}
    for row in rows:
        by_source.setdefault(row.get("source") or "?", []).append(row)
    for source, group in by_source.items():
        factors = _factors(group[:calibrate])
        scored += [_score(row, source, factors) for row in group[calibrate:]]
    return scored


def _factors(rows: Sequence[Row]) -> dict[str, float]:
    """How much slower than predicted this source is, by what limits the message."""
    logs: dict[str, list[float]] = {}
    for row in rows:
        measured = number(row, "time_us")
        estimate = _try(row)
        if measured and isinstance(estimate, Estimate) and estimate.seconds:
            logs.setdefault(estimate.limit, []).append(log(measured * 1e-6 / estimate.seconds))
    return {limit: exp(median(found)) for limit, found in logs.items()}


def _score(row: Row, source: str, factors: dict[str, float]) -> Scored:
    measured_us = number(row, "time_us")
    measured = None if measured_us is None else measured_us * 1e-6
    row_id = row.get("row_id", "")
    estimate = _try(row)
    if isinstance(estimate, str):
        return Scored(row_id, source, "time_s", measured, note=estimate)
    k = factors.get(estimate.limit, 1.0)
    note = f"{estimate.algorithm}, {estimate.protocol}, limited by {estimate.limit}"
    return Scored(
        row_id, source, "time_s", measured, k * estimate.seconds, k * estimate.low_s, k * estimate.high_s, note
    )


def _try(row: Row) -> Estimate | str:
    try:
        return predict(row)
    except StallwiseError as error:
        return error.problem


def predict(row: Row) -> Estimate | str:
    """The estimate of one row, or why there is none."""
    size, ranks = number(row, "size_bytes"), number(row, "ranks")
    if not size or not ranks:
        return "no size or number of ranks"
    op = _op(row.get("collective", ""))
    if op is None:
        return f"'{row.get('collective', '')}' is not one operation"
    fabric = fabric_from(row)
    if fabric is None:
        return f"no GPU in the catalogue is called '{row.get('gpu', '')}'"
    nodes = number(row, "nodes")
    per_domain = None if not nodes or nodes < 2 else max(1, int(ranks // nodes))
    return collective_time(op, size, int(ranks), fabric, per_domain=per_domain)


def _op(text: str) -> Op | None:
    """The first operation named; "all_gather or alltoall" share their bus factor, so the first is taken."""
    first = re.split(r"\s{1,9}or\s{1,9}|\(|,", text.strip())[0]
    try:
        return op_named(first)
    except StallwiseError:
        return None


def fabric_from(row: Row) -> Fabric | None:
    """GPU, NVLink domain and network as the row's words describe them."""
    words = row.get("fabric", "").lower()
    card = find_gpu(re.sub(r"\([^)\n]{0,400}\)", "", row.get("gpu", "")).replace("_", "-"))
    ranks = int(number(row, "ranks") or 1)
    nodes = int(number(row, "nodes") or 1)
    if card is None:
        return None
    fabric = fabric_of(cluster_of(card, max(8, ranks)))
    if "pairwise" in words:
        pcie = card.pcie_byte_per_s
        link = replace(fabric.link, efficiency_share=BRIDGE_EFFICIENCY_SHARE, byte_per_s=_bridge(card.name))
        fabric = replace(
            fabric,
            wiring=Wiring.PAIRS,
            link=link,
            host_byte_per_s=pcie,
            in_switch_reduction=False,
            nic_byte_per_s=PAIRED_NIC_BYTE_PER_S,
        )
    if nodes > 1 and fabric.gpus_per_domain > ranks // nodes:
        fabric = replace(fabric, gpus_per_domain=max(1, ranks // nodes))
    nic = nic_from(words)
    if nic:
        fabric = replace(fabric, nic_byte_per_s=nic)
    if "tcp" in words or "socket" in words:
        fabric = replace(fabric, nic_efficiency_share=TCP_EFFICIENCY_SHARE)
    return fabric


def _bridge(name: str) -> float:
    """NVLink bridges of PCIe cards, one direction: 600 GB/s both ways for A100 and H100, 112 for an A40."""
    return 56e9 if name.startswith("a40") else 300e9


def nic_from(words: str) -> float | None:
    """Bytes per second and GPU from "InfiniBand 3.2Tb/s per node", "400GbE x8", "4x200G" (eight GPUs a node)."""
    total = re.search(r"([\d.]{1,12})\s{0,9}tb(?:it)?/s", words)
    if total:
        return float(total[1]) * 1e12 / 8 / 8
    each = re.search(r"(\d{1,9})\s{0,9}gb?e?\s{0,9}x\s{0,9}(\d{1,9})", words)
    if each:
        return float(each[1]) * int(each[2]) * 1e9 / 8 / 8
    each = re.search(r"(\d{1,9})\s{0,9}x\s{0,9}(\d{1,9})\s{0,9}g", words)
    if each:
        return float(each[1]) * int(each[2]) * 1e9 / 8 / 8
    return None
