"""A parsed script with the questions checks ask: is this line hot, is it rare, what is this name?

Hot means: runs once a step. A loop is a training loop if its body (or a function of this file that it calls) runs a
backward pass or an optimizer step, or feeds batches of a loader to a model. Rare means: under a test that holds only
every so many steps (`step % 100 == 0`), once (`step == 0`, `first_batch`), or on one rank while logging.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property

from stallwise.errors import UnreadableInput
from stallwise.lint.remark import Remark
from stallwise.lint.tensors import tensor_names

IGNORE = re.compile(r"#\s*stallwise:\s*ignore(?:\[([^\]]*)\])?")
NOQA = re.compile(r"#\s*noqa\b(?::\s*([\w, -]+))?", re.I)  # as other linters are told; with codes, ours among them
Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
RARE_WORDS = re.compile(
    r"(log|print|save|eval|val|report|debug|verbose|interval|every|freq|first|warm|last|main_process|rank)", re.I
)


class Source:
    """One file: tree, parents, loops and names."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines = text.splitlines()
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            raise UnreadableInput(
                f"{name} is not Python that can be parsed: {error}" + (f" (line {line})" if line else ""),
                hint="check it with: python -m py_compile FILE",
            ) from error
        self.parents: dict[ast.AST, ast.AST] = {
            child: parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)
        }

    # -- structure

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions and methods by their last name."""
        return {n.name: n for n in ast.walk(self.tree) if isinstance(n, Function)}

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call of the file."""
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.Call)]

    @cached_property
    def training_loops(self) -> list[Loop]:
        """Innermost loops that train: each pass is a step or a micro-batch."""
        loops = [n for n in ast.walk(self.tree) if isinstance(n, Loop) and self._trains(n)]
        return [loop for loop in loops if not any(o is not loop and self.inside(o, loop) for o in loops)]

    def _trains(self, loop: Loop) -> bool:
        if _steps(loop.body):
            return True
        called = {callee(c).rsplit(".", 1)[-1] for s in loop.body for c in ast.walk(s) if isinstance(c, ast.Call)}
        return any(name in self.functions and _steps(self.functions[name].body) for name in called)

    @cached_property
    def hot_functions(self) -> set[Function]:
        """Functions of this file that a training loop calls, directly or through others, and module forwards."""
        hot: set[Function] = {f for f in self.functions.values() if f.name == "forward" and self.training_loops}
        hot |= {f for f in self.functions.values() if f.name == "training_step" and _in_class(f, self)}
        todo: list[ast.AST] = [*self.training_loops, *hot]
        while todo:
            for call in ast.walk(todo.pop()):
                if isinstance(call, ast.Call) and not self.rare(call):
                    target = self.functions.get(callee(call).rsplit(".", 1)[-1])
                    if target is not None and target not in hot and not _evaluates(target.name):
                        hot.add(target)
                        todo.append(target)
        return hot

    def inside(self, node: ast.AST, ancestor: ast.AST) -> bool:
        """True if the node lies below the ancestor."""
        return any(a is ancestor for a in self.above(node))

    def above(self, node: ast.AST) -> list[ast.AST]:
        """From the parent up to the module."""
        found = []
        while node in self.parents:
            node = self.parents[node]
            found.append(node)
        return found

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        return next((a for a in self.above(node) if isinstance(a, Function)), None)

    def loop_of(self, node: ast.AST) -> Loop | None:
        """The training loop around a node, if any; loops that train lie in no other."""
        loops = self.training_loops
        return next((a for a in self.above(node) if isinstance(a, Loop) and a in loops), None)

    # -- heat

    def hot(self, node: ast.AST) -> bool:
        """Runs once a step, every step."""
        loop = self.loop_of(node)
        if loop is not None:
            return not self.rare(node, below=loop) and not _in_header(node, loop, self)
        function = self.function_of(node)
        return function in self.hot_functions and not self.rare(node)

    def rare(self, node: ast.AST, below: ast.AST | None = None) -> bool:
        """Under a test that holds only now and then, or in evaluation."""
        child = node
        for ancestor in self.above(node):
            if ancestor is below:
                break
            if isinstance(ancestor, ast.If) and child in ancestor.body and self._holds_seldom(ancestor.test):
                return True
            if isinstance(ancestor, ast.ExceptHandler):
                return True
            if isinstance(ancestor, Function):
                return _evaluates(ancestor.name)
            child = ancestor
        return False

    def _holds_seldom(self, test: ast.expr) -> bool:
        for part in ast.walk(test):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                return True
            if isinstance(part, ast.Compare) and any(isinstance(o, ast.Eq) for o in part.ops):
                sides = [part.left, *part.comparators]
                if any(isinstance(s, ast.Constant) and isinstance(s.value, int) for s in sides):
                    return True
            if isinstance(part, ast.Name | ast.Attribute) and RARE_WORDS.search(dotted(part)):
                return True
            if isinstance(part, ast.Name) and (value := self._assigned.get(part.id)) is not None and value is not test:
                if any(isinstance(p, ast.BinOp) and isinstance(p.op, ast.Mod) for p in ast.walk(value)):
                    return True  # should_log = step % 100 == 0; if should_log: ...
        return False

    @cached_property
    def _assigned(self) -> dict[str, ast.expr]:
        """What each name is first given."""
        found: dict[str, ast.expr] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, node.value)
        return found

    # -- names

    @cached_property
    def tensors(self) -> set[str]:
        """Names that hold tensors, as far as assignments tell."""
        return tensor_names(self.tree)

    def is_tensor(self, node: ast.expr) -> bool:
        """A name or an expression that is surely a tensor."""
        if isinstance(node, ast.Name):
            return node.id in self.tensors
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left) or self.is_tensor(node.right)
        if isinstance(node, ast.Subscript):
            return self.is_tensor(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr not in ("item", "tolist", "size", "numel", "dim") and self.is_tensor(node.func.value)
        return False

    def ignored(self, remark: Remark) -> bool:
        """The line says `# stallwise: ignore[cause]` or `# noqa: cause` (or either without a list)."""
        line = self.lines[remark.line - 1] if remark.line <= len(self.lines) else ""
        match = IGNORE.search(line) or NOQA.search(line)
        if match is None:
            return False
        names = {n.strip() for n in (match[1] or "").split(",") if n.strip()}
        return not names or remark.cause in names or remark.check in names


def callee(call: ast.Call) -> str:
    """The dotted name of what is called; "" where it has none."""
    return dotted(call.func)


def dotted(node: ast.AST) -> str:
    """a.b.c for attributes of names; calls inside are shown as (): a().b"""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{dotted(node.func)}()"
    return ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def is_constant(node: ast.expr | None, value: object) -> bool:
    """A literal of exactly this value."""
    return (isinstance(node, ast.Constant) and node.value is value) or (
        isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value
    )


def _steps(body: list[ast.stmt]) -> bool:
    """The statements run a backward pass or an optimizer step."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = dotted(node.func).lower()
                if node.func.attr == "backward" or re.search(r"(optim\w*|opt|scaler)\.step$", name):
                    return True
    return False


def _evaluates(name: str) -> bool:
    return re.search(r"(eval|valid|test|predict|generate|sample)", name, re.I) is not None


def _in_class(function: Function, source: Source) -> bool:
    return isinstance(source.parents.get(function), ast.ClassDef)


def _in_header(node: ast.AST, loop: Loop, source: Source) -> bool:
    """Part of the loop's own line (`for x in loader.to(...)`) or its else branch: runs once."""
    chain = [node, *source.above(node)]
    below = chain[chain.index(loop) - 1] if loop in chain else node
    return below not in loop.body and not isinstance(loop, ast.While)
