"""States of an engine over time, from log lines that print them: which keys are which column of `engine_samples`."""

from __future__ import annotations

from functools import lru_cache

from stallwise.meaning.name import Name, name

# Quantities as a log prints them at one moment -> column of the table of samples.
COLUMNS = {
    "serve.running": "running", "serve.waiting": "waiting", "serve.kv_max": "kv_share", "serve.preempted": "paused",
    "serve.hit_share": "hit_share", "serve.prefill_rate": "prompt_token_per_s", "serve.generation_rate": "generation_token_per_s",
    "serve.output_rate": "generation_token_per_s",
}  # fmt: skip
# A line is a sample when it says how much runs or waits, and how fast or how full it is.
STATES = {"running", "waiting"}
MEASURES = {"kv_share", "prompt_token_per_s", "generation_token_per_s"}


@lru_cache(maxsize=4096)
def column_of(key: str, unit: str) -> tuple[str, Name] | None:
    """The column that a key is, and how its number is scaled."""
    words = key.split(". ")[-1].lstrip("# ")  # "Decode batch. #running-req"
    named = name((words,), unit)
    column = COLUMNS.get(named.quantity.name) if named is not None else None
    return (column, named) if column is not None and named is not None else None


def is_wanted(key: str, unit: str) -> bool:
    """True for a key of an engine's state."""
    return column_of(key, unit) is not None


def is_sample(columns: set[str]) -> bool:
    """Whether these columns together are a state of an engine."""
    return bool(columns & STATES) and bool(columns & MEASURES)
