"""What proves that nothing is wrong, one file for each kind of artifact.

File name = function name. Each returns a Proof with its numbers (perhaps lacking something, and then it says what), or
None where its artifact is not here. Found by walking, never registered. Each file says under "Refuted by" which second number
would refute it, and looks for that number: worst and latest value, every rank, card and kernel.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from stallwise.causes import index
from stallwise.doctor.findings.proof import Proof, Prover
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.inputs import Inputs


@cache
def all_proofs() -> tuple[Prover, ...]:
    """Every proof the product knows, in order of name."""
    return tuple(_proof(name, Inputs.of(row)) for name, row in index()["proofs"].items())


def _proof(name: str, reads: Inputs) -> Prover:
    """Loaded where something that it looks at was read."""

    def prove(evidence: Evidence) -> Proof | None:
        if not reads.present(evidence):
            return None
        found: Proof | None = getattr(import_module(f"{__name__}.{name}"), name)(evidence)
        return found

    prove.__module__, prove.__name__ = f"{__name__}.{name}", name
    return prove
