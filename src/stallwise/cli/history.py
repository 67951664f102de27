"""Show the runs of this machine over time, and what got slower."""

from __future__ import annotations

from typing import Any

import click

from stallwise.cli._answer_file import output_option, write_answer
from stallwise.render import strict_json as json


@click.command(
    epilog="Examples: stallwise history; stallwise history train.py --last 20; stallwise history -o history.html; "
    "stallwise history --clear"
)
@click.argument("words", nargs=-1)
@click.option("--last", default=10, show_default=True, type=click.IntRange(1), help="Runs of each series to show.")
@click.option("--clear", is_flag=True, help="Forget all runs, or those of the series that WORDS name.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print the series as JSON.")
def command(words: tuple[str, ...], last: int, clear: bool, outputs: tuple[str, ...], as_json: bool) -> None:
    """Runs that `run` and `diagnose` have seen here, by series (a command line or a folder); WORDS choose series.

    Kept in one file that only you can read: when, where, how fast, what stalled; nothing of what the files hold.
    STALLWISE_HISTORY=off keeps none.
    """
    from stallwise.doctor.history import against_last_week, forget, load, place, trend_of
    from stallwise.render.history import history_dict, history_html, history_text

    every: dict[str, list[Any]] = {}
    for kept in load():
        if all(word.lower() in f"{kept.series} {kept.run}".lower() for word in words):
            every.setdefault(kept.series, []).append(kept)
    if clear:
        gone = sum(forget(series) for series in list(every)) if words else forget()
        click.echo(json.dumps({"forgotten": gone}) if as_json else f"{gone} runs forgotten")
        return
    told = [(series, trend_of(runs[-last:]), against_last_week(runs)) for series, runs in every.items()]
    told.reverse()  # the series that was run last stands first
    write_answer(outputs, lambda: history_html(told), lambda: history_dict(told), lambda: history_text(told, place()))
    click.echo(json.dumps(history_dict(told), indent=2, ensure_ascii=False) if as_json else history_text(told, place()))
