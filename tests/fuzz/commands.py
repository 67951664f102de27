"""Every command of the command line with odd values and damaged files, in this process, as its entry point runs it."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import sys
from collections.abc import Hashable, Iterator
from functools import cache
from pathlib import Path

import click

from stallwise.surfaces.cli import BUG, main
from stallwise.surfaces.cli import console as run
from stallwise.surfaces.cli._complete import FILES, Completed
from tests.fuzz.tally import Told
from tests.fuzz.targets import skeleton

LEFT_OUT = {  # they serve, wait for a person, or run a program of the user's
    "attach", "mcp", "measure loader", "measure preflight", "numerics", "record", "run", "try", "ui", "watch",
    "drill round", "drill mock", "drill cards", "drill numbers",
}  # fmt: skip
INTERRUPTED = 130
GIVEN = 0.25  # of the options of a command that are set
LIKELY = 0.8  # of them with a value that makes sense
ODD = [
    "", "-1", "0", "1", "2", "3", "7", "64", "1e308", "1e999", "nan", "inf", "-inf", "9" * 23, "1.2.3", "²", "0x10", "1_0",
    "null", "x", "a=b", "=", "8xh100", "99999999xh100", "0xh100", "xh100", "1GB", "-1GB", "1e400GB", "2s", "-2s", "1e400s",
    "10ms", "100/s", "0/s", "bf16", "fp8", "int4", "\x1b[2J", "<script>alert(1)</script>", "A" * 3000, "\ud800", "\u202eevil",
    "llama-3.1-8b", "h100", "all", "none", "1,2,3", "1:2", "--help", "%s", "{}", "[" * 500, "mfu=0.22", "mfu=nan",
]  # fmt: skip
LIKELY_NUMBERS = ["1", "2", "4", "8", "16", "64", "512", "2048", "0.5", "3.5"]
_COLOR = re.compile(r"\x1b\[[\d;]*m")  # what --color asks for
OUTPUTS = ["out.html", "out.md", "out.json", "out.txt", "out.sarif", "out.xml", "annotated.json.gz", "out.svg", "out"]


@cache
def every_command() -> tuple[tuple[str, click.Command], ...]:
    """All that can be called without a person or a program."""
    return tuple((name, one) for name, one in _walk(main, "") if name not in LEFT_OUT)


def _walk(group: click.Group, above: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        one = group.get_command(context, word)
        assert one is not None
        yield from _walk(one, f"{above}{word} ") if isinstance(one, click.Group) else [(f"{above}{word}", one)]


def arguments_for(r: random.Random, command: click.Command, file: str) -> list[str]:
    """Options, then values, as a confused or hostile user may give them."""
    options: list[str] = []
    values: list[str] = []
    for param in command.params:
        if isinstance(param, click.Argument):
            count = r.choice([0, 1, 1, 1, 2, 3]) if param.nargs < 0 else 1 if r.random() < 0.95 else 0
            values += [_value(r, param, file) for _ in range(count)]
        elif r.random() < GIVEN or param.required or param.name == "model_name":
            options.append(r.choice(param.opts) if param.opts else "--x")
            if not getattr(param, "is_flag", False):
                options.append(_value(r, param, file))
    return [*options, *(["--"] if r.random() < 0.3 else []), *values]


def _value(r: random.Random, param: click.Parameter, file: str) -> str:
    if param.name == "workers":
        return r.choice(["1", "2", "0", "-1", "x"])
    if param.name == "engine" and isinstance(param.type, click.Choice):
        return "local"
    if param.name in FILES or (isinstance(param, click.Argument) and isinstance(param.type, click.Path)):
        return r.choice([file, file, file, ".", "absent", "-"])
    if isinstance(param.type, click.Path):
        return file if param.type.exists else r.choice(OUTPUTS)
    if r.random() > LIKELY:
        return r.choice([o for o in ODD if "/" not in o or "/s" in o])
    if isinstance(param.type, click.Choice):
        return str(r.choice(list(param.type.choices)))
    if isinstance(param.type, Completed) and param.type.names is not None:
        return r.choice(sorted(param.type.names()))
    return r.choice(LIKELY_NUMBERS)


def called(arguments: list[str], given: bytes) -> tuple[int, str, str]:
    """The exit code, and what was printed."""
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv = ["stallwise", *arguments]
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(given)), out, err
    try:
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
    said = [s.buffer.getvalue().decode("utf-8", "replace") for s in (out, err)]
    return code, said[0], said[1]


def one_command(r: random.Random, path: Path, told: Told) -> Hashable:
    """A random command line in the folder of the damaged file. Codes 4 and 130, and answers that are no JSON, are failures."""
    name, command = r.choice(every_command())
    arguments = [*name.split(), *arguments_for(r, command, path.name)]
    told.how += f" | {json.dumps(arguments)[:600]}"
    told.tally.commands[name] += 1
    with contextlib.chdir(path.parent):
        code, out, err = called(arguments, told.data if path.suffix != ".gz" else b"")
    told.tally.exits[str(code)] += 1
    if code in (BUG, INTERRUPTED) or "Traceback (most recent" in err:
        told.fails("escapes", f"exit {code} of {name}: {skeleton(err)}")
    elif code == 0 and "--json" in arguments and "--help" not in arguments and out.strip():
        try:
            json.loads(out, parse_constant=_no_number)
        except ValueError as error:
            told.fails("bad_pages", f"no JSON from {name}: {skeleton(str(error))}")
    if "\x1b" in (_COLOR.sub("", out + err) if "--color" in arguments else out + err):
        told.fails("bad_pages", f"an escape from {name}")
    return name, code, skeleton(err), len(out).bit_length()


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
