"""Which causes the doctor knows, and the family of each."""

from __future__ import annotations

from functools import cache

from stallwise.findings.rule import Rule
from stallwise.rules import all_rules


@cache
def families() -> dict[str, str]:
    """Cause to family."""
    return {rule.cause: rule.family for rule in all_rules()}


@cache
def by_cause() -> dict[str, Rule]:
    """Cause to its rule, whose docstring is its page."""
    return {rule.cause: rule for rule in all_rules()}
