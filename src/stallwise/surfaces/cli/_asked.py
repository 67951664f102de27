"""Questions in the terminal: numbered choices, free words, and an end at any time."""

from __future__ import annotations

import sys

import click

from stallwise.doctor.ask.reply import choice_of
from stallwise.doctor.examine import Ask
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.question import Question
from stallwise.errors import BadRequest
from stallwise.render.verdict import question_rows, verdict
from stallwise.render.visible import visible


def asker() -> Ask:
    """Asks on standard error, so that standard output holds the answer alone; refuses where nobody sits there."""
    if not sys.stdin.isatty():
        raise click.UsageError('--ask needs a terminal; without one give each answer as --answer "..."')
    return _ask


def _ask(question: Question, so_far: Diagnosis) -> str | None:
    """One answer; None at Ctrl-C or the end of input."""
    says = verdict(so_far)
    click.echo(visible("\n".join([says.line, *(f"  {row}" for row in _marked(question))])), err=True)
    while True:
        typed = _typed()
        if typed is None:
            return None
        try:
            choice_of(question, typed)
        except BadRequest as error:
            click.echo(visible(f"{error.problem}: {error.hint}"), err=True)
        else:
            return typed


def _marked(question: Question) -> list[str]:
    first, *choices = question_rows(question)
    return [f"?  {first}", *(f"   {choice}" for choice in choices)]


def _typed() -> str | None:
    try:
        click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
    except KeyboardInterrupt:  # a quick hand types it while the prompt is still being written
        line = ""
    if not line:
        click.echo("", err=True)
        return None
    return line.strip()
