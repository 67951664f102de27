"""A second opinion: any program the player trusts gets the transcript and the rubric as JSON and answers in text."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.requests import artifacts
from stallwise.drill.round import STAGES, Round
from stallwise.drill.rubric import WORDS
from stallwise.errors import BadRequest

SCHEMA = "stallwise.drill/1"
PATIENCE_S = 120.0
MOST_CHARACTERS = 4000


def transcript(played: Round) -> dict[str, Any]:
    """The whole round, the rubric and the exact grades; nothing in it asks the examiner for a mark."""
    done, case, known = played.result(), played.incident, played.account
    return {
        "schema": SCHEMA,
        "seed": case.seed,
        "setup": case.setup,
        "planted": {"cause": case.cause, "says": cause_profiles()[case.cause].says, "also": list(case.also)},
        "events": [
            {
                "kind": e.kind,
                "at_s": round(e.at_s, 1),
                "said": json.loads(e.text) if e.kind in (*STAGES, "ask") else e.text,
            }
            for e in played.events
            if e.kind in (*STAGES, "think", "ask", "calc")
        ],
        "menu": {k: artifacts()[k].minutes for k in played.menu},
        "challenge": {
            "ask": played.challenge.number.ask,
            "value": played.challenge.number.value,
            "unit": played.challenge.number.unit.value,
        },
        "rubric": {
            "cause": known.cause.says,
            "mechanisms": [i.says for i in known.mechanisms],
            "fixes": [{"rank": rank, "says": i.says} for rank, i in known.fixes],
            "traps": [i.says for i in known.traps],
        },
        "grades": {
            "level": done.word,
            "points": done.points,
            "marks": {name: {"mark": WORDS[m.level], "why": m.why} for name, m in done.marks.items()},
        },
        "asks": "Comment on the prose and the reasoning, for the learner. The grades are exact and stay as they are.",
    }


def comment(command: str, played: Round, patience_s: float = PATIENCE_S) -> str:
    """What the program says; its failure is a sentence, never the end of the round."""
    words = shlex.split(command)
    if not words:
        raise BadRequest("the examiner is a command", hint="--examiner './my_examiner.py'")
    text = json.dumps(transcript(played))
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=patience_s, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        return f"(the examiner could not be heard: {type(error).__name__})"
    if done.returncode != 0:
        return f"(the examiner left with status {done.returncode}: {done.stderr.strip()[-300:]})"
    return done.stdout.strip()[:MOST_CHARACTERS] or "(the examiner said nothing)"
