"""The verdict of a diagnosis and the words around it, the same in every form."""

from __future__ import annotations

from collections.abc import Iterable

from stallwise.doctor.findings.diagnosis import OPEN, SOMETHING_ELSE, Diagnosis, Hypothesis, State
from stallwise.doctor.findings.finding import PERHAPS, Finding, Gain, Reason
from stallwise.doctor.findings.proof import PROGRAM_END, Proof
from stallwise.doctor.findings.question import Question
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.render.blocks import Depth, Verdict, Words
from stallwise.render.phrases import place, places, worth
from stallwise.units import Unit, show

MOST_NAMED = 5
MOST_PARTS = 8  # cards or links of a proof that are shown one by one
SOURCES_SHOWN = 3
NAMED = 0.2  # of probability: a cause below this heads no answer; what the file itself lacks does

CATEGORY_MEANING = {
    Category.COMPUTE: "kernels run, other than communication",
    Category.COMMUNICATION: "a collective runs and nothing else hides it",
    Category.INPUT_WAIT: "the device is idle because the next batch is not there",
    Category.LAUNCH_GAP: "the device is idle because the host launches too slowly",
    Category.HOST_WAIT: "the device is idle while the host works, compiles, collects or synchronises",
    Category.COPY: "a copy over the bus with nothing else to do",
    Category.BUBBLE: "a pipeline stage waits for its neighbours",
    Category.WARM_UP: "first launches, code that is loaded, a graph that is captured: once a run",
    Category.CHECKPOINT: "the loop stands while state is written",
    Category.OTHER: "idle time without a known reason, the profiler's own work included",
    Category.QUEUE: "a request waits for its first iteration",
    Category.PREFILL: "the prompt is read",
    Category.FIRST_TOKEN: "a request waits and its prompt is read: nothing here separates the two",
    Category.DECODE: "tokens are generated",
    Category.PREEMPTED: "a running request was thrown out and starts again",
    Category.NETWORK: "bytes are on their way between client and server",
}


def saves(gain: Gain | None, ledger: Ledger | None) -> Words:
    """ "saves 57.4 to 62.4 ms per step (1.92-2.09x)", empty without a gain."""
    if gain is None:
        return ""
    return ("saves ", *worth(gain, ledger)) if gain.high_s > 0 else "the same time as above"


def run_findings(diagnosis: Diagnosis) -> list[Finding]:
    """Findings about the run, those about single kernels left out."""
    return [f for f in diagnosis.findings if f.scope.kernel is None]


def kernel_findings(diagnosis: Diagnosis) -> dict[str, list[Finding]]:
    """Findings about single kernels, by kernel."""
    found: dict[str, list[Finding]] = {}
    for finding in diagnosis.findings:
        if finding.scope.kernel is not None:
            found.setdefault(finding.scope.kernel, []).append(finding)
    return found


FOUND, MOST_LIKELY, CANNOT_TELL, IN_LINE = "FOUND", "MOST LIKELY", "CANNOT TELL YET", "NOTHING OUT OF LINE"
ENDED = "ENDED IN AN ERROR"  # where no cause covers it


def verdict(diagnosis: Diagnosis) -> Verdict:
    """The three lines that stand above everything else."""
    return {State.SICK: _sick, State.HEALTHY: _healthy, State.UNCLEAR: _unclear}[diagnosis.state](diagnosis)


def _sick(diagnosis: Diagnosis) -> Verdict:
    first = run_findings(diagnosis)[0]
    fix = first.fixes[0] if first.fixes else None
    worth_words = saves(first.gain, diagnosis.ledger)
    return Verdict(
        first.headline,
        first.summary,
        f"Do: {fix.action.rstrip('.')}." if fix else "",
        "bad",
        basis_text(first, diagnosis),
        _voice(first, diagnosis),
        worth=("Fixing it ", *worth_words, ".") if isinstance(worth_words, tuple) else "",
        sources=_places(first.because),
        do_depth=Depth.REPORT,
    )


def _places(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """Where the verdict's own numbers come from."""
    return tuple(dict.fromkeys(place(s) for r in reasons for s in r.sources))[:SOURCES_SHOWN]


def _voice(first: Finding, diagnosis: Diagnosis) -> str:
    """A set of causes is given where no prover answers: whatever leads it is likely, not found."""
    return MOST_LIKELY if first.recognised or diagnosis.in_set else FOUND


def tree_rows(diagnosis: Diagnosis) -> list[str]:
    """The questions that were asked first; of a cause that is only likely those that the inputs answer, for it asks its own."""
    if diagnosis.state is not State.SICK or diagnosis.ledger:  # measured, an answer needs no questions
        return []
    first = run_findings(diagnosis)[0]
    if first.last_resort:  # the program ended: what separates slow runs is no question
        return []
    proved = _voice(first, diagnosis) == FOUND
    return [row for row in diagnosis.tree if proved or OPEN not in row]


def basis_text(first: Finding, diagnosis: Diagnosis) -> str:
    """The cause, what the answer rests on, and how sure it is."""
    found = _voice(first, diagnosis) == FOUND
    return f"{first.cause} · {BASES[first.basis] if found else 'recognised'}, {first.confidence:.0%} sure"


BASES = {"measured": "measured", "stated": "from your numbers", "event": "from a message"}


def _leading(diagnosis: Diagnosis) -> Proof:
    """The proof that an all-clear rests on."""
    return max((p for p in diagnosis.proofs if not p.lacks), key=lambda p: (p.whole, p.confidence))


def _is_headline(proof: Proof, diagnosis: Diagnosis) -> bool:
    return diagnosis.why_unclear.startswith(proof.says) or (diagnosis.healthy and proof is _leading(diagnosis))


def _healthy(diagnosis: Diagnosis) -> Verdict:
    proof = _leading(diagnosis)
    why = f"What binds: {diagnosis.limit.text}." if diagnosis.limit else ""
    sure = next((h.probability for h in diagnosis.hypotheses if h.cause == "none"), proof.confidence)
    if not proof.whole:
        why = f"This speaks for the {proof.of} only, not for the job. {why}".strip()
    sources = _places(r for p in diagnosis.proofs if p.whole for r in p.because)
    return Verdict(f"{proof.says}.", why, "", "good", f"{sure:.0%} sure, by proof", IN_LINE, sources=sources)


def _unclear(diagnosis: Diagnosis) -> Verdict:
    ask = diagnosis.next[0].capture if diagnosis.next else None
    do = f"Capture next: {ask.artifact}: {ask.command}" if ask else ""
    run = run_findings(diagnosis)
    sources = _places(run[0].because) if run else ()
    if (end := next((p for p in diagnosis.proofs if p.of == PROGRAM_END), None)) is not None:
        why = end.lacks[:1].upper() + end.lacks[1:]
        return Verdict(end.says, why, do, "unclear", voice=ENDED, sources=_places(end.because), do_depth=Depth.PAGE)
    leading = leading_hypothesis(diagnosis)
    if leading is not None and _chance(diagnosis, leading) >= NAMED:
        chance = _chance(diagnosis, leading)
        what = f"nearest is {leading.cause} ({chance:.0%}): {leading.headline.removeprefix(PERHAPS)}"
        why = diagnosis.why_unclear
        return Verdict(
            what, why[:1].upper() + why[1:], do, "unclear", voice=CANNOT_TELL, sources=sources, do_depth=Depth.PAGE
        )
    return Verdict(diagnosis.why_unclear, "", do, "unclear", voice=CANNOT_TELL, sources=sources, do_depth=Depth.PAGE)


def leading_hypothesis(diagnosis: Diagnosis) -> Finding | None:
    """The likeliest of the causes that are only likely, in an unclear answer; words alone lead where they mean one thing.

    What a run may gain beside its trouble leads where the table holds it likelier than every trouble: then it is the answer.
    """
    if diagnosis.state is not State.UNCLEAR:
        return None
    words = {h.cause for h in diagnosis.hypotheses if h.by_words_alone and h.probability < WORDS_LEAD}
    found = [f for f in run_findings(diagnosis) if f.cause not in words]
    table = {h.cause for h in diagnosis.hypotheses}
    leading = [f for f in found if not f.optional or f.cause in table]
    return max(leading, key=lambda f: _chance(diagnosis, f), default=None)


WORDS_LEAD = 0.3  # below it a guess by words is one of many


def _chance(diagnosis: Diagnosis, finding: Finding) -> float:
    """As the table has it: one answer shows one number."""
    return next((h.probability for h in diagnosis.hypotheses if h.cause == finding.cause), finding.confidence)


def could_be(diagnosis: Diagnosis, most: int) -> list[Hypothesis]:
    """The first rows of the table, and always the last: what is left for causes that are not in it."""
    named = [h for h in diagnosis.hypotheses if h.cause != SOMETHING_ELSE]
    return [*named[: most - 1], *(h for h in diagnosis.hypotheses if h.cause == SOMETHING_ELSE)]


def how_they_add_up(diagnosis: Diagnosis) -> str:
    """What the probabilities of the table are parts of."""
    if any(h.found for h in diagnosis.hypotheses):
        return (
            "Causes that were found have each their own probability: a run may have several. The others share the rest."
        )
    return "One of them, or something else: the probabilities share one whole."


def question_rows(question: Question) -> list[str]:
    """The question, then its choices by number."""
    return [question.text, *(f"[{n}] {c.text}" for n, c in enumerate(question.choices, 1))]


def not_understood_rows(diagnosis: Diagnosis) -> list[str]:
    """What the inputs hold and nobody made sense of, a line each."""
    unread = diagnosis.not_understood
    rows = [f"{place(Source(name))}: not one fact" for name in unread.files[:MOST_NAMED]]
    if len(unread.files) > MOST_NAMED:
        rows.append(f"and {len(unread.files) - MOST_NAMED} more files without a fact")
    rows += [f"{r.text} ({places(r.sources)})" for r in unread.lines[:MOST_NAMED]]
    if unread.line_count > len(unread.lines[:MOST_NAMED]):
        rows.append(f"{unread.line_count} error or warning lines without a meaning in all")
    if unread.numbers_named_share is not None and unread.numbers_named_share < 1.0:
        rows.append(f"{1 - unread.numbers_named_share:.0%} of the numbers in texts have no name here")
    return rows + [f"{show(u.seconds, Unit.SECOND)} ({u.share:.0%}) in {u.what}" for u in unread.time]


def unexplained_rows(diagnosis: Diagnosis) -> list[str]:
    """Accounts that no finding explains."""
    return [f"{u.what}: {show(u.seconds, Unit.SECOND)}, {u.share:.0%} of the time" for u in diagnosis.unexplained]


def proof_rows(diagnosis: Diagnosis) -> list[str]:
    """What was shown to be well, wholly or in part; of a proof of its own subject also its parts, one by one.

    Beside a finding only what the files account for: nothing is well then. A ledger of steps accounts for the time better.
    """
    rows = []
    stepped = diagnosis.ledger is not None and diagnosis.ledger.unit == "step"
    for p in diagnosis.proofs:
        if diagnosis.state is State.SICK and (not p.describes or stepped):
            continue
        if not _is_headline(p, diagnosis):
            rows.append(
                f"{p.of}: {p.says}"
                + (
                    f" ({p.lacks.rstrip('.')})"
                    if p.lacks and not p.describes and p.lacks != diagnosis.why_unclear
                    else ""
                )
            )
        parts = [] if p.covers_run else [r for r in p.because if r.text not in p.says]
        rows += [f"{r.text}  {places(r.sources)}".rstrip() for r in parts[:MOST_PARTS]]
    return rows


def in_a_word(diagnosis: Diagnosis) -> str:
    """The answer where only a few letters fit: the cause and its odds, "healthy", or "cannot tell"."""
    if diagnosis.state is State.SICK:
        first = run_findings(diagnosis)[0]
        return f"{first.cause} {first.confidence:.0%}"
    if diagnosis.healthy:
        return "healthy"
    leading = leading_hypothesis(diagnosis)
    return f"cannot tell (perhaps {leading.cause} {leading.confidence:.0%})" if leading else "cannot tell"
