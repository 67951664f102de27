"""Model and batch shapes that logs print: vocabulary, width, heads, layers, sequence, micro-batch, parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.quantity import Quantity

FORMAT = "model settings"
MAX_BYTES = 16 << 20


def _key(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?:{names})['\"]?\s*[:=]\s*['\"]?(\d[\d_,]*(?:\.\d+)?)\s*([BMK]\b)?", re.I)


_KEYS: tuple[tuple[Quantity, re.Pattern[str]], ...] = (
    (stated.VOCAB, _key("vocab_size|padded_vocab_size|n_vocab|num_embeddings")),
    (stated.HIDDEN, _key("hidden_size|d_model|n_embd|hidden_dim|emb_dim|dim")),
    (stated.HEADS, _key("num_attention_heads|n_heads?|num_heads")),
    (stated.LAYERS, _key("num_hidden_layers|n_layers?|num_layers")),
    (stated.SEQUENCE, _key("seq_len(?:gth)?|seqlen|max_seq_len(?:gth)?|sequence_length|block_size|context_length")),
    (stated.MICROBATCH, _key("micro_batch_size(?:_per_gpu)?|per_device_train_batch_size|batch_size|mbs|micro_batch")),
    (stated.PARAMETERS, _key("num params|num_params|n_params|total parameters|parameters|params")),
)
_PARAMETERS = re.compile(
    r"(?<![\d.,])([\d,]{7,20}|\d{1,20}(?:\.\d+)?\s?[BM])\s+(?:total |trainable )?param(?:eter)?s", re.I
)
_COUNT = re.compile(r"num(?:ber of)?[ _]params(?:eters)?[:= ]+(\d{6,})", re.I)
_SCALE = {"b": 1e9, "m": 1e6, "k": 1e3}
_HINT = re.compile(rb"vocab_size|hidden_size|num_hidden_layers|seq_len|batch_size|params|parameters|n_layers", re.I)


def recognises(name: str, head: bytes) -> bool:
    """Any text that prints one of these settings."""
    start = head[:262144]
    return b"\x00" not in start[:4096] and b"traceEvents" not in start and bool(_HINT.search(start))


def read(artifact: Artifact) -> Iterator[Item]:
    """Each setting once, at its first place."""
    seen: set[str] = set()
    for number, line in enumerate(artifact.text(MAX_BYTES).splitlines(), 1):
        text = line[:8000]
        source = Source(artifact.name, f"line {number}")
        for quantity, pattern in _KEYS:
            match = pattern.search(text)
            if match and quantity.name not in seen:
                seen.add(quantity.name)
                yield Fact(quantity, _number(match[1], match[2]), source)
        match = _COUNT.search(text) or _PARAMETERS.search(text)
        if match and stated.PARAMETERS.name not in seen:
            seen.add(stated.PARAMETERS.name)
            digits = match[1].strip()
            suffix = digits[-1] if digits[-1].isalpha() else None
            yield Fact(stated.PARAMETERS, _number(digits.rstrip("BMbm "), suffix), source)


def _number(digits: str, suffix: str | None) -> float:
    value = float(digits.replace(",", "").replace("_", "") or 0)
    return value * _SCALE.get((suffix or "").lower(), 1.0)
