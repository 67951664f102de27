"""A round in words: one line in, one answer out. The terminal and agents both talk to this."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.debrief import contradicted, hints
from stallwise.drill.digest import digest
from stallwise.drill.incident import planted_finding
from stallwise.drill.quantity import BARE
from stallwise.drill.requests import artifacts
from stallwise.drill.requests import meant as artifact_meant
from stallwise.drill.round import HARD_STOP_S, TARGET_S, Handed, Round
from stallwise.drill.scoring import Score
from stallwise.errors import StallwiseError
from stallwise.units import example

HELP = (
    "ask WHAT      a number of the menu, or your own words: 'can I see nvidia-smi', 'logs of the slow rank', 'what changed'\n"
    "think TEXT    a hypothesis, for the record; its time is shown\n"
    "calc WORK     arithmetic with units and the catalogue: 70e9*2 / h100.bandwidth\n"
    "commit        no more papers: the questions come one by one, an answer is final, 'skip' leaves one out\n"
    "undo          takes the cause back right after it, where it was misunderstood\n"
    "menu, time, pause, resume, help, quit"
)
BESIDE = ("calc", "undo", "pause", "resume", "time", "help", "quit")  # commands that are heard between two questions
ALONE = ("time", "menu", "undo", "pause", "resume", "help", "quit")
MOST_CHARACTERS_OF_A_LINE = 2  # "c" is the third line while questions are asked, not a command
_VERBS = {
    "think": "think", "hypothesis": "think", "t": "think", "ask": "ask", "show": "ask", "see": "ask", "a": "ask", "calc": "calc",
    "c": "calc", "undo": "undo", "commit": "commit", "answer": "commit", "ready": "commit", "cause": "commit", "menu": "menu",
    "pause": "pause",
    "resume": "resume", "time": "time", "help": "help", "?": "help", "quit": "quit", "exit": "quit",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What to show; `over` when the round is scored, `leave` when the player goes."""

    says: str
    over: bool = False
    leave: bool = False


def opening(played: Round) -> str:
    """The setup, the menu and the clock."""
    title = f" ({played.incident.title})" if played.incident.title else ""
    return (
        f"Incident {played.incident.seed}{title}\n\n{played.incident.setup}\n\n{menu(played)}\n\n"
        f"Target {TARGET_S / 60:.0f} minutes on the clock, hard stop {HARD_STOP_S / 60:.0f}. "
        "The best play is the one paper that settles it. "
        "'help' lists the commands."
    )


def menu(played: Round) -> str:
    """What can be had and what it costs."""
    rows = [
        f"{n:3d}. {artifacts()[k].what} ({artifacts()[k].minutes} min){'  [have it]' if k in played.asked else ''}"
        for n, k in enumerate(played.menu, start=1)
    ]
    return "You can have, for minutes of the incident:\n" + "\n".join(rows)


def question(played: Round) -> str:
    """What is asked now, with its choices."""
    stage, form = played.stage, played.form
    if stage == "cause":
        lines = [cause_profiles()[c].says for c in form.causes]
        how = "(3 80%, or 3 70%; 5 20%; what is left means: something else)"
        return f"Which cause costs most, and how sure are you? {how}\n{_listed(lines)}"
    if stage == "second":
        return "Is there a second, smaller fault? (a number of the same list, or none)"
    if stage == "number":
        number = played.incident.number
        unit = "" if number.unit in BARE else f" (with its unit, like {example(number.unit)})"
        return f"{number.ask}{unit}"
    if stage == "fixes":
        asked = "What do you do, most valuable first? Leave out what does not help here. (2 1)"
        return f"{asked}\n{_listed([c.text for c in form.fixes])}"
    if stage == "falsifier":
        return f"Which observation would prove that diagnosis wrong?\n{_listed([c.text for c in form.refuters])}"
    if stage == "not-first":
        return f"Which of these must not be done first?\n{_listed([c.text for c in form.first_moves])}"
    if stage == "tell":
        return "Tell it as you would tell a colleague, in any order and any words (one line; skip to leave it out)."
    if stage == "ticks":
        found = hints(played.ideas, played.commitments.debrief)
        hint = (
            f"\n(a text check did not find: {', '.join(found)}; that is a hint, not a mark)"
            if played.commitments.debrief and found
            else ""
        )
        return f"A good account holds these. Which did you say? (1 3, all, none){hint}\n{_listed([i.text for i in played.ideas])}"
    return ""


def handle(played: Round, line: str) -> Answer:
    """One line of the player's; mistakes are answered, never fatal."""
    word, _, rest = line.strip().partition(" ")
    verb = _VERBS.get(word.lower().rstrip(":"), "")
    verb = "" if rest.strip() and verb in ALONE else verb  # "time by stage" is a request
    committing = any(e.kind in ("cause", "committing") for e in played.events)
    try:
        if played.over:
            return Answer("this round is over; start another: stallwise drill round", over=True)
        if committing and (len(word) < MOST_CHARACTERS_OF_A_LINE or verb not in BESIDE):
            return _commit(played, rest if verb == "commit" else line)
        if not verb and line.strip() and (artifact_meant(line) or line.strip()[0].isdigit()):
            return Answer(_artifacts(played, line))
        if not verb:
            return Answer(
                f"I do not know that artifact or command: '{line.strip()[:80]}'.\n{HELP}" if line.strip() else HELP
            )
        return _act(played, verb, rest.strip())
    except StallwiseError as problem:
        return Answer(f"{problem.problem}; {problem.hint}" if problem.hint else problem.problem)


def _act(played: Round, verb: str, rest: str) -> Answer:
    if verb == "think":
        played.think(rest)
        return Answer(f"noted at {clock(played.elapsed_s)}")
    if verb == "ask":
        return Answer(_artifacts(played, rest))
    if verb == "calc":
        return Answer(played.calc(rest))
    if verb == "menu":
        return Answer(menu(played))
    if verb == "undo":
        played.undo()
        return Answer(f"taken back\n\n{question(played)}")
    if verb == "commit":
        if rest:
            return _commit(played, rest)
        played.keep_committing()
        return Answer(question(played))
    if verb == "pause":
        played.pause()
        return Answer(f"paused at {clock(played.elapsed_s)}; 'resume' goes on")
    if verb == "resume":
        played.resume()
        return Answer(f"the clock runs from {clock(played.elapsed_s)}")
    if verb == "time":
        return Answer(
            f"{clock(played.elapsed_s)} played, {clock(played.left_s)} to the hard stop; {played.minutes} minutes spent on papers"
        )
    if verb == "quit":
        played.pause()
        return Answer("kept; go on with: stallwise drill round --resume", leave=True)
    return Answer(HELP)


def _commit(played: Round, text: str) -> Answer:
    stage = played.commit(text)
    taken = taken_as(played, stage)
    if played.stage == "ticks" and not played.commitments.debrief:
        played.commit("none")
    if played.over:
        return Answer(f"{taken}\n\n{verdict(played)}", over=True)
    return Answer(f"{taken}\n\n{question(played)}")


def taken_as(played: Round, stage: str) -> str:
    """How an answer was understood."""
    commitments, form = played.commitments, played.form
    if stage == "cause":
        given = "; ".join(f"{cause_profiles()[c].says} ({c}) {p:.0%}" for c, p in commitments.cause.items())
        rest = 1 - sum(commitments.cause.values())
        other = f"; something else {rest:.0%}" if given and rest > 0.005 else ""
        return f"taken: {given or 'nothing'}{other} ('undo' if that is not what you meant)"
    if stage == "second":
        return f"taken: {commitments.second or ('nothing said' if commitments.second is None else 'no second fault')}"
    if stage == "number":
        return f"taken: {'nothing' if commitments.number is None else f'{commitments.number:g} {played.incident.number.unit.value}'}"
    if stage == "fixes":
        return "taken: " + ("; ".join(form.fixes[n].text for n in commitments.fixes) or "nothing")
    if stage == "falsifier":
        return "taken: " + (
            form.refuters[commitments.falsifier].text if commitments.falsifier is not None else "nothing"
        )
    if stage == "not-first":
        return "taken: " + (
            form.first_moves[commitments.not_first].text if commitments.not_first is not None else "nothing"
        )
    if stage == "tell":
        return "noted"
    return "ticked"


def _artifacts(played: Round, request: str) -> str:
    handed = played.ask(request)
    lines = []
    if handed.exhibits:
        place = played.hand_out(handed.exhibits)
        lines.append("\n\n".join(f"--- {p.file} ---\n{digest(p)}" for p in handed.exhibits))
        lines.append(f"({_cost(handed)}; whole files: {place})")
    elif handed.absent:
        lines.append(
            f"There is no such thing here: {artifacts()[handed.absent[0]].what}. {_cost(handed)} to find out.\n{menu(played)}"
        )
    else:
        lines.append(f"I do not know that artifact.\n{menu(played)}")
    if handed.exhibits and handed.unknown:
        lines.append(f"Not understood: {'; '.join(handed.unknown)}")
    return "\n\n".join(lines)


def _cost(handed: Handed) -> str:
    return f"{handed.minutes} minute{'' if handed.minutes == 1 else 's'}"


def verdict(played: Round) -> str:
    """The score with its reasons, what the next levels need, then the model answer."""
    result = played.score()
    played.keep("score", kept(played, result))
    lines = [
        f"{result.word.upper()}: {result.points:.0f} of 100, {result.minutes} minutes of papers, "
        f"{clock(played.elapsed_s)} on the clock",
        "",
    ]
    for heading, (points, of) in result.by_heading().items():
        lines.append(f"{heading:14} {points:5.1f} of {of}")
        lines += [f"  {p.points:5.1f}/{p.of:<3d} {p.name}: {p.why}" for p in result.parts if p.heading == heading]
    if result.trap:
        lines += ["", f"Capped: your list begins with the trap of this incident: {result.trap}"]
    for idea, tick in zip(played.ideas, played.commitments.ticks, strict=False):
        against = contradicted(idea, played.commitments, played.incident, played.form) if tick else ""
        if against:
            lines.append(f"A tick that cannot stand ({idea.about}): {against}")
    first = next((e.at_s for e in played.events if e.kind == "think"), None)
    if first is not None:
        lines.append(f"First hypothesis after {first:.0f} s (under 90 s is good, under 45 s very good; not graded).")
    for level, missing in result.needs:
        lines.append(f"For {level}: {'; '.join(missing) if missing else 'what the level before needs'}")
    return "\n".join([*lines, "", "How it could be told:", *(f"  {line}" for line in narrated(played))])


def kept(played: Round, result: Score) -> dict[str, object]:
    """The score as the journal keeps it."""
    return {
        "level": result.word,
        "points": round(result.points, 1),
        "minutes": result.minutes,
        "headings": {h: round(p, 1) for h, (p, _) in result.by_heading().items()},
    }


def narrated(played: Round) -> list[str]:
    """The model answer, from this incident's own evidence."""
    known, finding = cause_profiles()[played.incident.cause], planted_finding(played.incident)
    settles = " or ".join(artifacts()[k].what for k in played.incident.deciding)
    lines = [f"{played.incident.cause}: {known.says}; {settles} settles it"]
    lines.append(f"{played.incident.number.ask} {played.incident.number.shown}")
    if finding is not None:
        lines += [finding.headline, *((finding.summary,) if finding.summary else ())]
        lines += [f"because {reason.text}" for reason in finding.because]
        lines += [f"not here: {reason.text}" for reason in finding.not_here]
        lines += [
            f"{n}. {f.action}" + (f" ({f.worth})" if f.worth else "") for n, f in enumerate(finding.fixes, start=1)
        ]
    lines += [f"refuted if {known.refuted}", f"the trap: {known.trap}"]
    if played.incident.rumoured_cause:
        lines.append(f"the colleague's note blamed {played.incident.rumoured_cause}: nothing in the papers says so")
    if played.incident.source:
        lines.append(f"told after {played.incident.source}")
    lines += [f"there was a second, smaller fault too, {c}: {cause_profiles()[c].says}" for c in played.incident.also]
    return lines


def _listed(lines: list[str]) -> str:
    return "\n".join(f"{n:3d}. {line}" for n, line in enumerate(lines, start=1))


def clock(seconds: float) -> str:
    """3:07."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
