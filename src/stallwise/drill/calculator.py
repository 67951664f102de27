"""A small calculator that knows units and the catalogue: `70e9*2 / h100.bandwidth`, `140GB / 8 / 3.35TB/s`."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

from stallwise.errors import BadRequest
from stallwise.physics.specs.hardware import find_gpu
from stallwise.physics.specs.models import find_model

_PREFIX = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(
    r"(?<![\w.])(\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?)\s*"
    r"(?:(ns|us|ms|min|s|h)\b|((?:[kKMGTP]i?)?)(?:FLOPs?/s|FLOPS|FLOPs?|[Bb]ytes?/s|B/s|bit/s|B|bytes?|tok/s|tokens?)|([kKMGTP])\b|(%))?"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_NAME = re.compile(r"[A-Za-z][\w-]{0,60}(?:\.\d{1,6}[\w-]{0,60}){0,4}\.[a-z_0-9]{1,60}")
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "log2": math.log2,
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}
MOST_CHARACTERS = 400
MOST_POWER = 64.0  # larger exponents are typing errors and would only keep the machine busy
HINT = "like 70e9*2 / 3.35TB/s, or 140GB / h100.memory, or 989TFLOPS * 22%"


def calculate(text: str) -> float:
    """The value in SI; units are multiplied out, nothing is ever executed."""
    if len(text) > MOST_CHARACTERS:
        raise BadRequest("that is too long to work out", hint=HINT)
    names: dict[str, float] = {}

    def known(match: re.Match[str]) -> str:
        names[f"_n{len(names)}"] = _of_catalogue(match[0])
        return f"_n{len(names) - 1}"

    ready = _NUMBER.sub(_plain_number, _NAME.sub(known, _THOUSANDS.sub("", text.replace("^", "**").replace("×", "*"))))
    try:
        value = _value(ast.parse(ready.strip(), mode="eval").body, names)
    except (SyntaxError, ZeroDivisionError, OverflowError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise BadRequest(f"'{text}' cannot be worked out: {error}", hint=HINT) from error
    if isinstance(value, complex) or not math.isfinite(value):
        raise BadRequest(f"'{text}' has no finite value", hint=HINT)
    return value


def _plain_number(match: re.Match[str]) -> str:
    number = float(match[1].replace("_", ""))
    if match[2]:
        number *= _TIMES[match[2]]
    elif match[3] is not None:
        # "70B" of parameters is seventy billion; bytes without a prefix are written "70 bytes".
        bare_b = match[3] == "" and match[0].rstrip().endswith("B")
        number *= 1e9 if bare_b else _PREFIX.get(match[3], 1.0)
    elif match[4]:
        number *= _PREFIX[match[4]]
    elif match[5]:
        number *= 0.01
    return repr(number)


def _of_catalogue(name: str) -> float:
    thing, _, field = name.rpartition(".")
    card = find_gpu(thing)
    if card is not None:
        known = {"bandwidth": card.bandwidth_byte_per_s, "memory": card.memory_bytes, "l2": card.l2_bytes, "sms": float(card.sm_count),
                 "nvlink": card.nvlink_byte_per_s, "pcie": card.pcie_byte_per_s, "power": card.power_w}  # fmt: skip
        value = known.get(field, card.peak_flop_per_s.get(field))
        if value is None:
            raise BadRequest(f"{thing} has no '{field}'", hint="one of " + ", ".join((*known, *card.peak_flop_per_s)))
        return float(value)
    model = find_model(thing)
    fields = {
        "parameters": "parameters",
        "layers": "layers",
        "hidden": "hidden",
        "vocab": "vocab",
        "heads": "heads",
        "kv_heads": "kv_heads",
    }
    if field not in fields:
        raise BadRequest(f"{thing} has no '{field}'", hint="one of " + ", ".join(fields))
    return float(getattr(model, fields[field]))


def _value(node: ast.AST, names: dict[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.operand, names))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.Pow):
            if abs(right) > MOST_POWER:
                raise ValueError("the exponent is too large")
            return float(left**right)
        if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](left, right)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _FUNCTIONS
        and not node.keywords
    ):
        return float(_FUNCTIONS[node.func.id](*(_value(a, names) for a in node.args)))
    raise ValueError("only numbers, units, + - * / ** and names like h100.bandwidth are known")


def shown(value: float) -> str:
    """With a prefix a person reads: 1.4e+11 is 140 G."""
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g} {letter}"
    return f"{value:.4g}" if abs(value) >= 1 or value == 0 else f"{value:.4g} ({value * 1e3:.4g} m, {value:.1%})"
