"""The verdict: sick, healthy by proof, or unclear. Ignorance is never health.

Sick is a cause that a prover saw at even odds or better, or one that is recognised at 70%. Healthy needs a proof that speaks for
the run, and nothing that stands against it: no complaint, no time that nobody explains, no error that nobody understood,
nothing that cannot be true. The rest is unclear, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stallwise.causes.health import all_proofs
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.proof import PROGRAM_END, Limit, NotUnderstood, Proof, Unexplained
from stallwise.doctor.gather import NO_READER
from stallwise.doctor.rank import SURE_ENOUGH
from stallwise.doctor.stating import INPUT
from stallwise.evidence.catalog import roofline, step
from stallwise.evidence.error_boundary import failure_of
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.unread import not_understood as left_over

UNEXPLAINED_SHARE = 0.10  # of the whole: an account this large that no finding explains forbids an all-clear
LOUD = ("error", "fatal", "critical")  # levels that forbid an all-clear where nobody knows the message
MOST_LINES = 8  # quoted; the rest is counted
LONGEST_NAME = 70  # letters of a kernel's name that a person reads
ROUND_TRIP_S = 1e-3  # between a client and its server, with what either does around it: less is nobody's complaint
# Time in these accounts is work; whether it is fast is for the proofs to show.
WORK = (Category.COMPUTE, Category.PREFILL, Category.FIRST_TOKEN, Category.DECODE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A state with what it rests on."""

    state: State
    proofs: tuple[Proof, ...]
    limit: Limit | None
    unexplained: tuple[Unexplained, ...]
    not_understood: NotUnderstood
    why_unclear: str = ""

    @property
    def confidence(self) -> float:
        """How sure an all-clear is: as sure as its best proof."""
        return max((p.confidence for p in self.proofs if not p.lacks), default=0.0)


def judge(
    evidence: Evidence,
    findings: Sequence[Finding],
    ledger: Ledger | None,
    *,
    complained: bool,
    contradictions: Sequence[Reason] = (),
    seen: str = "",
) -> Judgement:
    """The state of this evidence; `seen`: what a prover holds for likely, whatever the counts make of it."""
    proofs = tuple(sorted(_proved(evidence), key=_weight))
    unexplained = _unexplained(ledger, findings)
    unread = not_understood(evidence)
    limit = next((p.limit for p in proofs if p.limit is not None), None)
    if any(f.is_verdict for f in findings):
        return Judgement(State.SICK, proofs, limit, unexplained, unread)
    anything_read = (
        any(not (f.stated and isinstance(f.value, str)) for facts in evidence.facts.values() for f in facts)
        or evidence.all_series
    )
    why = _why_not(
        proofs, unexplained, unread, complained, contradictions, nothing_read=not anything_read,
        lost=next((f"{n.source.place}: {n.text}".removeprefix(": ") for n in evidence.notes if n.lost), ""),
        in_line=not {*unread.files} - evidence.remarks and not seen and _in_line(evidence, proofs), seen=seen,
    )  # fmt: skip
    state = State.UNCLEAR if why else State.HEALTHY
    return Judgement(state, proofs, limit, unexplained, unread, why)


def _proved(evidence: Evidence) -> Iterator[Proof]:
    """Every proof that holds; one that fails is a note, which forbids an all-clear like any other loss."""
    for prove in all_proofs():
        try:
            if (proof := prove(evidence)) is not None:
                yield proof
        except Exception as error:
            what = failure_of(f"the proof {prove.__name__.replace('_', ' ')}", error).problem
            evidence.notes.append(Note(what, Source(""), lost=True))


def _weight(proof: Proof) -> tuple[bool, float]:
    """What can carry an all-clear first, the surest of those before the others."""
    return (not proof.whole, -proof.confidence)


def _why_not(
    proofs: Sequence[Proof],
    unexplained: Sequence[Unexplained],
    unread: NotUnderstood,
    complained: bool,
    contradictions: Sequence[Reason],
    *,
    nothing_read: bool,
    lost: str,
    in_line: bool,
    seen: str,
) -> str:
    """What stands against an all-clear, the weightiest first; empty when nothing does."""
    if (end := next((p for p in proofs if p.of == PROGRAM_END), None)) is not None:
        return f"{end.says}: {end.lacks}"
    if complained:
        return "something is complained of, and nothing here decides between the causes."
    if contradictions:
        return f"the evidence contradicts itself: {contradictions[0].text}"
    if unexplained:
        worst = unexplained[0]
        return f"{worst.share:.0%} of the time ({worst.what}) is explained by nothing found here."
    if unread.line_count:
        return f"{_count(unread.line_count, 'error or warning')} in the logs mean nothing to stallwise."
    if lost:
        return f"part of it could not be read or judged ({lost})."
    covered = {name for p in proofs if p.whole for name in p.covers}
    lacking = [p for p in proofs if p.objects or (p.lacks and p.covers_run and p.of not in covered)]
    if lacking:
        return max(lacking, key=lambda p: p.objects).lacks
    if any(p.whole for p in proofs) or in_line:
        return ""
    if seen:
        return f"one rule sees this, and counts do not bear it out: {seen[0].lower()}{seen[1:]}".rstrip(".") + "."
    if proofs:
        return proofs[0].lacks or f"{proofs[0].says}; that tells nothing about the run itself."
    if nothing_read:
        return "not one fact about a run was understood in it."
    return "nothing here proves that the run is well."


def _in_line(evidence: Evidence, proofs: Sequence[Proof]) -> bool:
    """Whether every file shows its own subject to be in line, by what was recorded and not by what somebody says of it."""
    shown = {
        s.file
        for p in proofs
        if not p.lacks
        for reason in p.because
        for s in reason.sources
        if not s.stated or s.file in evidence.records
    }
    return bool(shown) and all(
        name in evidence.remarks or (name in shown and name not in evidence.composed) for name in evidence.inputs
    )


def _count(number: int, what: str) -> str:
    return f"one {what}" if number == 1 else f"{number:,} {what}s"


def _unexplained(ledger: Ledger | None, findings: Sequence[Finding]) -> tuple[Unexplained, ...]:
    """Accounts of lost time above a tenth of the whole that no likely finding claims."""
    if ledger is None or not ledger.whole_s:
        return ()
    sure = [f for f in findings if f.confidence >= SURE_ENOUGH]
    if any(f.category is None and f.gain is not None and f.gain.replayed for f in sure):
        return ()  # replayed over all workers: waiting for them shows in every account
    claimed = {f.category for f in sure if f.category is not None}
    rows = [
        Unexplained(category.value, seconds, seconds / ledger.whole_s)
        for category, seconds in ledger.seconds.items()
        if category not in WORK
        and category not in claimed
        and seconds > max(UNEXPLAINED_SHARE * ledger.whole_s, ROUND_TRIP_S if category is Category.NETWORK else 0.0)
    ]
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def not_understood(evidence: Evidence) -> NotUnderstood:
    """Files without a fact, error lines without a meaning, numbers without a name, kernels without a purpose."""
    read_files = {f.source.file for facts in evidence.facts.values() for f in facts} | {
        e.source.file for e in evidence.events
    }
    read_files |= {s.source.file for s in evidence.all_series} | {t.source.file for t in evidence.tables}
    read_files |= {x.source.file for x in evidence.ledgers} | {t.source.file for t in evidence.timelines}
    silent = [name for name in evidence.inputs if name not in read_files and name != INPUT]
    unread = [n.source.file for n in evidence.notes if n.text == NO_READER and n.source.file]
    rest = left_over(evidence.unread)
    errors = [line for line in rest.error_lines if line.level in LOUD]
    share = rest.named_share
    return NotUnderstood(
        files=tuple(dict.fromkeys((*silent, *unread, *rest.files_without_fact))),
        lines=tuple(Reason(line.text, (line.source,)) for line in errors[:MOST_LINES]),
        line_count=sum(line.times for line in errors),
        numbers_named_share=share if share == share else None,
        time=_unread_time(evidence),
    )


def _unread_time(evidence: Evidence) -> tuple[Unexplained, ...]:
    """Device time in kernels whose purpose nobody knows."""
    share, busy = evidence.value(roofline.UNREAD_SHARE, 0.0), evidence.value(step.BUSY_TIME, 0.0)
    if share < UNEXPLAINED_SHARE:
        return ()
    name = evidence.text(roofline.UNREAD_NAME)
    return (Unexplained(f"kernels whose purpose nobody knows, the longest {name[:LONGEST_NAME]}", share * busy, share),)
