"""Live rounds in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stallwise.render import strict_json as json
from stallwise.surfaces.cli._drill_cards import wrapped

if TYPE_CHECKING:
    from stallwise.drill.round import Round
    from stallwise.drill.rubric import Result

SESSION = 4  # incidents in one sitting of the mock


@click.command(
    "round",
    epilog="Examples: stallwise drill round; stallwise drill round --seed 4711; stallwise drill round --resume; "
    "stallwise drill round --examiner ./ask_my_model.py",
)
@click.option("--seed", type=click.IntRange(min=1), help="The incident of this number: send it to a friend.")
@click.option("--scenario", type=click.IntRange(1, 8), help="One of the eight classic ones.")
@click.option("--resume", is_flag=True, help="Go on with the last round that was not finished.")
@click.option(
    "--examiner",
    metavar="CMD",
    help="A program of yours that gets the transcript and the rubric as JSON; its comment is shown beside the grades.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the incident (without its answer) and leave.")
def play_round(seed: int | None, scenario: int | None, resume: bool, examiner: str | None, as_json: bool) -> None:
    """Diagnose one incident: open artifacts, tell what it is and what you would do, answer the follow-up."""
    import random
    import time

    from stallwise.drill.generate import incident
    from stallwise.drill.incident import CLASSICS
    from stallwise.drill.journal import unfinished
    from stallwise.drill.requests import artifacts
    from stallwise.drill.round import load, start
    from stallwise.errors import BadRequest

    if seed is not None and scenario is not None:
        raise BadRequest("--seed and --scenario are two ways to choose", hint="give one of them")
    chosen = scenario or seed or random.randrange(CLASSICS + 1, 1 << 30)
    if as_json:
        case = incident(chosen)
        menu = [{"kind": k, "what": artifacts()[k].what, "minutes": artifacts()[k].minutes} for k in case.kinds]
        click.echo(json.dumps({"seed": case.seed, "setup": case.setup, "artifacts": menu}, indent=2))
        return
    if resume:
        waiting = unfinished()
        if not waiting:
            raise BadRequest("there is no unfinished round", hint="start one: stallwise drill round")
        played = load(waiting[0], time.time)
        played.resume()
    else:
        played = start(chosen, time.time)
    _play(played, examiner)


@click.command("mock", epilog="Example: stallwise drill mock   (again for the second sitting)")
@click.option(
    "--sitting", "session", type=click.IntRange(1, 2), help="1: incidents 1 to 4; 2: incidents 5 to 8.  [default: both]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan of the sittings and leave.")
def mock_session(session: int | None, as_json: bool) -> None:
    """All eight classic incidents in two sittings of four."""
    import time

    from stallwise.drill.generate import incident
    from stallwise.drill.round import start
    from stallwise.drill.rubric import DIMENSIONS, WORDS

    plan = {n: tuple(range((n - 1) * SESSION + 1, n * SESSION + 1)) for n in (1, 2) if session in (None, n)}
    if as_json:
        click.echo(json.dumps({str(n): [incident(i).title for i in numbers] for n, numbers in plan.items()}, indent=2))
        return
    results: list[tuple[int, Result]] = []
    for number, seeds in plan.items():
        click.echo(f"Sitting {number} of 2")
        for seed in seeds:
            played = start(seed, time.time)
            if not _play(played):
                click.echo("Stopped; what was played is kept (stallwise drill round --resume).")
                return
            result = played.result()
            results.append((seed, result))
    click.echo(f"{'':3}{'points':>6}  {'level':11}  " + " ".join(f"{name:9}" for name in DIMENSIONS))
    for seed, result in results:
        marks = " ".join(f"{WORDS[m.level]:9}" for m in result.marks.values())
        click.echo(f"{seed:2d} {result.points:6d}  {result.word:11}  {marks}  {incident(seed).title}")


@click.command("rounds", epilog="Example: stallwise drill rounds --json")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def past_rounds(as_json: bool) -> None:
    """Your own rounds: the best, each dimension over time, calibration, and where points are lost."""
    from dataclasses import asdict

    from stallwise.drill.journal import finished
    from stallwise.drill.leaderboard import leaderboard
    from stallwise.drill.repl import clock

    rounds = finished()
    sums = leaderboard(rounds)
    if as_json:
        click.echo(json.dumps({"rounds": [asdict(r) for r in rounds], "board": asdict(sums)}, indent=2))
        return
    if not rounds:
        click.echo("No round has been played to its end. Start one: stallwise drill round")
        return
    click.echo(f"{'':3}{'incident':>10}  {'points':>6}  {'artifacts':>9}  {'clock':>6}  level")
    for place, r in enumerate(sums.best, start=1):
        click.echo(f"{place:2d} {r.seed:10d}  {r.points:6.0f}  {r.minutes:5d} min  {clock(r.played_s):>6}  {r.level}")
    click.echo("\nover time, oldest first (· missing, ▄ pass, █ strong)")
    for name, signs in sums.chart.items():
        click.echo(f"  {name:10} {signs}")
    for how, count, share in sums.calibration:
        click.echo(f"  {how} sure: right in {share:.0%} of {count}")
    trend = "" if sums.mean_before is None else f", {sums.mean_before:.0f} before those"
    click.echo(
        f"{sums.played} played; mean of the last ten {sums.mean_last:.0f}{trend}; most is lost in {sums.weakest}"
    )


def _play(played: Round, examiner: str | None = None) -> bool:
    """Prompts until the round is scored; False when the player leaves before."""
    from stallwise.drill.examiner import comment
    from stallwise.drill.repl import clock, handle, opening, question, takes_lines

    click.echo(wrapped(opening(played)))
    if played.committing:
        click.echo(f"\n{wrapped(question(played))}")
    while True:
        try:
            line = click.prompt(f"\n[{clock(played.elapsed_s)}]", prompt_suffix=" > ", default="", show_default=False)
            while takes_lines(played, line) and (
                more := click.prompt("  more, or Enter to send", prompt_suffix=": ", default="", show_default=False)
            ):
                line += f"\n{more}"
        except (click.Abort, EOFError):
            played.pause()
            click.echo("\nkept; go on with: stallwise drill round --resume")
            return played.over
        answer = handle(played, line)
        click.echo(answer.says if answer.says.startswith("---") else wrapped(answer.says))  # files as they are
        if answer.leave:
            return played.over
        if answer.over:
            evidence = tuple(e for e in played.incident.exhibits if not e.hearsay)
            click.echo(f"\nEvery artifact lies as a file: stallwise diagnose {played.hand_out(evidence)}")
            if examiner:
                remark = comment(examiner, played)
                played.keep("examiner", {"command": examiner, "said": remark})
                click.echo(f"\nYour examiner says (the grades above stay as they are):\n{remark}")
            return True
