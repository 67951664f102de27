"""Steps as JSON: one object a line (JSONL of any logger), a list of them, or HF Trainer's trainer_state.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.readers._cells import LARGEST_WHOLE
from stallwise.readers._keys import has_unit, is_step, meaning_of, sibling_unit
from stallwise.readers._steps import StepValues
from stallwise.units import Unit

FORMAT = "steps as JSON"
_KEYS = re.compile(
    rb'"(?:[\w/]*loss[\w/]*|step|global_step|iteration|batch|grad_norm|step_time[\w]*|throughput/[\w/]+|mfu|loss_scale)"\s*:'
)
_STATE = (b'"log_history"',)
_TRAINER_FACTS = {"save_steps": run.SAVE_EVERY, "dataloader_num_workers": run.LOADER_WORKERS}


def recognises(name: str, head: bytes) -> bool:
    """Objects with keys of training in them."""
    start = head.lstrip()[:65536]
    if start[:1] not in (b"{", b"[") or b"traceEvents" in start[:4096]:
        return False
    if any(mark in head for mark in _STATE):
        return True
    objects = (start[:1] == b"{" and b"}\n{" in start.replace(b"\r", b"")) or start[:2] in (b"[{", b"[\n")
    return bool(objects) and bool(_KEYS.search(start))


def read(artifact: Artifact) -> Iterator[Item]:
    """Series over the step."""
    values = StepValues(artifact.name)
    text = artifact.text()
    rows = list(_rows(text, artifact.name))
    unit = sibling_unit(key for _, row in rows[:50] for key, _ in _flatten(row))
    for index, (number, row) in enumerate(rows):
        flat = dict(_flatten(row))
        step = next((float(v) for k, v in flat.items() if is_step(k) and _is_number(v)), float(index))
        for key, value in flat.items():
            if is_step(key) or not _is_number(value):
                continue
            meaning = meaning_of(key) or meaning_of(key, unit)
            if meaning is not None and unit and meaning.quantity.unit is Unit.SECOND and not has_unit(key):
                meaning = meaning_of(key, unit)
            if meaning is not None:
                values.put(meaning, step, float(value), number)
    yield from values.items()
    yield from _words(rows, text, artifact.name)


def _rows(text: str, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    stripped = text.lstrip()
    whole: Any = None
    if stripped.startswith("[") or '"log_history"' in stripped:
        try:
            whole = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise UnreadableInput(f"{name} is not whole JSON: {error}", hint="copy the file again") from error
    if isinstance(whole, dict):
        whole = whole.get("log_history", [])
    if isinstance(whole, list):
        yield from ((i + 1, row) for i, row in enumerate(whole) if isinstance(row, dict))
        return
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield number, row


def _flatten(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < LARGEST_WHOLE
    return isinstance(value, float)


def _words(rows: list[tuple[int, dict[str, Any]]], text: str, name: str) -> Iterator[Item]:
    for key in ("amp", "precision", "dtype", "mixed_precision"):
        word = next((str(r[key]) for _, r in rows if isinstance(r.get(key), str)), "")
        if word:
            yield Fact(run.PRECISION, word.lower(), Source(name))
            break
    if '"log_history"' in text:
        try:
            state = json.loads(text)
        except (ValueError, RecursionError):
            return
        for key, quantity in _TRAINER_FACTS.items():
            if isinstance(state.get(key), (int, float)) and state[key] > 0:
                yield Fact(quantity, float(state[key]), Source(name, key))
    if not rows:
        yield Note("no objects with steps could be read", Source(name))
