"""Yes and no as people and programs write them, and what follows from a no: nothing happened.

Every reader of keys and values asks here, and `Evidence.add` drops a denied event whoever read it: the rules of an event
ask only whether it is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

YES = frozenset({"yes", "true", "on", "y", "t", "1", "1.0", "enabled", "active"})
NO = frozenset(
    {
        "no", "false", "off", "n", "f", "0", "0.0", "none", "null", "nil", "~", "disabled", "inactive", "never", "not",
        "without", "absent",
    }
)  # fmt: skip
EVENTS = frozenset(
    {"memory.failed", "memory.host_killed", "memory.kv_no_room"}
)  # that the fact exists says it happened
_NO_WORDS = "|".join(sorted((re.escape(w) for w in NO), key=len, reverse=True))
# A key with a no behind it: TOML, JSON, YAML, INI and `key=value` alike. What follows ends the value.
_DENIED_PAIR = re.compile(
    rf"""(?P<quote>["']?)(?P<key>[A-Za-z][\w.-]{{0,60}})(?P=quote)[ \t]{{0,8}}[:=][ \t]{{0,8}}["']?(?:{_NO_WORDS})["']?"""
    r"""[ \t]{0,8}(?=[,;}\])\n\r]|$|\s)""",
    re.IGNORECASE,
)


def flag_of(value: Any) -> float | None:
    """1 for yes, 0 for no, None for what is neither."""
    if value is None:
        return 0.0
    if isinstance(value, bool):
        return float(value)
    word = str(value).strip().strip(".!").lower()
    return 1.0 if word in YES else 0.0 if word in NO else None


def is_denied_event(quantity: str, value: Any) -> bool:
    """ "oom = false": a fact of this quantity would say that it happened."""
    return quantity in EVENTS and flag_of(value) == 0.0


def without_denied(text: str, is_trouble: Callable[[str], bool]) -> str:
    """The text without the keys of troubles that it denies: their words are no evidence of them."""
    return _DENIED_PAIR.sub(lambda m: " " if is_trouble(m["key"]) else m[0], text)
