"""A recorded load: CSV or JSON lines of arrival time, prompt tokens and output tokens (Azure's and Mooncake's traces fit)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from stallwise.errors import UnreadableInput

TIMES = ("arrival_s", "arrived_at", "arrival_time", "time_s", "timestamp", "time")
PROMPTS = ("prompt_tokens", "contexttokens", "input_length", "num_prefill_tokens", "input_tokens", "prompt_len", "isl")
OUTPUTS = (
    "output_tokens",
    "generatedtokens",
    "output_length",
    "num_decode_tokens",
    "completion_tokens",
    "output_len",
    "osl",
)


def recorded(path: str) -> Iterator[tuple[float, int, int]]:
    """(second since the first, prompt, output) in order of the file, one at a time."""
    first: float | None = None
    for number, row in enumerate(_rows(path), 1):
        plain = {str(k).strip().lower(): v for k, v in row.items()}
        try:
            at, key = _first(plain, TIMES)
            seconds = _seconds(at, key)
            prompt, output = (max(1, int(float(str(_first(plain, names)[0])))) for names in (PROMPTS, OUTPUTS))
        except (KeyError, ValueError) as error:
            raise UnreadableInput(
                f"{path} row {number} has no time, prompt or output: {error}",
                hint="columns arrival_s, prompt_tokens, output_tokens",
            ) from None
        first = seconds if first is None else first
        yield seconds - first, prompt, output


def _rows(path: str) -> Iterator[dict[str, Any]]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            if path.endswith((".jsonl", ".json")):
                for line in stream:
                    if line.strip():
                        entry = json.loads(line)
                        if not isinstance(entry, dict):
                            raise ValueError("a line is not an object")
                        yield entry
            else:
                yield from csv.DictReader(stream)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise UnreadableInput(
            f"cannot read the load {path}: {error}", hint="a CSV with a header, or JSON lines"
        ) from None


def _first(row: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, str]:
    for name in names:
        if row.get(name) not in (None, ""):
            return row[name], name
    raise KeyError(names[0])


def _seconds(value: Any, key: str) -> float:
    text = str(value)
    try:
        number = float(text)
    except ValueError:
        return datetime.fromisoformat(text[:26].strip()).timestamp()
    # Mooncake writes whole milliseconds.
    return number / 1000 if isinstance(value, int) and key == "timestamp" else number
