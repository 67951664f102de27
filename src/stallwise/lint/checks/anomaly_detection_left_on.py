"""Anomaly detection is on for the whole run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee, is_constant

CAUSE = "host-work-unattributed"
FIX = "turn it on for the few steps that need it"
COST = "a stack trace for every forward op and a NaN check for every backward one: steps take 2 to 10 times longer"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """set_detect_anomaly(True), or the context around the loop."""
    for call in source.calls:
        name = callee(call).rsplit(".", 1)[-1]
        if name == "set_detect_anomaly" and call.args and is_constant(call.args[0], True) and not source.rare(call):
            yield call, "anomaly detection stays on for every step"
        elif name == "detect_anomaly" and any(
            source.inside(loop, a) for a in source.above(call) for loop in source.training_loops
        ):
            if isinstance(source.parents.get(call), ast.withitem):
                yield call, "anomaly detection stays on for every step"
