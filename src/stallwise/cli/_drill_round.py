"""Live rounds in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stallwise.render import strict_json as json

if TYPE_CHECKING:
    from stallwise.drill.round import Round

SITTING = 4  # incidents in one sitting of the mock


@click.command(
    "round", epilog="Examples: stallwise drill round; stallwise drill round --seed 4711; stallwise drill round --resume"
)
@click.option("--seed", type=click.IntRange(min=1), help="The incident of this number: send it to a friend.")
@click.option("--scenario", type=click.IntRange(1, 8), help="One of the eight classic ones.")
@click.option("--resume", is_flag=True, help="Go on with the last round that was not finished.")
@click.option("--json", "as_json", is_flag=True, help="Print the incident (without its answer) and leave.")
def play_round(seed: int | None, scenario: int | None, resume: bool, as_json: bool) -> None:
    """Diagnose one incident against the clock: think, ask, calc, fixes, commit."""
    import random
    import time

    from stallwise.drill.generate import CLASSICS, incident
    from stallwise.drill.journal import unfinished
    from stallwise.drill.round import load, start
    from stallwise.errors import BadRequest

    if seed is not None and scenario is not None:
        raise BadRequest("--seed and --scenario are two ways to choose", hint="give one of them")
    chosen = scenario or seed or random.randrange(CLASSICS + 1, 1 << 30)
    if as_json:
        case = incident(chosen)
        papers = [{"kind": e.kind, "file": e.file, "bytes": len(e.content)} for e in case.exhibits]
        click.echo(json.dumps({"seed": case.seed, "setup": case.setup, "artifacts": papers}, indent=2))
        return
    if resume:
        waiting = unfinished()
        if not waiting:
            raise BadRequest("there is no unfinished round", hint="start one: stallwise drill round")
        played = load(waiting[0], time.time)
        played.resume()
    else:
        played = start(chosen, time.time)
    _play(played)


@click.command("mock", epilog="Example: stallwise drill mock   (again for the second sitting)")
@click.option("--sitting", type=click.IntRange(1, 2), help="1: incidents 1 to 4; 2: incidents 5 to 8.  [default: both]")
@click.option("--json", "as_json", is_flag=True, help="Print the plan of the sittings and leave.")
def mock_sitting(sitting: int | None, as_json: bool) -> None:
    """All eight classic incidents in two sittings of four."""
    import time

    from stallwise.drill.generate import incident
    from stallwise.drill.round import start
    from stallwise.drill.rubric import score

    plan = {n: tuple(range((n - 1) * SITTING + 1, n * SITTING + 1)) for n in (1, 2) if sitting in (None, n)}
    if as_json:
        click.echo(json.dumps({str(n): [incident(i).title for i in numbers] for n, numbers in plan.items()}, indent=2))
        return
    results: list[tuple[int, str]] = []
    for number, seeds in plan.items():
        click.echo(f"Sitting {number} of 2")
        for seed in seeds:
            played = start(seed, time.time)
            if not _play(played):
                click.echo("Stopped; what was played is kept (stallwise drill round --resume).")
                return
            results.append((seed, score(played).word))
    for seed, word in results:
        click.echo(f"{seed}  {word:11}  {incident(seed).title}")


@click.command("rounds", epilog="Example: stallwise drill rounds --json")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def past_rounds(as_json: bool) -> None:
    """What you have played, with verdicts, and which dimension fails most."""
    from collections import Counter
    from dataclasses import asdict

    from stallwise.drill.desk import clock
    from stallwise.drill.journal import finished

    rounds = finished()
    if as_json:
        click.echo(json.dumps([asdict(r) for r in rounds], indent=2))
        return
    for played in rounds:
        disputed = f"  {played.disputes} disputed" if played.disputes else ""
        click.echo(f"{played.seed:10d}  {clock(played.played_s):>6}  {played.verdict}{disputed}")
    weak = Counter(name for r in rounds for name, word in r.marks.items() if word == "fail").most_common(1)
    click.echo(f"{len(rounds)} played, {sum(r.verdict == 'strong pass' for r in rounds)} strong")
    if weak:
        click.echo(f"most often missed: {weak[0][0]} ({weak[0][1]} times)")


def _play(played: Round) -> bool:
    """Prompts until the round is scored; False when the player leaves before."""
    from stallwise.drill.desk import clock, handle, opening

    click.echo(opening(played))
    while True:
        try:
            line = click.prompt(f"\n[{clock(played.elapsed_s)}]", prompt_suffix=" > ", default="", show_default=False)
        except (click.Abort, EOFError):
            played.pause()
            click.echo("\nkept; go on with: stallwise drill round --resume")
            return played.committed
        answer = handle(played, line)
        click.echo(answer.says)
        if answer.leave or (played.committed and not answer.over):
            return played.committed
        if answer.over:
            words = click.prompt("dispute a mark (empty: none)", default="", show_default=False)
            if words.strip():
                click.echo(handle(played, f"dispute {words}").says)
            return True
