"""A round in words: one line in, one answer out. The terminal and the page both talk to this."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.drill.artifact_words import WHAT
from stallwise.drill.digest import digest
from stallwise.drill.round import HARD_STOP_S, TARGET_S, Round
from stallwise.drill.rubric import narrated, score
from stallwise.errors import StallwiseError

HELP = (
    "think TEXT    state a hypothesis (the sooner the better)\n"
    "ask WHAT      ask for an artifact: 'nccl per-rank times', 'nsight compute', 'dmesg'\n"
    "calc WORK     arithmetic with units and the catalogue: 70e9*2 / h100.bandwidth\n"
    "fixes A; B; C what to do, most valuable first, with what each is worth\n"
    "commit TEXT   your diagnosis; the round ends and is scored\n"
    "pause         stop the clock; resume goes on\n"
    "dispute TEXT  after the score: disagree with a mark\n"
    "time, help, quit"
)
_VERBS = {
    "think": "hypothesis", "hypothesis": "hypothesis", "hyp": "hypothesis", "h": "hypothesis", "t": "hypothesis",
    "ask": "ask", "show": "ask", "see": "ask", "a": "ask", "calc": "calc", "c": "calc", "fixes": "fixes", "fix": "fixes", "f": "fixes",
    "commit": "commit", "answer": "commit", "pause": "pause", "resume": "resume", "dispute": "dispute", "time": "time", "help": "help",
    "?": "help", "quit": "quit", "exit": "quit",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What to show; `over` when the round is scored, `leave` when the player goes."""

    says: str
    over: bool = False
    leave: bool = False


def opening(played: Round) -> str:
    """The setup and the clock."""
    title = f" ({played.incident.title})" if played.incident.title else ""
    return (
        f"Incident {played.incident.seed}{title}\n\n{played.incident.setup}\n\n"
        f"Target {TARGET_S / 60:.0f} minutes, hard stop {HARD_STOP_S / 60:.0f}. "
        "Say what you think early, ask for what you need; 'help' lists the commands."
    )


def handle(played: Round, line: str) -> Answer:
    """One line of the player's; mistakes are answered, never fatal."""
    word, _, rest = line.strip().partition(" ")
    verb = _VERBS.get(word.lower().rstrip(":"))
    if verb is None:
        return Answer(f"'{word}' is no command.\n{HELP}" if word else HELP)
    try:
        return _act(played, verb, rest.strip())
    except StallwiseError as problem:
        return Answer(f"{problem.problem}; {problem.hint}" if problem.hint else problem.problem)


def _act(played: Round, verb: str, rest: str) -> Answer:
    if verb == "hypothesis":
        played.hypothesis(rest)
        return Answer(f"noted at {clock(played.elapsed_s)}")
    if verb == "ask":
        return Answer(_papers(played, rest))
    if verb == "calc":
        return Answer(played.calc(rest))
    if verb == "fixes":
        ordered = [re.sub(r"^\s*\d+[.)]\s*", "", part) for part in rest.split(";")]
        played.fixes(ordered)
        return Answer("in this order:\n" + "\n".join(f"{n}. {x.strip()}" for n, x in enumerate(ordered, start=1)))
    if verb == "commit":
        played.commit(rest)
        return Answer(verdict(played), over=True)
    if verb == "pause":
        played.pause()
        return Answer(f"paused at {clock(played.elapsed_s)}; 'resume' goes on")
    if verb == "resume":
        played.resume()
        return Answer(f"the clock runs from {clock(played.elapsed_s)}")
    if verb == "dispute":
        played.dispute(rest)
        return Answer("kept beside the mark")
    if verb == "time":
        return Answer(f"{clock(played.elapsed_s)} played, {clock(played.left_s)} to the hard stop")
    if verb == "quit":
        played.pause()
        return Answer("kept; go on with: stallwise drill round --resume", leave=True)
    return Answer(HELP)


def _papers(played: Round, request: str) -> str:
    papers, absent = played.ask(request)
    if papers:
        place = played.hand_out(papers)
        shown = "\n\n".join(f"--- {p.file} ---\n{digest(p)}" for p in papers)
        return f"{shown}\n\n(whole files: {place})"
    if absent:
        return f"There is no such thing here: {WHAT[absent[0]]}. Ask for something else."
    return "I do not know that artifact. Name a tool or a log: nvidia-smi, dmesg, NCCL log, trace, Nsight Compute, engine log."


def verdict(played: Round) -> str:
    """The score with its reasons, then the model answer."""
    result = score(played)
    played.keep_score(result.word, {m.dimension: m.word for m in result.marks})
    lines = [f"{result.word.upper()} after {clock(played.elapsed_s)}", ""]
    lines += [f"{m.word:11}  {m.dimension}: {m.why}" for m in result.marks]
    if result.trap:
        lines += ["", f"The trap was walked into: {result.trap}"]
    return "\n".join(
        [
            *lines,
            "",
            "How it could be told:",
            *(f"  {line}" for line in narrated(played)),
            "",
            "Disagree with a mark? dispute TEXT",
        ]
    )


def clock(seconds: float) -> str:
    """3:07."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
