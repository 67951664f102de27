"""JSON of the form {"rows": [...]}: steps of a run, or statistics of layers by step or context."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import numerics, run, stated
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source, Table
from stallwise.readers._keys import Meaning, is_step, meaning_of, words_of
from stallwise.readers._layers import is_layer_row, number, table_of
from stallwise.readers._steps import StepValues

FORMAT = "rows as JSON"
_ROWS = re.compile(rb'"(?:rows|layers|steps|stats|records|history)"\s*:\s*\[\s*\{')
_CONFIG = {"t": stated.SEQUENCE, "v": stated.VOCAB, "b": stated.MICROBATCH, "layers": stated.LAYERS}
MAX_BYTES = 256 << 20


def recognises(name: str, head: bytes) -> bool:
    """An object that holds a list of rows, or a failed run's message and config."""
    start = head.lstrip()[:65536]
    if start[:1] != b"{" or b"traceEvents" in start[:4096] or b'"log_history"' in start:
        return False
    return bool(_ROWS.search(start)) or (b'"message"' in start and b'"config"' in start)


def read(artifact: Artifact) -> Iterator[Item]:
    """Series over steps, or a table of layers."""
    try:
        whole = json.loads(artifact.text(MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is not whole JSON: {error}", hint="write it again") from error
    if not isinstance(whole, dict):
        return
    source = Source(artifact.name)
    yield from _config(whole.get("config"), source)
    for key in ("rows", "layers", "steps", "stats", "records", "history"):
        rows = [r for r in whole.get(key) or () if isinstance(r, dict)] if isinstance(whole.get(key), list) else []
        if rows and is_layer_row(rows[0]):
            yield table_of(rows, source)
        elif rows:
            yield from _steps(rows, artifact.name)


def _config(config: Any, source: Source) -> Iterator[Item]:
    if not isinstance(config, dict):
        return
    for key, value in config.items():
        quantity = _CONFIG.get(str(key).lower())
        amount = number(value)
        if quantity is not None and amount == amount:
            yield Fact(quantity, amount, source)


def _steps(rows: list[dict[str, Any]], name: str) -> Iterator[Item]:
    values = StepValues(name)
    layers: list[dict[str, Any]] = []
    for index, row in enumerate(rows):
        step = next((number(v) for k, v in row.items() if is_step(k)), float(index))
        for key, value in row.items():
            if isinstance(value, list) and {"amax", "absmax"} & set(words_of(key)):
                layers += [{"layer": f"{key}[{i}]", "step": step, "amax": v} for i, v in enumerate(value)]
            elif not isinstance(value, (list, dict, str, bool)) and value is not None and not is_step(key):
                meaning = _meaning(key)
                if meaning is not None:
                    values.put(meaning, step, number(value), index + 1)
    yield from values.items()
    if layers:
        table: Table = table_of(layers, Source(name))
        yield table


def _meaning(key: str) -> Meaning | None:
    words = set(words_of(key))
    if "zero" in words and words & {"grad", "gradient", "gradients", "grads"}:
        return Meaning(numerics.ZERO_GRADS)
    if words <= {"allocated", "reserved", "bytes"} and "allocated" in words:
        return Meaning(run.GPU_MEMORY)
    return meaning_of(key)
