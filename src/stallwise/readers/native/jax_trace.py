"""JAX and XLA traces in Chrome's JSON (`*.trace.json.gz`, `perfetto_trace.json.gz`): the same timeline as PyTorch's."""

from __future__ import annotations

from stallwise.readers.native.torch_trace import is_chrome_trace, is_of_xla, read

__all__ = ["EXCLUSIVE", "FORMAT", "read", "recognises"]

FORMAT = "JAX trace"
EXCLUSIVE = True


def recognises(name: str, head: bytes) -> bool:
    """Processes are named as XLA names its planes."""
    return is_chrome_trace(name, head) and is_of_xla(head)
