"""A collective is called on some ranks only: the rest wait for ever."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "collective-mismatch"
FIX = "call it on every rank and use the result where it is needed"
COST = "the job hangs until the watchdog kills it"


COLLECTIVES = set(
    "all_reduce all_gather all_gather_into_tensor all_gather_object reduce_scatter reduce_scatter_tensor broadcast "
    "broadcast_object_list barrier reduce all_to_all all_to_all_single gather scatter wait_for_everyone".split()
)
RANK = re.compile(r"(^|[._])(local_)?rank|is_main_process|is_master|is_rank|get_rank", re.I)


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """dist.something() under `if rank == 0:` with no twin in the else branch."""
    for call in source.calls:
        name = callee(call)
        if name.rsplit(".", 1)[-1] not in COLLECTIVES or not _is_distributed(name):
            continue
        child: ast.AST = call
        for above in source.above(call):
            if isinstance(above, ast.If) and RANK.search(ast.unparse(above.test)) and child is not above.test:
                if not _twin(above, child, name):
                    yield call, f"{name}() under a test of the rank: the other ranks never call it"
                break
            child = above


def _is_distributed(name: str) -> bool:
    return name.startswith(("dist.", "torch.distributed.", "distributed.", "accelerator.", "fabric."))


def _twin(test: ast.If, child: ast.AST, name: str) -> bool:
    """The other branch calls the same collective, so every rank does."""
    other = test.orelse if child in test.body else test.body
    return any(isinstance(c, ast.Call) and callee(c) == name for s in other for c in ast.walk(s))
