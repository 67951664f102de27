"""Damage of every kind, by a seeded random generator: the same seed always gives the same bytes."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

NUMBERS = [
    b"-1", b"0", b"-0.0", b"1e308", b"1e999", b"NaN", b"nan", b"Infinity", b"-inf", b"9" * 23, b"9223372036854775808",
    b"18446744073709551616", b"2147483648", b"1.2.3", b"1,2,3", b"", b"5e-324", b"0x10", b"1_000", "²".encode(),
    "١٢".encode(), b"9" * 5000, b"--5", b"null", b"true", b'"x"', b"[]", b"{}", b".", b"1e", b"%", b"99:99:99", b"2026-13-45",
]  # fmt: skip
WORDS = [
    b"<script>alert(1)</script>", b"\x1b[2J\x1b]0;x\x07", b"{{7*7}}", b"%s%n", b"\xff\xfe\xfd", b"\x00", b"A" * 6000,
    "\u202eevil".encode(), b"\r", b"\x0b\x0c\x1c\x85", "\u2028".encode(), b"(" * 2000, b"[" * 5000, b"{" * 5000, b"'",
    b'"', b"\\", b"../../etc/passwd", b"\xed\xa0\x80",
]  # fmt: skip
ODD: list[Any] = [
    None, [], {}, "", "x" * 3000, -1, 0, True, 1e308, -1e308, 5e-324, 10**400, 2**63, 2**64, "²", "1.2.3", "NaN", "\ud800",
    "\x1b[31m", [[]], [[1, 2], [3]], 1.5, "9" * 5000, float("nan"), float("inf"), [1, "a", None, {}], {"a": {"b": [1]}},
]  # fmt: skip
KEYS = ["", "\x00", "x" * 5000, "name", "ts", "dur", "args", "k", "rank", "step"]
MOST_BYTES = 1_000_000
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9./:-]{2,}")

Mutation = Callable[[random.Random, bytes], bytes]


def flip_bits(r: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 8, 64])):
        found[r.randrange(len(found))] ^= 1 << r.randrange(8)
    return bytes(found)


def cut_end(r: random.Random, data: bytes) -> bytes:
    return data[: r.randrange(len(data))]


def cut_start(r: random.Random, data: bytes) -> bytes:
    return data[r.randrange(len(data)) :]


def repeat(r: random.Random, data: bytes) -> bytes:
    at, size = r.randrange(len(data)), r.choice([1, 16, 256, 4096])
    return data[:at] + data[at : at + size] * r.choice([2, 3, 50]) + data[at + size :]


def remove(r: random.Random, data: bytes) -> bytes:
    at = r.randrange(len(data))
    return data[:at] + data[at + r.choice([1, 16, 256, 4096]) :]


def insert(r: random.Random, data: bytes) -> bytes:
    at = r.randrange(len(data))
    return data[:at] + r.choice([*WORDS, *NUMBERS, r.randbytes(200)]) + data[at:]


def line_ends(r: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", r.choice([b"\r\n", b"\r", b"\n\r", b"\x0b", b"\n\n\n"]))


def encode_anew(r: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return r.choice([b"\xef\xbb\xbf" + data, text.encode("utf-16"), text.encode("utf-32"), b"\xff\xfe" + data])


def zero_bytes(r: random.Random, data: bytes) -> bytes:
    return data.replace(r.choice([b" ", b",", b"e", b"\n"]), b"\0", r.choice([1, 5, -1]))


def _replaced(r: random.Random, data: bytes, pattern: re.Pattern[bytes], by: list[bytes]) -> bytes:
    places = [m.span() for m in pattern.finditer(data[:200_000])]
    if not places:
        return insert(r, data)
    for start, end in sorted(r.sample(places, min(len(places), r.choice([1, 1, 2, 5, 40]))), reverse=True):
        data = data[:start] + r.choice(by) + data[end:]
    return data


def odd_numbers(r: random.Random, data: bytes) -> bytes:
    return _replaced(r, data, _NUMBER, NUMBERS)


def one_number_everywhere(r: random.Random, data: bytes) -> bytes:
    chosen, share = r.choice(NUMBERS), r.random()
    return _NUMBER.sub(lambda m: chosen if r.random() < share else m[0], data[:60_000])


def odd_words(r: random.Random, data: bytes) -> bytes:
    return _replaced(r, data, _WORD, WORDS)


def lines(r: random.Random, data: bytes) -> bytes:
    rows = data.split(b"\n")
    at, how = r.randrange(len(rows)), r.randrange(7)
    if how == 0:
        r.shuffle(rows)
    elif how == 1:
        rows[at : at + 1] = [rows[at]] * r.choice([2, 50, 500])
    elif how == 2:
        rows = [row for row in rows if r.random() < 0.5]
    elif how == 3:
        rows.reverse()
    elif how == 4:
        rows[at] = rows[at] * r.choice([2, 20, 200])
    elif how == 5:
        rows = rows[: r.choice([1, 2, 3])]
    else:
        rows[at : at + 50] = [b" ".join(rows[at : at + 50])]
    return b"\n".join(rows)


def columns(r: random.Random, data: bytes) -> bytes:
    rows = [row.split(b",") for row in data.split(b"\n")]
    at, how = r.randrange(max(map(len, rows))), r.randrange(5)
    if how == 0:
        rows = [row[:at] + row[at + 1 :] for row in rows]
    elif how == 1:
        odd = r.choice(NUMBERS + WORDS)
        rows = rows[:1] + [[*row[:at], odd, *row[at + 1 :]] for row in rows[1:]]
    elif how == 2:
        rows = [row + [b"1"] * r.choice([1, 100]) for row in rows]
    elif how == 3:
        rows = rows[:1] * 3 + rows[1:]
    else:
        rows = [r.sample(row, len(row)) for row in rows]
    return b"\n".join(b",".join(row) for row in rows)


def _slots(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every place of a tree, up to a few thousand."""
    waiting = [value]
    while waiting and len(found) < 4000:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def tree(r: random.Random, data: bytes) -> bytes:
    """Values of JSON replaced by others of every type, one by one or all under one key."""
    text = data.decode("utf-8", "replace")
    try:
        top = [json.loads(text)]
    except (ValueError, RecursionError):
        rows = text.split("\n")
        known = [i for i, row in enumerate(rows) if row.strip()[:1] in ("{", "[")]
        if not known:
            return odd_numbers(r, data)
        at = r.choice(known)
        rows[at] = tree(r, rows[at].encode()).decode("utf-8", "replace") if rows[at] != text else rows[at][:-1]
        return "\n".join(rows).encode("utf-8", "surrogatepass")
    for _ in range(r.choice([1, 1, 2, 4, 16])):
        slots = [(top, 0), *_slots(top[0], [])]
        one, key = r.choice(slots[:60]) if r.random() < 0.5 else r.choice(slots)
        how = r.random()
        try:
            if how < 0.75:
                one[key] = r.choice(ODD)
            elif how < 0.9:
                del one[key]
            elif isinstance(one, dict):
                one[r.choice(KEYS)] = one.pop(key)
            else:
                one[key : key + 1] = [one[key]] * r.choice([2, 30])
        except (KeyError, IndexError):
            continue
        top = top or [None]
    named = [(one, key) for one, key in _slots(top[0], []) if isinstance(key, str)]
    if named and r.random() < 0.3:
        chosen, odd = r.choice(named)[1], r.choice(ODD)
        for one, key in named:
            if key == chosen:
                one[key] = odd
    try:
        return json.dumps(top[0]).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return data


def deep(r: random.Random, data: bytes) -> bytes:
    depth = r.choice([100, 1000, 20_000])
    return data[: r.randrange(len(data))] + r.choice([b"[", b'{"a":', b"(", b"<a>"]) * depth


def gzipped(r: random.Random, data: bytes) -> bytes:
    packed = gzip.compress(data[:300_000], 1, mtime=0)  # the time of day is no part of the damage
    how = r.randrange(6)
    if how == 0:
        return packed + r.randbytes(100)
    if how == 1:
        return packed[: r.randrange(10, len(packed))]
    if how == 2:
        return packed + packed
    if how == 3:
        return flip_bits(r, packed)
    return packed[:10] + r.randbytes(200) if how == 4 else packed[:-4] + b"\0\0\0\1"


def zipped(r: random.Random, data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", r.choice([0, 8, 8, 12, 14])) as archive:
        outside = r.choice(["../../y.log", "/etc/passwd", "b²3\n.log", "z" * 3000])
        for name, held in (("a/x.json", data[:200_000]), (outside, data[:1000])):
            member = zipfile.ZipInfo(name)  # dated 1980: the time of day is no part of the damage
            member.compress_type = archive.compression
            archive.writestr(member, held)
    packed = stream.getvalue()
    return r.choice([packed, flip_bits(r, packed), packed[: r.randrange(len(packed))]])


ANY: list[Mutation] = [
    flip_bits, cut_end, cut_start, repeat, remove, insert, line_ends, encode_anew, zero_bytes, odd_numbers, odd_numbers,
    odd_numbers, one_number_everywhere, odd_words, odd_words, lines, lines, gzipped, zipped, deep,
]  # fmt: skip
BINARY: list[Mutation] = [flip_bits, flip_bits, cut_end, repeat, remove, insert, gzipped]


def mutated(r: random.Random, data: bytes, other: bytes) -> tuple[str, bytes]:
    """The names of what was done, and the bytes; now and then half of another file is put behind."""
    first = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    choices = [*ANY]
    if data[:1] == b"\x80" or data[:6] == b"SQLite" or b"\0" in data[:256]:
        choices = [*BINARY]
    elif first in (b"{", b"["):
        choices += [tree] * 14
    elif b"," in data[:300]:
        choices += [columns] * 6
    names = []
    for _ in range(1 if r.random() < 0.7 else 2):
        data = data or b"\n"
        if r.random() < 0.04:
            data, name = data[: r.randrange(len(data))] + other[r.randrange(max(len(other), 1)) :], "splice"
        else:
            act = r.choice(choices)
            data, name = act(r, data)[:MOST_BYTES], act.__name__
        names.append(name)
        if name in ("gzipped", "zipped"):
            break
    return "+".join(names), data
