"""What every command has: --color, --quiet, and examples that can be copied from its help."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from typing import Any

import click

from stallwise.progress import be_silent
from stallwise.surfaces.cli import _fitted

COLOR = click.Choice(["auto", "always", "never"])
INDENT = "  "
_HEAD = re.compile(r"(?:^|\s)Examples?:\s*")
_NEXT = re.compile(r";\s+(?=stallwise |eval |cat )")
_NOTE = re.compile(r"(?<!\s)(?:\s{2,80}(?=\S)|\s{1,80}(?=\([^()]{0,400}\)$))")


def dressed(command: click.Command) -> click.Command:
    """The command, and what is below it, with the options of all commands and its examples one a line."""
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        dressed(below)
    names = {name for param in command.params for name in param.opts}
    if "--color" not in names:
        short = ["-q"] if "-q" not in names else []
        command.params += [
            click.Option(
                ["--color"], type=COLOR, expose_value=False, callback=_color, metavar="WHEN", is_eager=True,
                help="Colours: auto (a terminal gets them), always or never. NO_COLOR and FORCE_COLOR count.",
            ),
            click.Option(
                [*short, "--quiet"], is_flag=True, expose_value=False, callback=_quiet, is_eager=True,
                help="The answer alone: no progress, no remarks beside it.",
            ),
        ]  # fmt: skip
        setattr(command, "format_epilog", partial(_write_epilog, command))  # noqa: B010  # one command's own help
        setattr(command, "parse_args", partial(_with_pasted_words, command.parse_args))  # noqa: B010
    return command


def _with_pasted_words(
    parse: Callable[[click.Context, list[str]], list[str]], ctx: click.Context, args: list[str]
) -> list[str]:
    """What is pasted may begin with a bullet or a rule; no option has a blank in its name."""
    return parse(ctx, [f" {a}" if a.startswith("-") and " " in a.partition("=")[0].strip() else a for a in args])


def _color(context: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        before = _fitted.CHOSEN[:]
        _fitted.CHOSEN[:] = [value]
        context.call_on_close(partial(_fitted.CHOSEN.__setitem__, slice(None), before))


def _quiet(context: click.Context, param: click.Parameter, value: bool) -> None:
    """What goes to stderr is beside the answer; an error is told after the command, when this is over."""
    if value:
        be_silent()
        context.call_on_close(partial(be_silent, False))
        context.with_resource(redirect_stderr(io.StringIO()))


def examples_of(command: click.Command) -> tuple[str, list[tuple[str, str]], str]:
    """What the epilog says before its examples, each of them with what it is for, and what it says after."""
    before, *rest = _HEAD.split((command.epilog or "").replace("\b\n", ""), maxsplit=1)
    if not rest:
        return before.strip(), [], ""
    listed, _, after = rest[0].strip().partition("\n\n")
    lines = [line.strip() for line in listed.split("\n")] if "\n" in listed else _NEXT.split(listed)
    return before.strip(), [_noted(line) for line in lines if line.strip()], after.strip()


def _noted(line: str) -> tuple[str, str]:
    call, *note = _NOTE.split(line.strip(), maxsplit=1)
    return call, (note[0].strip("()") if note else "")


def _write_epilog(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    before, examples, after = examples_of(command)
    for text in (before,) if before else ():
        formatter.write_paragraph()
        formatter.write_text(text)
    if examples:
        formatter.write_paragraph()
        formatter.write("Examples:\n" if len(examples) > 1 else "Example:\n")
        widest = max(len(call) for call, _ in examples)
        beside = all(len(INDENT) * 2 + widest + len(note) <= formatter.width for _, note in examples if note)
        for call, note in examples:
            if beside and note:
                formatter.write(f"{INDENT}{call:{widest}}{INDENT}{note}\n")
                continue
            if note:
                formatter.write(f"{INDENT}# {note}\n")
            formatter.write("".join(f"{INDENT}{line}\n" for line in _continued(call, formatter.width - len(INDENT))))
    for text in after.split("\n\n") if after else ():
        formatter.write_paragraph()
        formatter.write_text(text)


def _continued(call: str, width: int) -> list[str]:
    """A call that a shell still reads as one: backslashes at the ends of its lines, options beside their values."""
    if len(call) <= width:
        return [call]
    lines, line = [], ""
    for part in re.findall(r"(?:--?[\w-]+ (?!-)\S+|\S+)", call):
        if line and len(line) + 1 + len(part) > width - 2:
            lines.append(f"{line} \\")
            line = INDENT + part
        else:
            line = f"{line} {part}" if line else part
    return [*lines, line]


def words_of(call: str) -> list[str]:
    """An example's words, for those who check it."""
    import shlex

    return shlex.split(call)


LARGEST = 1e30  # beyond the operations of any training run; products and squares of such numbers are still numbers


class Finite(click.types.FloatParamType):
    """A float that can be reckoned with."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found) or abs(found) > LARGEST:
            self.fail(f"{value!r} is no number to reckon with.", param, ctx)
        return found


def finite(command: click.Command) -> click.Command:
    """The same command, with every plain float of its options finite and of a size that exists."""
    for param in command.params:
        if type(param.type) is click.types.FloatParamType:
            param.type = Finite()
    return command
