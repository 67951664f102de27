"""Which causes the doctor knows, and the family of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from stallwise.causes import all_rules
from stallwise.causes import table_of as _table_of
from stallwise.doctor.findings.rule import Rule


@cache
def families() -> dict[str, str]:
    """Cause to family."""
    return {rule.cause: rule.family for rule in all_rules()}


@cache
def by_cause() -> dict[str, Rule]:
    """Cause to its rule, whose docstring is its page."""
    return {rule.cause: rule for rule in all_rules()}


def table_of(cause: str) -> Mapping[str, Any]:
    """All that is data about a cause (cause.toml)."""
    return _table_of(cause)
