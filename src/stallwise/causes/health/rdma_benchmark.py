"""An RDMA test between two hosts is in line when its rate is near the line rate of a port that exists.

Refuted by: another test or port that is slower (the slowest counts).
"""

from __future__ import annotations

from stallwise.causes.health._second_number import lowest, of_now
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog.fabric import RDMA_RATE
from stallwise.evidence.evidence import Evidence

PORTS_BIT_PER_S = (10e9, 25e9, 40e9, 50e9, 56e9, 100e9, 200e9, 400e9, 800e9)  # Ethernet, and InfiniBand FDR to XDR
RDMA_BIT_PER_S = 100e9  # slower ports are rare where RDMA is used: such a rate is rather a part of a faster one's
NEAR = 0.88  # of the line rate: headers and credits take the rest
PORT_STATE = Capture("the rate and width that the port runs at", "ibstat; ibv_devinfo -v", "free", minutes=1)


def rdma_benchmark(evidence: Evidence) -> Proof | None:
    """The slowest average against the next line rate above it."""
    seen = lowest(of_now(evidence, RDMA_RATE))
    if seen is None or seen.number <= 0:
        return None
    bits = 8 * seen.number
    port = next((p for p in PORTS_BIT_PER_S if bits <= 1.01 * p), float("nan"))
    share = bits / port
    summary = f"RDMA reaches {bits / 1e9:.1f} Gb/s ({seen.number / 1e9:.1f} GB/s)"
    summary += f", {percent(share)} of a {port / 1e9:.0f} Gb/s port" if port == port else ""
    return Proof(
        of="link between these two hosts",
        says=summary,
        because=(Reason.of(summary, seen),),
        confidence=0.8,
        lacks="" if share >= NEAR and port >= RDMA_BIT_PER_S else f"{summary}; which port it is, is not in this file.",
        covers_run=False,
        next=(PORT_STATE,) if not (share >= NEAR and port >= RDMA_BIT_PER_S) else (),
    )
