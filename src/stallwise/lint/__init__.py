"""Reads training scripts without running them and points at lines that stall, leak or compute something else.

One check per file in `checks`, found by walking. A check sees a parsed `Source` and yields `Remark`s; each names a
cause of the catalogue, so `stallwise explain` has the page.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from stallwise.lint import checks
from stallwise.lint.edit import Edit, edited
from stallwise.lint.remark import Remark
from stallwise.lint.source import Source


@cache
def all_checks() -> tuple[ModuleType, ...]:
    """Every check module, in order of name."""
    return tuple(import_module(f"{checks.__name__}.{m.name}") for m in iter_modules(checks.__path__))


def lint(text: str, name: str = "<source>") -> list[Remark]:
    """The remarks on one file, in order of line; lines marked `# stallwise: ignore[...]` are left out."""
    source = Source(text, name)
    found = {remark for module in all_checks() for remark in _of(module, source)}
    return sorted((r for r in found if not source.ignored(r)), key=lambda r: (r.line, r.column, r.cause, r.message))


def _of(module: ModuleType, source: Source) -> Iterator[Remark]:
    for node, message in module.check(source):
        yield Remark(
            check=module.__name__.rsplit(".", 1)[1].replace("_", "-"),
            cause=module.CAUSE,
            file=source.name,
            line=node.lineno,
            column=node.col_offset + 1,
            message=message,
            fix=module.FIX,
            cost=module.COST,
            edit=_edit(module, node),
        )


def _edit(module: ModuleType, node: ast.AST) -> Edit | None:
    mended = getattr(module, "mended", None)
    return mended(node) if mended is not None else None


def mend(text: str, remarks: Iterable[Remark]) -> str:
    """The text with every safe change made; unchanged where it would not parse afterwards."""
    changed = edited(text, [r.edit for r in remarks if r.edit is not None])
    try:
        ast.parse(changed)
    except (SyntaxError, ValueError):
        return text
    return changed
