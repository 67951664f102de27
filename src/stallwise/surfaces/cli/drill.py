"""Practise: question cards, numbers to work out, and progress that remembers."""

from __future__ import annotations

from pathlib import Path

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._drill_cards import cards, learn
from stallwise.surfaces.cli._drill_round import mock_session, past_rounds, play_round
from stallwise.surfaces.cli._files_to_write import FileToWrite, write_file

# Of the questions on large systems: so many of the first so many answered cold make the line of an interview.
LINES = ((35, 50), (40, 60))


@click.group(
    epilog="Examples: stallwise drill cards --topic memory; stallwise drill numbers --seed 7; stallwise drill progress"
)
def command() -> None:
    """Practise diagnosis until the method is yours. Progress stays in one local file."""


@command.command("numbers", epilog="Examples: stallwise drill numbers; stallwise drill numbers --seed 7 --count 3")
@click.option("--topic", help="Only this topic.")
@click.option("--count", default=5, show_default=True, help="How many questions.")
@click.option("--seed", default=None, type=int, help="The same seed gives a friend the same questions.")
@click.option("--json", "as_json", is_flag=True, help="Print questions with their answers and leave.")
def numbers(topic: str | None, count: int, seed: int | None, as_json: bool) -> None:
    """Work out numbers; ten percent either way is right. Units are understood: 1.12TB, 350ms, 22%."""
    import random

    from stallwise.drill.numbers import kinds, series
    from stallwise.drill.progress import Progress
    from stallwise.errors import BadRequest

    known = sorted({kind["topic"] for kind in kinds()})
    if topic is not None and topic not in known:
        raise BadRequest(f"there are no numeric questions on '{topic}'", hint="one of " + ", ".join(known))
    seed = random.randrange(1 << 31) if seed is None else seed
    questions = series(seed, count, topic)
    if as_json:
        rows = [
            {"ask": q.ask, "answer": q.answer, "unit": q.unit.value, "worked": q.worked(), "topic": q.topic}
            for q in questions
        ]
        click.echo(json.dumps({"seed": seed, "questions": rows}, indent=2))
        return
    right = 0
    with Progress() as progress:
        for number, question in enumerate(questions, start=1):
            click.echo(f"\n{number}/{count}  [{question.topic}]  {question.ask}")
            reply = click.prompt("answer", default="", show_default=False)
            try:
                ok = bool(reply) and question.accepts(reply)
            except BadRequest as error:
                ok = False
                click.echo(f"  {error.problem}; {error.hint}")
            right += ok
            click.echo(f"  {'right' if ok else 'no'}: {question.worked()}")
            progress.review(f"number:{question.formula}", question.topic, "pass" if ok else "again", float(ok))
    click.echo(f"\n{right} of {len(questions)} right (seed {seed})")


@command.command("progress", epilog="Examples: stallwise drill progress; stallwise drill progress --json")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def progress(as_json: bool) -> None:
    """What you know by topic, and how far it is to ready."""
    from stallwise.drill.deck import all_cards, asking, topics
    from stallwise.drill.progress import Progress

    with Progress() as store:
        rows, known = store.by_topic(), store.known()
        answered = {
            most: sum(any(store.passed(c.id) for c in asking(n)) for n in range(1, most + 1)) for _, most in LINES
        }
    if as_json:
        click.echo(json.dumps({"known": known, "of": len(all_cards()), "topics": rows, "systems": answered}, indent=2))
        return
    for topic in topics():
        row = rows.get(topic, {"items": 0.0, "known_share": 0.0})
        size = sum(c.topic == topic for c in all_cards())
        bar = "█" * round(30 * row["items"] * row["known_share"] / size)
        click.echo(f"{topic:10} {row['items'] * row['known_share']:3.0f} of {size:3d}  {bar}")
    for enough, questions in LINES:
        have = answered[questions]
        state = "reached" if have >= enough else f"{enough - have} more to the line of {enough}"
        click.echo(f"{have} of the first {questions} questions on large systems; {state}")
    click.echo(f"{known} known in all")


@command.command(
    "export", epilog="Examples: stallwise drill export -o progress.json; stallwise drill export --anki -o deck.txt"
)
@click.option("--anki", is_flag=True, help="The deck as a file for Anki, instead of your progress.")
@click.option("-o", "--output", type=FileToWrite(), help="File to write (default: standard output).")
def export(anki: bool, output: str | None) -> None:
    """Your progress as JSON, or the deck for Anki."""
    from stallwise.drill.deck import all_cards, to_anki
    from stallwise.drill.progress import Progress

    if anki:
        text = to_anki(all_cards())
    else:
        with Progress() as store:
            text = json.dumps(store.export(), indent=1)
    if output:
        write_file(output, text)
    else:
        click.echo(text, nl=False)


@command.command("import", epilog="Example: stallwise drill import progress.json")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
def take_in(file: str) -> None:
    """Adds the reviews of an export made elsewhere."""
    from stallwise.drill.progress import Progress, load_export

    with Progress() as store:
        click.echo(f"{store.take_in(load_export(Path(file)))} reviews added")


for _verb in (cards, learn, play_round, mock_session, past_rounds):
    command.add_command(_verb)
