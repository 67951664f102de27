"""The gradient scaler's calls are in the wrong order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "fp16-underflow"
FIX = "scaler.scale(loss).backward(); scaler.unscale_(opt); clip; scaler.step(opt); scaler.update()"
COST = "clipping scaled gradients, or a scale that never adapts: updates are wrong, silently"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """Within one block: unscale_ before clip, step through the scaler, update after step."""
    if not any(callee(c).rsplit(".", 1)[-1] == "scale" and "scaler" in callee(c).lower() for c in source.calls):
        return
    calls = sorted(source.calls, key=lambda c: (c.lineno, c.col_offset))
    scopes: dict[ast.AST | None, list[ast.Call]] = {}
    for call in calls:
        scopes.setdefault(source.function_of(call), []).append(call)
    for mine in scopes.values():
        yield from _in_scope(mine)


def _in_scope(calls: list[ast.Call]) -> Iterator[tuple[ast.expr, str]]:
    def of(name: str) -> list[ast.Call]:
        return [c for c in calls if callee(c).rsplit(".", 1)[-1] == name and "scaler" in callee(c).lower()]

    clips = [c for c in calls if callee(c).rsplit(".", 1)[-1] in ("clip_grad_norm_", "clip_grad_value_")]
    scales, unscales, steps, updates = of("scale"), of("unscale_"), of("step"), of("update")
    if not scales:
        return
    for clip in clips:
        if not any(u.lineno < clip.lineno for u in unscales):
            yield clip, "gradients are clipped while still scaled: call scaler.unscale_(optimizer) before"
    if len(unscales) > 1 and len({ast.dump(u) for u in unscales}) < len(unscales):
        yield unscales[-1], "unscale_ is called twice for one optimizer: the second divides again"
    for step in [c for c in calls if callee(c).lower().rsplit(".", 1)[-1] == "step" and "optim" in callee(c).lower()]:
        if not steps:
            yield step, "optimizer.step() applies scaled gradients: use scaler.step(optimizer)"
    if steps and not updates:
        yield steps[-1], "scaler.update() is missing: the scale never adapts"
    for update in updates:
        if steps and update.lineno < min(s.lineno for s in steps):
            yield update, "scaler.update() comes before scaler.step()"
