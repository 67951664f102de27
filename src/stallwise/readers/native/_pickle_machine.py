"""The pickle stack machine in plain Python, with only the opcodes that build plain data.

Slower than the C one and more suspicious: it counts what a tuple unfolds to before it lets one exist, since hashing a
tuple of tuples of tuples can be made to take forever.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from struct import unpack_from
from typing import Any

from stallwise.errors import UnreadableInput

HINT = "flight-recorder dumps and memory snapshots hold plain data only; do not open this file with pickle.load"
MAX_TUPLE = 1000  # values that one tuple may unfold to, beyond those written in it
REFUSED = {
    "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4",
    "PERSID", "BINPERSID", "NEXT_BUFFER", "READONLY_BUFFER",
}  # fmt: skip
REFUSED_OPCODES = {op.code.encode("latin-1") for op in pickletools.opcodes if op.name in REFUSED}
LOOK_BACK = 4096  # bytes before a refused opcode in which the name it asks for is found
_MARK = object()


def refusal(data: bytes, place: int, name: str) -> UnreadableInput:
    """What to say of a pickle that wants more than plain data, with the name it asks for where it can be told."""
    words: list[str] = []
    wanted = ""
    try:
        for opcode, argument, position in pickletools.genops(io.BytesIO(data[: place + LOOK_BACK])):
            if (position or 0) >= place:
                wanted = str(argument or "").replace(" ", ".")
                if opcode.name in ("STACK_GLOBAL", "REDUCE", "BUILD", "NEWOBJ") and words:
                    wanted = ".".join(words[-2:])
                break
            if isinstance(argument, str):
                words.append(argument)
    except ValueError:
        pass
    what = f"asks for {wanted[:80]}" if wanted else "asks for more than plain data"
    return UnreadableInput(f"{name} {what} at byte {place}: it would run code, so it was not opened", hint=HINT)


def load_slowly(data: bytes, name: str) -> Any:
    """The value in the pickle; raises whatever a damaged one makes Python raise, or UnreadableInput."""
    return _Machine(data, name).run()


class _Machine:
    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.place = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.unfolds: dict[int, int] = {}  # id of a tuple or frozen set: the values in it, parts counted each time
        self.kept: list[Any] = []  # keeps those ids from being used again

    def run(self) -> Any:
        data = self.data
        while self.place < len(data):
            opcode = data[self.place]
            self.place += 1
            if opcode == 0x2E:  # STOP
                return self.pop()
            act = _ACTS.get(opcode)
            if act is None:
                if bytes((opcode,)) in REFUSED_OPCODES:
                    raise refusal(data, self.place - 1, self.name)
                raise ValueError(f"byte {self.place - 1} is no opcode")
            act(self)
        raise UnreadableInput(f"{self.name} ends before the pickle does", hint="copy it again, or dump it anew")

    def take(self, count: int) -> bytes:
        taken = self.data[self.place : self.place + count]
        if len(taken) < count:
            raise ValueError("cut off")
        self.place += count
        return taken

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.place)
        taken = self.data[self.place : end]
        self.place = end + 1
        return taken

    def number(self, layout: str, size: int) -> Any:
        (value,) = unpack_from(layout, self.take(size))
        return value

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value should be")
        return value

    def since_mark(self) -> list[Any]:
        found: list[Any] = []
        while (value := self.stack.pop()) is not _MARK:
            found.append(value)
        found.reverse()
        return found

    def freeze(self, parts: list[Any], kind: type = tuple) -> None:
        unfolds = 1 + sum(self.unfolds.get(id(p), 1) for p in parts)
        if unfolds > MAX_TUPLE + 2 * len(parts):
            raise UnreadableInput(f"{self.name} unfolds to far more values than it stores", hint=HINT)
        value = kind(parts)
        self.unfolds[id(value)] = unfolds
        self.kept.append(value)
        self.stack.append(value)

    def put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def extend(self, kind: type, values: list[Any]) -> None:
        target: Any = self.stack[-1]
        found: type = target.__class__
        if found is not kind:
            raise ValueError(f"a {found.__name__} where a {kind.__name__} should be")
        grow = target.extend if kind is list else target.update
        grow(_pairs(values) if kind is dict else values)


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    if len(flat) % 2:
        raise ValueError("a key without a value")
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _push(read: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(read(m))


def _sized(layout: str, width: int, decode: Callable[[bytes], Any]) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(decode(m.take(m.number(layout, width))))


def _text_int(m: _Machine) -> Any:
    line = m.line()
    return {b"00": False, b"01": True}.get(line) if line in (b"00", b"01") else int(line)


def _quoted(line: bytes) -> str:
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in b"\"'":
        raise ValueError("a string without quotes")
    return line[1:-1].decode("unicode_escape")


def _signed(taken: bytes) -> int:
    return int.from_bytes(taken, "little", signed=True)


def _utf8(taken: bytes) -> str:
    return taken.decode("utf-8", "surrogatepass")


def _latin(taken: bytes) -> str:
    return taken.decode("latin-1")


def _setitem(m: _Machine) -> None:
    value, key = m.pop(), m.pop()
    m.extend(dict, [key, value])


def _tuple_of(count: int) -> Callable[[_Machine], None]:
    return lambda m: m.freeze([m.pop() for _ in range(count)][::-1])


_BY_CODE: dict[bytes, Callable[[_Machine], Any]] = {
    b"\x80": lambda m: m.take(1),
    b"\x95": lambda m: m.take(8),
    b"N": _push(lambda m: None),
    b"\x88": _push(lambda m: True),
    b"\x89": _push(lambda m: False),
    b"(": _push(lambda m: _MARK),
    b"]": _push(lambda m: []),
    b"}": _push(lambda m: {}),
    b")": _push(lambda m: ()),
    b"\x8f": _push(lambda m: set()),
    b"K": _push(lambda m: m.number("<B", 1)),
    b"M": _push(lambda m: m.number("<H", 2)),
    b"J": _push(lambda m: m.number("<i", 4)),
    b"G": _push(lambda m: m.number(">d", 8)),
    b"I": _push(_text_int),
    b"L": _push(lambda m: int(m.line().rstrip(b"L"))),
    b"F": _push(lambda m: float(m.line())),
    b"S": _push(lambda m: _quoted(m.line())),
    b"V": _push(lambda m: m.line().decode("raw-unicode-escape")),
    b"X": _sized("<I", 4, _utf8),
    b"\x8c": _sized("<B", 1, _utf8),
    b"\x8d": _sized("<Q", 8, _utf8),
    b"T": _sized("<I", 4, _latin),
    b"U": _sized("<B", 1, _latin),
    b"B": _sized("<I", 4, bytes),
    b"C": _sized("<B", 1, bytes),
    b"\x8e": _sized("<Q", 8, bytes),
    b"\x96": _sized("<Q", 8, bytes),
    b"\x8a": _sized("<B", 1, _signed),
    b"\x8b": _sized("<I", 4, _signed),
    b"h": _push(lambda m: m.memo[m.number("<B", 1)]),
    b"j": _push(lambda m: m.memo[m.number("<I", 4)]),
    b"g": _push(lambda m: m.memo[int(m.line())]),
    b"q": lambda m: m.put(m.number("<B", 1)),
    b"r": lambda m: m.put(m.number("<I", 4)),
    b"p": lambda m: m.put(int(m.line())),
    b"\x94": lambda m: m.put(len(m.memo)),
    b"0": lambda m: m.stack.pop(),
    b"1": lambda m: m.since_mark(),
    b"2": _push(lambda m: m.stack[-1]),
    b"l": _push(lambda m: m.since_mark()),
    b"d": _push(lambda m: _pairs(m.since_mark())),
    b"t": lambda m: m.freeze(m.since_mark()),
    b"\x91": lambda m: m.freeze(m.since_mark(), frozenset),
    b"\x85": _tuple_of(1),
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"a": lambda m: m.extend(list, [m.pop()]),
    b"e": lambda m: m.extend(list, m.since_mark()),
    b"s": _setitem,
    b"u": lambda m: m.extend(dict, m.since_mark()),
    b"\x90": lambda m: m.extend(set, m.since_mark()),
}
_ACTS = {code[0]: act for code, act in _BY_CODE.items()}
