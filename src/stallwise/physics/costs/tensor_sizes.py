"""Which tensor has this many bytes: the few shapes that grow large in transformers, by arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

# Allocators round up to 512 bytes or 2 MiB, messages to four digits.
CLOSE = 0.006


def name_of_size(
    size_bytes: float,
    *,
    vocab: float = 0,
    heads: float = 0,
    sequence: float = 0,
    microbatch: float = 1,
    hidden: float = 0,
) -> str | None:
    """A sentence such as "tokens x vocab in bf16", or None where nothing known has this size."""
    if not size_bytes:
        return None
    best: tuple[float, str] | None = None
    for name, elements in _candidates(vocab, heads, sequence, microbatch or 1, hidden):
        for dtype, width in (("16-bit", 2), ("fp32", 4)):
            off = abs(size_bytes / (elements * width) - 1)
            if off < CLOSE and (best is None or off < best[0]):
                best = (off, f"{name} in {dtype}")
    return best[1] if best else None


def _candidates(
    vocab: float, heads: float, sequence: float, microbatch: float, hidden: float
) -> Iterator[tuple[str, float]]:
    tokens = sequence * microbatch
    if vocab and tokens:
        yield "tokens x vocab (logits)", tokens * vocab
        if sequence > 1:
            yield "(tokens - 1) x vocab (shifted logits)", microbatch * (sequence - 1) * vocab
    if heads and sequence:
        yield "heads x sequence^2 (attention scores)", microbatch * heads * sequence**2
    if hidden and vocab:
        yield "vocab x hidden (embedding or head)", vocab * hidden
    if hidden and tokens:
        yield "tokens x hidden (one activation)", tokens * hidden
        yield "tokens x 4 hidden (feed-forward activation)", tokens * hidden * 4


VOCABULARY = 20_000  # a last dimension this long is a vocabulary
MOST_DIGITS = 18  # of a dimension that a machine can count
LONG = 256  # a square of this side or more is a score matrix


def name_of_shape(shape: str) -> str | None:
    """What a tensor is by its printed shape, "64 x 16 x 4096 x 4096" or "64,16,4096,4096"."""
    dims = [
        int(part) for part in shape.replace(",", " x ").split(" x ") if part.isdecimal() and len(part) <= MOST_DIGITS
    ]
    if len(dims) >= 3 and dims[-1] == dims[-2] >= LONG:
        return "heads x sequence^2 (attention scores)"
    if len(dims) >= 2 and dims[-1] >= VOCABULARY:
        return "tokens x vocab (logits)"
    return None
