"""The beginner's path in the terminal."""

from __future__ import annotations

import click

from stallwise.render import strict_json as json


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
    from stallwise.errors import BadRequest

    with Progress() as progress:
        done = set() if again else {s.item for s in path() if progress.passed(s.item)}
        if as_json:
            rows = [
                {
                    "step": n,
                    "card": s.card.id,
                    "level": s.card.level,
                    "mechanism": s.concept.title if s.concept else "",
                    "done": s.item in done,
                }
                for n, s in enumerate(path(), start=1)
            ]
            click.echo(json.dumps(rows, indent=2))
            return
        for _ in range(steps):
            found = next_step(done)
            if found is None:
                click.echo("The path is done. Go on with: stallwise drill round")
                return
            number, step = found
            click.echo(f"\nStep {number} of {len(path())} ({step.card.level})\n")
            if step.page():
                click.echo(f"{step.page()}\n")
            review = CardReview(step.card, seed=progress.times(step.item))
            while review.stage != "over":
                click.echo(review.asks())
                try:
                    reply = click.prompt("you", default="", show_default=False)
                except (click.Abort, EOFError):
                    click.echo("\nkept; go on with: stallwise drill learn")
                    return
                if reply.strip().lower() in ("quit", "exit", "q"):
                    click.echo("kept; go on with: stallwise drill learn")
                    return
                try:
                    click.echo(review.answer(reply) or " ")
                except BadRequest as problem:
                    click.echo(f"{problem.problem}; {problem.hint}")
            progress.review(step.item, "learn", review.verdict, review.share)
            if review.right:
                done.add(step.item)
            click.echo(f"\n{review.verdict}." + ("" if review.right else " The same step comes again."))
    click.echo(f"{len(done)} of {len(path())} steps done; go on with: stallwise drill learn")
