"""torch.compile at work again and again, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import COMPILE_LOG
from stallwise.evidence.catalog import change, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue, above, says_one_of
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.SLOW_STEP: "at times",
    Symptom.SUDDEN_SLOWDOWN: "seldom",
    Symptom.PERIODIC_STALL: "at times",
    Symptom.GRADUAL_SLOWDOWN: "at times",
    Symptom.SLOW_START: "at times",
}
MANY_BREAKS = 10  # breaks cut the model into pieces that each recompile: then the breaks are the cause


def _pieces(evidence: Evidence) -> bool | None:
    return evidence.value(run.GRAPH_BREAKS, 0.0) >= MANY_BREAKS


CLUES = (
    above(run.RECOMPILE_LIMIT_HIT, 0, "decisive", "a function hit the recompile limit and runs eagerly since", "no function hit the limit"),
    above(run.RECOMPILES, 3, "strong", "functions are recompiled inside the loop", "hardly anything is recompiled"),
    Clue((run.GRAPH_BREAKS,), _pieces, "against", "graph breaks cut the model into pieces first", "few breaks"),
    says_one_of(stated.CHANGED, ("torch.compile", "compile", "dynamic shape", "variable length"), "strong when seen", "compilation or shapes changed", "neither compilation nor shapes changed"),
    above(change.FIRST_STEPS_RATIO, 3.0, "against", "only the first steps are slow"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Say which guard failed and how to stop it."""
    hit, count, reason = (evidence.get(q) for q in (run.RECOMPILE_LIMIT_HIT, run.RECOMPILES, run.RECOMPILE_REASON))
    eager, compiled = evidence.get(run.EAGER_TIME), evidence.get(run.COMPILED_TIME)
    because = [Reason.of(f"{count} recompilations logged", count)] if count else []
    if hit:
        because.append(Reason.of(f"{hit} times the limit was hit: the function falls back to eager for good", hit))
    if reason:
        because.append(Reason.of(f"the guard that fails: {reason}", reason))
    sizes = reason is not None and "size" in str(reason.value)
    speed = f"{compiled} -> under the eager {eager}" if eager and compiled else "the compiled speed instead of eager"
    return Finding(
        headline="torch.compile keeps recompiling" + (" and then gives up." if hit else "."),
        confidence=0.0,
        because=tuple(because),
        fixes=(
            Fix("Mark the varying dimension dynamic (mark_dynamic, dynamic=True)" if sizes else "Remove what the guard checks from the compiled region", worth=speed,
                cost="one line", risk="dynamic kernels are a little slower"),
            Fix("Bucket or pad inputs to a few sizes", worth="one compilation a bucket", cost="some padding", risk="wasted work on padding"),
            Fix("Raise torch._dynamo.config.recompile_limit when the number of variants is bounded", worth="no fallback to eager", cost="compile time a variant",
                risk="hides an unbounded variety"),
        ),
        avoid="Turning compile off for good: the model compiles; one guard fails.",
        next=(COMPILE_LOG,),
    )  # fmt: skip
