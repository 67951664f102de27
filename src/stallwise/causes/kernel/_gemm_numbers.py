"""What the numbers of one matrix product say whatever its cause: the distance to the library, and operands read again."""

from __future__ import annotations

from stallwise.doctor.findings.finding import Reason
from stallwise.evidence.catalog import expected, kernel, run, stated
from stallwise.evidence.evidence import Evidence

AGAIN = 2.0  # times the least bytes: tiles and a cold L2 cost a tuned product less


def gemm_numbers(evidence: Evidence) -> tuple[Reason, ...]:
    """One sentence for each that can be worked out."""
    return (*_library(evidence), *_traffic(evidence))


def _library(evidence: Evidence) -> tuple[Reason, ...]:
    own, library = evidence.get(run.FLOP_RATE), evidence.get(stated.LIBRARY_FLOP_RATE)
    if not (own and library and 0 < own.number < library.number):
        return ()
    pipe = evidence.get(kernel.TENSOR_SHARE)
    tail = f"; its tensor pipe is {pipe} busy" if pipe else ""
    text = (
        f"{own} where the library reaches {library} on the same shape: {library.number / own.number:.1f}x apart{tail}"
    )
    return (Reason.of(text, own, library),)


def _traffic(evidence: Evidence) -> tuple[Reason, ...]:
    moved, least = evidence.get(expected.DRAM_MOVED), evidence.get(expected.DRAM_LEAST)
    if not (moved and least and moved.number > AGAIN * least.number):
        return ()
    share = evidence.get(kernel.DRAM_SHARE)
    at = f"DRAM at {share}: " if share else ""
    return (
        Reason(
            f"{at}{moved} moved where reading A and B and writing C once takes {least} ({least.note}): {moved.number / least.number:.0f}x "
            "re-reads, so tiles are used too little before they leave the chip"
        ),
    )
