"""Cards and the beginner's path in the terminal."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import click

from stallwise.render import strict_json as json
from stallwise.terminal import terminal_columns

if TYPE_CHECKING:
    from stallwise.drill.card_review import CardReview


def wrapped(text: str) -> str:
    """Prose at the width of the terminal; what is indented stays so."""
    width = max(40, terminal_columns(110))
    return "\n".join(
        fill(line, width, subsequent_indent=" " * (len(line) - len(line.lstrip()))) if len(line) > width else line
        for line in text.split("\n")
    )


def _asked(review: CardReview) -> bool:
    """Asks until the card is answered; False where the learner leaves."""
    from stallwise.errors import BadRequest

    while review.stage != "over":
        click.echo(wrapped(review.asks()))
        try:
            reply = click.prompt("you", default="", show_default=False)
        except (click.Abort, EOFError):
            click.echo()
            return False
        if reply.strip().lower() in ("quit", "exit", "q"):
            return False
        try:
            taken = review.answer(reply)
        except BadRequest as problem:
            taken = f"{problem.problem}; {problem.hint}"
        click.echo(f"{wrapped(taken)}\n" if taken else "")
    return True


@click.command("cards", epilog="Examples: stallwise drill cards; stallwise drill cards --topic memory --count 3")
@click.option("--topic", help="Only this topic (see `stallwise drill progress`).")
@click.option("--level", type=click.Choice(["easy", "medium", "hard", "scenario"]), help="Only this level.")
@click.option("--count", default=5, show_default=True, help="How many cards.")
@click.option("--json", "as_json", is_flag=True, help="List the cards that would be asked, with answers, and leave.")
def cards(topic: str | None, level: str | None, count: int, as_json: bool) -> None:
    """Ask cards that are due: say it in your own words, answer the exact check, say how sure; the next time is scheduled."""
    from dataclasses import asdict

    from stallwise.drill.card_review import CardReview
    from stallwise.drill.deck import all_cards, topics
    from stallwise.drill.progress import Progress
    from stallwise.errors import BadRequest

    if topic is not None and topic not in topics():
        raise BadRequest(f"there is no topic '{topic}'", hint="one of " + ", ".join(topics()))
    wanted = {c.id: c for c in all_cards() if topic in (None, c.topic) and level in (None, c.level)}
    with Progress() as progress:
        chosen = [wanted[i] for i in progress.due(wanted)[:count]]
        if as_json:
            rows = [asdict(c) | {"check": asdict(c.check) | {"unit": c.check.unit.value}} for c in chosen]
            click.echo(json.dumps(rows, indent=2))
            return
        for number, card in enumerate(chosen, start=1):
            click.echo(f"\n{number}/{len(chosen)}  [{card.topic}, {card.level}]")
            review = CardReview(card, seed=progress.times(card.id))
            if not _asked(review):
                return
            if card.corrects:
                click.echo(f"Common misconception: {card.corrects}")
            due = progress.review(card.id, card.topic, review.verdict, review.share)
            click.echo(f"{review.verdict}; next time: {due:%Y-%m-%d}")
    if not chosen:
        click.echo("Nothing is due. Try `stallwise drill numbers`.")


@click.command(
    "learn", epilog="Examples: stallwise drill learn; stallwise drill learn --steps 1; stallwise drill learn --json"
)
@click.option("--steps", default=3, show_default=True, type=click.IntRange(min=1), help="How many steps this time.")
@click.option("--again", is_flag=True, help="From the first step, whatever was done before.")
@click.option("--json", "as_json", is_flag=True, help="Print the path with what is done and leave.")
def learn(steps: int, again: bool, as_json: bool) -> None:
    """From the first mechanism to the last: read a page, say it in your own words, answer the check. Goes on where you left."""
    from stallwise.drill.card_review import CardReview
    from stallwise.drill.learn import next_step, path
    from stallwise.drill.progress import Progress

    with Progress() as progress:
        done = set() if again else {s.item for s in path() if progress.passed(s.item)}
        if as_json:
            rows = [s.row() | {"step": n, "done": s.item in done} for n, s in enumerate(path(), start=1)]
            click.echo(json.dumps(rows, indent=2))
            return
        shown = 0
        for _ in range(steps):
            found = next_step(done)
            if found is None:
                click.echo("The path is done. Go on with: stallwise drill round")
                return
            number, step = found
            click.echo(f"\nStep {number} of {len(path())} ({step.card.level})\n")
            if number != shown and step.concept:
                click.echo(f"{wrapped(step.page())}\n")
            shown = number
            review = CardReview(step.card, seed=progress.times(step.item))
            if not _asked(review):
                break
            progress.review(step.item, "learn", review.verdict, review.share)
            done |= {step.item} if review.right else set()
            click.echo(f"{review.verdict}." + ("" if review.right else " The same step comes again."))
    click.echo(f"{len(done)} of {len(path())} steps done; go on with: stallwise drill learn")
