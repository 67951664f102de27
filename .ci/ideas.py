"""What nobody uses, and what is said twice: names that stand nowhere but where they are defined, and functions with one body.

    python .ci/ideas.py            the report
    python .ci/ideas.py --check    fails where there is more of either than there was

Cheap on purpose: names are looked for as words in all files, bodies are compared by their syntax trees with local names
and texts taken out. Click calls commands, plugins are found by their folders; words in tables count as uses.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
SOURCE = REPO / "src" / "stallwise"
USERS = ("src", "bench", "docs", "examples", ".ci")  # a name that only a test uses is idle, too
TEXTS = {".py", ".toml", ".md", ".html", ".js", ".csv"}
LEAST_NODES = 30  # of a body: shorter ones are alike by nature
MOST_IDLE = 12  # names; and groups of bodies said twice. Six of each were left when this was last looked at: no drawer is to fill
MOST_TWICE = 10
FOUND_BY_FOLDER = ("src/stallwise/experiment/trials", "src/stallwise/causes")  # what stands in them is called by whoever walks them
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED_BY_NAME = re.compile(r"__\w+__$|visit_\w+|do_[A-Z]+$|pytest_\w+|on_\w+|[A-Z_]+$|command$|_\w*repr\w*$")


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    """Every file of the package."""
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(SOURCE.rglob("*.py"))]


def words() -> Counter[str]:
    """How often each word stands in what ships and what measures it."""
    found: Counter[str] = Counter()
    for folder in USERS:
        for path in (REPO / folder).rglob("*"):
            if path.suffix in TEXTS and path.is_file():
                found.update(_WORD.findall(path.read_text(encoding="utf-8", errors="replace")))
    return found


def defined(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions, classes and methods with the lines they begin at; what a base class may call is left out."""
    called = {id(x) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.bases for x in node.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.decorator_list:
            if id(node) not in called:
                yield node.name, node.lineno


def idle() -> list[str]:
    """Names that stand only where they are defined."""
    said = words()
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees():
        if str(path.relative_to(REPO)).startswith(FOUND_BY_FOLDER):
            continue
        for name, line in defined(tree):
            if not _CALLED_BY_NAME.match(name):
                places[name].append(f"{path.relative_to(REPO)}:{line} {name}")
    return [where for name, found in places.items() if said[name] <= len(found) for where in found]


def shape_of(node: object, own: set[str]) -> str:
    """A piece of a body without what its writer was free to choose."""
    if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and node.id in own):
        return "_"
    if isinstance(node, ast.AST):
        return f"{type(node).__name__}({','.join(shape_of(value, own) for _, value in ast.iter_fields(node))})"
    return f"[{','.join(shape_of(x, own) for x in node)}]" if isinstance(node, list) else repr(node)


def body_of(function: ast.FunctionDef, nodes: list[ast.AST]) -> str:
    """Its statements without names and docstring."""
    kept = function.body[1:] if ast.get_docstring(function) else function.body
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return shape_of(kept, own | {n.arg for n in nodes if isinstance(n, ast.arg)})


def twice() -> list[list[str]]:
    """Groups of functions that do the same thing in the same words."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees():
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            if len(nodes := list(ast.walk(node))) >= LEAST_NODES:
                groups[body_of(node, nodes)].append(f"{path.relative_to(REPO)}:{node.lineno} {node.name}")
    return sorted(found for body, found in groups.items() if body != "[]" and len(found) > 1)


def main() -> None:
    """Prints both lists."""
    unused, repeated = idle(), twice()
    print(f"{len(unused)} names that nobody uses (at most {MOST_IDLE}):", *unused, sep="\n  ")
    print(f"{len(repeated)} ideas said twice (at most {MOST_TWICE}):", *(" = ".join(x) for x in repeated), sep="\n  ")
    if "--check" in sys.argv and (len(unused) > MOST_IDLE or len(repeated) > MOST_TWICE):
        raise SystemExit("more than there was: use it, delete it, or say it once")


if __name__ == "__main__":
    main()
