"""Evaluation builds an autograd graph that nobody uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stallwise.lint.source import Source, callee, dotted

CAUSE = "oom-eval-grad"
FIX = "wrap it in torch.inference_mode() or torch.no_grad()"
COST = "activations of the whole forward are kept: several times the memory of inference"


EVAL = re.compile(r"(^|_)(eval\w*|valid\w*|validate|test|infer\w*|predict\w*)($|_)", re.I)
OFF = ("no_grad", "inference_mode", "set_grad_enabled", "eval_mode")


def check(source: Source) -> Iterator[tuple[ast.stmt, str]]:
    """A function named after evaluation, or code after model.eval(), that calls the model outside no_grad."""
    for function in source.functions.values():
        if EVAL.search(function.name) and not _guarded(function) and _calls_model(function) and not _trains(function):
            if not _called_under_guard(function.name, source):
                yield function, f"{function.name}() runs the model with gradients on"


def _guarded(node: ast.AST) -> bool:
    decorated = [dotted(d) for d in getattr(node, "decorator_list", [])]
    names = [dotted(i.context_expr) for w in ast.walk(node) if isinstance(w, ast.With) for i in w.items]
    calls = [callee(c) for c in ast.walk(node) if isinstance(c, ast.Call)]
    return any(word in name for name in (*decorated, *names, *calls) for word in OFF)


def _called_under_guard(name: str, source: Source) -> bool:
    calls = [c for c in source.calls if callee(c).rsplit(".", 1)[-1] == name]
    return bool(calls) and all(
        any(
            isinstance(a, ast.With) and any(o in dotted(i.context_expr) for i in a.items for o in OFF)
            for a in source.above(c)
        )
        for c in calls
    )


def _calls_model(node: ast.AST) -> bool:
    names = {callee(c).rsplit(".", 1)[-1].removesuffix("()") for c in ast.walk(node) if isinstance(c, ast.Call)}
    return bool(names & {"model", "net", "module", "network", "forward", "self.model"})


def _trains(node: ast.AST) -> bool:
    return any(callee(c).endswith(".backward") for c in ast.walk(node) if isinstance(c, ast.Call))
