"""Pickles of plain data, read without running anything in them.

A pickle is a program. Before anything is unpickled its opcodes are walked: whatever would import a name, call something
or build an object is refused with the name it asked for, and so are lengths and memo places that the file is too
short to need. What is left can only build None, booleans, numbers, strings, bytes, lists, tuples, dicts and sets. The
usual shapes (flight-recorder dumps, memory snapshots) then go through the C unpickler with every import closed;
anything with tuples in tuples, whose hashes could be made endless, goes through the slow one, which counts what a tuple
unfolds to before it lets one exist.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from typing import Any

from stallwise.errors import UnreadableInput

HINT = "flight-recorder dumps and memory snapshots hold plain data only; do not open this file with pickle.load"
MAGIC = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
OPENINGS = (b"(dp", b"(lp", b"}q", b"]q", b"}r", b"]r", b"(d", b"(l")  # containers in protocols 0 and 1
MAX_DEPTH = 100  # no dump nests deeper; whoever walks the result may recurse
MAX_UNFOLDED = 1000  # times the values stored: stack frames repeat that often, bombs far more
MAX_TUPLE = 1000  # values that one tuple may unfold to, beyond those written in it
LONGEST_INT_BYTES = 9  # 64 bits and a sign; of longer ones so many can have one hash that a dict of them takes hours
LONGEST_INT_CHARACTERS = 24  # the same as text, with its opcode and its end
REFUSED = {
    "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "NEXT_BUFFER",
    "READONLY_BUFFER",
}  # fmt: skip

_INT = rb"(?:K.|M..|J....|\x8a\x00|\x8a\x01.|\x8a\x08........|N|\x88|\x89|G........)"
_FLAT_TUPLE = rb"(?:\)|" + _INT + rb"\x85|" + _INT + rb"{2}\x86|" + _INT + rb"{3}\x87|\(" + _INT + rb"*t)(?:\x94|q.)?"
_COMMON = rb"h.|j....|q.|[\]}aesu\x94]"
_RARE = rb"K.|M..|J....|G........|[\x8f\x88\x89Nd\x90l]|\((?![ue\x90])"
_SIZED = {  # opcode: bytes of the length that follows
    b"X": 4, b"\x8c": 1, b"\x8d": 8, b"T": 4, b"U": 1, b"B": 4, b"C": 1, b"\x8e": 8, b"\x96": 8, b"\x8a": 1,
    b"\x8b": 4,
}  # fmt: skip
_INTEGERS = b"\x8a\x8b"
_LINES = b"ILFSV"  # text opcodes: their argument ends with the line
_LONGEST_LINE = 1 << 20


class _Suspicious(Exception):
    """Nothing harmful yet, but more than the quick way understands."""


class _Closed(pickle.Unpickler):
    """The C unpickler with every door shut. The scan has refused such pickles before; this is the second lock."""

    def find_class(self, module: str, name: str) -> Any:
        raise _refusal(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise _refusal("an outside object")


class _Slow(pickle._Unpickler):
    """The same in plain Python, without the opcodes that call or build, and with tuples that are counted first."""

    dispatch = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.unfolds: dict[int, int] = {}  # id of a tuple or frozen set: the values in it, parts counted each time
        self.kept: list[Any] = []  # keeps those ids from being used again

    def find_class(self, module: str, name: str) -> Any:
        raise _refusal(f"{module}.{name}")

    def freeze(self, parts: list[Any], kind: type = tuple) -> None:
        unfolds = 1 + sum(self.unfolds.get(id(p), 1) for p in parts)
        if unfolds > MAX_TUPLE + 2 * len(parts):
            raise UnreadableInput("it unfolds to far more values than it stores", hint=HINT)
        value = kind(parts)
        self.unfolds[id(value)] = unfolds
        self.kept.append(value)
        self.stack.append(value)

    def integer(self, width: int) -> None:
        length = int.from_bytes(self.read(width), "little")
        if length > LONGEST_INT_BYTES:
            raise _too_long()
        self.stack.append(pickle.decode_long(self.read(length)))

    def refuse(self) -> None:
        raise _refusal("more than plain data")

    def last(self, count: int) -> list[Any]:
        return [self.stack.pop() for _ in range(count)][::-1]


_ACTS: dict[bytes, Any] = {
    **{op.code.encode("latin-1"): _Slow.refuse for op in pickletools.opcodes if op.name in REFUSED},
    pickle.LONG1: lambda self: self.integer(1),
    pickle.LONG4: lambda self: self.integer(4),
    pickle.TUPLE: lambda self: self.freeze(self.pop_mark()),
    pickle.FROZENSET: lambda self: self.freeze(self.pop_mark(), frozenset),
    pickle.TUPLE1: lambda self: self.freeze(self.last(1)),
    pickle.TUPLE2: lambda self: self.freeze(self.last(2)),
    pickle.TUPLE3: lambda self: self.freeze(self.last(3)),
    pickle.BYTEARRAY8: pickle._Unpickler.dispatch[pickle.BINBYTES8[0]],  # never allocated before its bytes are there
}
_Slow.dispatch.update({code[0]: act for code, act in _ACTS.items()})


def _refusal(wanted: str) -> UnreadableInput:
    return UnreadableInput(f"it asks for {wanted[:80]}, which would run code, so it was not opened", hint=HINT)


def _too_long() -> UnreadableInput:
    return UnreadableInput("it holds a whole number of more than 64 bits, as no dump does", hint=HINT)


def looks_like_pickle(head: bytes) -> bool:
    """True when the bytes open like a pickled container."""
    return head.startswith(MAGIC) or (head.startswith(OPENINGS) and b"\n" in head[:64])


def load_plain(data: bytes, name: str) -> Any:
    """The value in the pickle. Raises UnreadableInput for anything but plain data, or when it is damaged."""
    try:
        try:
            _scan(data)
            value = _Closed(io.BytesIO(data)).load()
        except _Suspicious:
            value = load_slowly(data)
        _check_unfolding(value)
        return value
    except UnreadableInput as error:
        raise UnreadableInput(f"{name}: {error.problem}", hint=error.hint) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableInput(f"{name} nests its values too deeply or asks for too much memory", hint=HINT) from error
    except Exception as error:  # a damaged program may do anything wrong
        reason = str(error).replace("\n", " ")[:120] or type(error).__name__
        raise UnreadableInput(f"{name} is a damaged pickle: {reason}", hint="copy it again, or dump it anew") from error


def load_slowly(data: bytes) -> Any:
    """The value in the pickle; raises whatever a damaged one makes Python raise, or UnreadableInput."""
    return _Slow(data).load()


def _scan(data: bytes) -> None:
    """Walks all opcodes. Runs of those without a length are skipped by one regular expression, at the speed of C."""
    run = _run_pattern(len(data))
    place, end = 0, len(data)
    while place < end:
        match = run.match(data, place)
        if match:
            place = match.end()
        if place >= end:
            break
        opcode = data[place : place + 1]
        if opcode == b".":
            return
        place = _step(data, place, opcode)
    raise UnreadableInput("it ends before the pickle does", hint="copy it again, or dump it anew")


def _run_pattern(size: int) -> re.Pattern[bytes]:
    """Opcodes of fixed length; memo places are allowed up to the number of bytes, since each needs at least one."""
    third, fourth = min(size >> 16, 255), min(size >> 24, 255)
    top = b"[\\x00-\\x%02x]" % fourth if fourth else b"\\x00"
    below = b"." if fourth else b"[\\x00-\\x%02x]" % third
    put = b"r.." + below + top
    return re.compile(b"(?:" + b"|".join((_COMMON, put, _FLAT_TUPLE, _RARE)) + b")++", re.DOTALL)


def _step(data: bytes, place: int, opcode: bytes) -> int:
    """The place after one opcode that the regular expression left."""
    if opcode in _SIZED:
        width = _SIZED[opcode]
        length = int.from_bytes(data[place + 1 : place + 1 + width], "little")
        after = place + 1 + width + length
        if opcode in _INTEGERS and length > LONGEST_INT_BYTES:
            raise _too_long()
    elif opcode == b"\x80":
        after = place + 2
        if place or data[1:2] > b"\x05":
            raise _Suspicious
    elif opcode == b"\x95":  # a frame's length: only a promise, checked by the C code too
        after = place + 9
        if after + int.from_bytes(data[place + 1 : after], "little") > len(data):
            after = len(data) + 1
    elif opcode in _LINES:
        line_end = data.find(b"\n", place, place + _LONGEST_LINE)
        after = line_end + 1 if line_end >= 0 else len(data) + 1
        if opcode in b"IL" and after - place > LONGEST_INT_CHARACTERS:
            raise _too_long()
    else:  # text memo places, DUP, POP, tuples of more than numbers, frozen sets, no opcode at all, or one that is refused
        raise _Suspicious
    if after > len(data):
        raise UnreadableInput(f"it is cut off or damaged at byte {place}", hint="copy it again, or dump it anew")
    return after


def _check_unfolding(root: Any) -> None:
    """Refuses values that contain themselves, nest too deep, or unfold to far more than the file stores."""
    known: dict[int, tuple[int, int]] = {}  # container: its height and the values it unfolds to
    opened: set[int] = set()
    stored = 0
    work: list[tuple[Any, list[Any] | None]] = [(root, None)] if type(root) in _CONTAINERS else []
    while work:
        value, parts = work.pop()
        key = id(value)
        if parts is not None:
            inner = [known[id(p)] for p in parts]
            height = 1 + max(h for h, _ in inner)
            known[key] = height, len(value) + sum(n for _, n in inner)
            opened.discard(key)
            if height > MAX_DEPTH:
                raise UnreadableInput("it nests its values too deeply", hint=HINT)
        elif key in opened:
            raise UnreadableInput("it holds a value that contains itself", hint=HINT)
        elif key not in known:
            stored += len(value)
            parts = [p for p in (value.values() if type(value) is dict else value) if type(p) in _CONTAINERS]
            if parts:
                opened.add(key)
                work.append((value, parts))
                work += [(p, None) for p in parts if id(p) not in known]
            else:
                known[key] = 1, len(value)
    if known and known[id(root)][1] > 100_000 + MAX_UNFOLDED * stored:
        raise UnreadableInput("it unfolds to far more values than it stores", hint=HINT)


_CONTAINERS = {dict, list, tuple, set, frozenset}
