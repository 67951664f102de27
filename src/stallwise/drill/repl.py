"""A round in words: one line in, one answer out. The terminal, the page and agents all talk to this."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.weigh import NUMBERS
from stallwise.drill.digest import digest
from stallwise.drill.incident import planted_finding
from stallwise.drill.quantity import BARE
from stallwise.drill.requests import artifacts
from stallwise.drill.requests import meant as artifact_meant
from stallwise.drill.round import HARD_STOP_S, TARGET_S, Handed, Round
from stallwise.drill.rubric import DIMENSIONS, WORDS, Result
from stallwise.errors import StallwiseError
from stallwise.units import example

HELP = (
    "ask WHAT      a number of the menu, or your own words: 'can I see nvidia-smi', 'logs of the slow rank', 'what changed'\n"
    "think TEXT    a hypothesis; the first one stops the rubric's clock\n"
    "note TEXT     for yourself\n"
    "hint          help that costs a point\n"
    "calc WORK     arithmetic with units and the catalogue: 70e9*2 / h100.bandwidth\n"
    "commit        no more artifacts: say what it is and what you would do; 'skip' leaves a question out\n"
    "menu, time, pause, resume, help, quit"
)
BESIDE = ("calc", "note", "pause", "resume", "time", "help", "quit")  # commands that are heard between two questions
MOST_REASONS = 3  # of the doctor's, in the model answer: the whole is what `diagnose` prints
ALONE = ("time", "menu", "hint", "pause", "resume", "help", "quit")
MOST_CHARACTERS_OF_A_LINE = 2  # "c" is the third line while questions are asked, not a command
_VERBS = {
    "think": "think", "hypothesis": "think", "t": "think", "ask": "ask", "show": "ask", "see": "ask", "a": "ask", "calc": "calc",
    "c": "calc", "note": "note", "hint": "hint", "commit": "commit", "answer": "commit", "ready": "commit", "menu": "menu",
    "pause": "pause", "resume": "resume", "time": "time", "help": "help", "?": "help", "quit": "quit", "exit": "quit",
}  # fmt: skip
_HYPOTHESIS = re.compile(
    r"(?:i (?:think|guess|bet|suspect)|my (?:guess|bet|hypothesis)|maybe|perhaps|probably|it (?:could|may|might) be)\b"
)
_LOST = re.compile(
    r"\b(?:where (?:do|should|to)|what (?:do|should|can|now)|how do|help me|stuck|no idea|don't know|do not know)\b"
)
START = (
    "Name two explanations, then open the cheapest artifact that tells them apart: type its number. 'think' keeps a hypothesis, "
    "'hint' helps for a point, 'commit' ends the search, 'help' lists all."
)
# Where the account lacks it, what is asked back once.
_ASKED_BACK = {
    "cause": "I could not read a cause. Say in a sentence what it is and how it comes about, or pick the nearest:",
    "fixes": "What would you do? At least three steps, what you look at included: what first, what then, and why in this order.",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What to show; `over` when the round is scored, `leave` when the player goes."""

    says: str
    over: bool = False
    beside_sheet: str = ""  # the same where the marks are shown beside it
    leave: bool = False


def opening(played: Round, listed: bool = True) -> str:
    """The setup, the menu (unless it is shown beside it) and the clock."""
    title = f" ({played.incident.title})" if played.incident.title else ""
    clocks = (
        f"Target {TARGET_S / 60:.0f} minutes on the clock, hard stop {HARD_STOP_S / 60:.0f}. "
        "Ask for what tells your candidates apart, not for everything. 'help' lists the commands."
    )
    parts = [f"Incident {played.incident.seed}{title}", played.incident.setup, menu(played) if listed else "", clocks]
    return "\n\n".join(part for part in parts if part)


def menu(played: Round) -> str:
    """What can be had and what it costs."""
    rows = [
        f"{n:3d}. {artifacts()[k].what} ({artifacts()[k].minutes} min){'  [have it]' if k in played.asked else ''}"
        for n, k in enumerate(played.menu, start=1)
    ]
    return "You can have, for minutes of the incident:\n" + "\n".join(rows)


def question(played: Round) -> str:
    """What is asked now."""
    stage = played.stage
    if stage == "tell":
        return (
            "Tell it as you would tell a colleague, in whole sentences: what it is and how you know, with numbers; "
            "what it is not and why; what you would do first, and then."
        )
    if stage == "again":
        listed = _listed([cause_profiles()[c].says for c in played.candidates])
        asked = [_ASKED_BACK[name] for name in played.unread]
        return "\n".join([*asked[:1], *([listed] if "cause" in played.unread else []), *asked[1:]])
    if stage == "sure":
        return "How sure are you of that cause? (like 80%)"
    if stage == "challenge":
        number = played.challenge.number
        unit = "" if number.unit in BARE else f" (with its unit, like {example(number.unit)})"
        given = played.weighed.numbers
        return f"{f'You committed to numbers ({given.why.removeprefix(NUMBERS)}). ' if given.level else ''}{number.ask}{unit}"
    return ""


def handle(played: Round, line: str) -> Answer:
    """One line of the player's; mistakes are answered, never fatal."""
    word, _, rest = line.strip().partition(" ")
    verb = _VERBS.get(word.lower().rstrip(":"), "")
    verb = "" if rest.strip() and verb in ALONE else verb  # "time by stage" is a request
    committing = played.committing
    try:
        if played.over:
            return Answer("this round is over; start another: stallwise drill round", over=True)
        if committing and (len(word) < MOST_CHARACTERS_OF_A_LINE or verb not in BESIDE):
            return _commit(played, rest if verb == "commit" else line)
        if not verb and _HYPOTHESIS.match(line.strip().lower()):
            return _act(played, "think", line.strip())
        if not verb and line.strip() and (artifact_meant(line) or line.strip()[0].isdigit()):
            return Answer(_artifacts(played, line))
        if not verb:
            lost = not line.strip() or _LOST.search(line.lower())
            return Answer(START if lost else f"I do not know that artifact or command: '{line.strip()[:80]}'. {START}")
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
    if verb == "note":
        played.note(rest)
        return Answer("noted")
    if verb == "hint":
        return Answer(f"{played.hint()} (a point for the hint)")
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
            f"{clock(played.elapsed_s)} played, {clock(played.left_s)} to the hard stop; {played.minutes} minutes spent on artifacts"
        )
    if verb == "quit":
        played.pause()
        return Answer("kept; go on with: stallwise drill round --resume", leave=True)
    return Answer(HELP)


def _commit(played: Round, text: str) -> Answer:
    stage = played.commit(text)
    taken = taken_as(played, stage)
    if played.over:
        return Answer(f"{taken}\n\n{verdict(played)}", over=True, beside_sheet=f"{taken}\n\n{explained(played)}")
    return Answer(f"{taken}\n\n{question(played)}")


def takes_lines(played: Round, line: str) -> bool:
    """Whether this line begins an account, which may have several."""
    word = line.strip().lower()
    return (
        played.committing and played.stage in ("tell", "again") and " " in word and word.partition(" ")[0] not in BESIDE
    )


def taken_as(played: Round, stage: str) -> str:
    """How an answer was understood."""
    if stage in ("tell", "again"):
        claims = played.weighed.understood
        return "understood: " + "; ".join(claims) if claims else "understood: nothing that could be weighed"
    if stage == "sure":
        return "taken: nothing" if played.sure is None else f"taken: {played.sure:.0%}"
    answered = {True: "right", False: "no", None: "left out"}[played.answered]
    return f"{answered}: {played.challenge.why}"


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
    """The marks with their reasons, what a strong pass needs, then the model answer."""
    done = played.result()
    played.keep("score", kept(played, done))
    lines = [
        f"{done.word.upper()}: {done.points} of 12, {clock(played.elapsed_s)} on the clock, "
        f"{played.minutes} minutes of artifacts",
        "",
    ]
    lines += [f"{WORDS[m.level]:8} {DIMENSIONS[name]}: {m.why}" for name, m in done.marks.items()]
    if done.hints:
        lines.append(f"{-done.hints:+d}       hints")
    if done.sure is not None:
        lines.append(
            f"You were {done.sure:.0%} sure and {'right' if done.right else 'wrong'}: quadratic loss {done.loss:.2f} (0 is best)"
        )
    return "\n".join([*lines, "", explained(played)])


def explained(played: Round) -> str:
    """The model answer under its heading."""
    return "\n".join(["How it could be explained:", *(f"  {line}" for line in narrated(played))])


def kept(played: Round, done: Result) -> dict[str, object]:
    """The result as the journal keeps it."""
    return {
        "level": done.word,
        "points": done.points,
        "minutes": played.minutes,
        "dimensions": {name: m.level for name, m in done.marks.items()},
        "sure": done.sure,
        "right": done.right,
    }


def narrated(played: Round) -> list[str]:
    """The model answer: what the incident's table and this incident's own files say."""
    case, known, finding = played.incident, played.account, planted_finding(played.incident)
    profile, settles = cause_profiles()[case.cause], " or ".join(artifacts()[k].what for k in case.deciding)
    lines = [f"{case.cause}: {known.cause.says}; {settles} settles it", *(f"how: {i.says}" for i in known.mechanisms)]
    if finding is not None:
        lines += [f"seen: {text}" for text in (finding.headline, *(r.text for r in finding.because[:MOST_REASONS]))]
    remedies = dict.fromkeys(i.says for rank, i in sorted(known.fixes, key=lambda fix: fix[0]) if rank)
    lines += [f"{n}. {says}" for n, says in enumerate(remedies, start=1)]
    lines += [f"look at: {i.says}" for rank, i in known.fixes if not rank]
    lines += [f"refuted if {profile.refuted}", f"the trap: {known.traps[0].says}"]
    if case.rumoured_cause:
        lines.append(f"the colleague's note blamed {case.rumoured_cause}: nothing in the files says so")
    if case.source:
        lines.append(f"after {case.source}")
    return lines + [f"there was a second, smaller fault too, {c}: {cause_profiles()[c].says}" for c in case.also]


def _listed(lines: list[str]) -> str:
    return "\n".join(f"{n:3d}. {line}" for n, line in enumerate(lines, start=1))


def clock(seconds: float) -> str:
    """3:07."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
