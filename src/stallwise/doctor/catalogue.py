"""Which causes the doctor knows, and the family of each."""

from __future__ import annotations

from functools import cache

from stallwise.rules import all_rules


@cache
def families() -> dict[str, str]:
    """Cause to family."""
    return {rule.cause: rule.family for rule in all_rules()}
