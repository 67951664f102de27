"""What proves that nothing is wrong, one file for each kind of artifact.

File name = function name. Each returns a Proof with its numbers (perhaps lacking something, and then it says what), or
None where its artifact is not here. Found by walking, never registered.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from stallwise.findings.proof import Prover


@cache
def all_proofs() -> tuple[Prover, ...]:
    """Every proof the product knows, in order of name."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(getattr(import_module(f"{__name__}.{name}"), name) for name in names)
