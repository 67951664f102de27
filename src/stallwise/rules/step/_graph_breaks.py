"""A model cut into many graphs, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import COMPILE_LOG
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import above, over
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.SLOW_STEP: "at times",
    Symptom.SLOW_START: "seldom",
    Symptom.CUSTOM_KERNEL_SLOWER: "at times",
}
CLUES = (
    above(run.GRAPH_BREAKS, 4, "decisive, needed", "the graph breaks many times", "hardly any break"),
    over(run.COMPILED_TIME, run.EAGER_TIME, 1.0, "fair", "compiled is slower than eager", "compiled is faster than eager"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Name the break and remove it."""
    breaks, graphs, reason = (evidence.get(q) for q in (run.GRAPH_BREAKS, run.GRAPHS, run.GRAPH_BREAK_REASON))
    eager, compiled = evidence.get(run.EAGER_TIME), evidence.get(run.COMPILED_TIME)
    because = [Reason.of(f"{breaks} breaks cut the model into {graphs or 'many'} graphs", breaks)] if breaks else []
    if reason:
        because.append(Reason.of(f"mostly: {reason}", reason))
    if eager and compiled:
        because.append(Reason.of(f"{compiled} compiled, {eager} eager", compiled, eager))
    return Finding(
        headline="Graph breaks make torch.compile a loss: too little is compiled in one piece.",
        confidence=0.0,
        because=tuple(because),
        fixes=(
            Fix("Remove the commonest break" + (f" ({reason})" if reason else ""), worth=f"{compiled} -> under {eager}" if eager and compiled else "one graph in place of many",
                cost="a code change in the named frame", risk="none"),
            Fix("Compile around it: the blocks on both sides, not the whole model", worth="most of the gain without touching the library", cost="a few lines", risk="some fusion lost at the border"),
            Fix("fullgraph=True in tests, so that a new break fails loudly", worth="it stays fixed", cost="none", risk="none"),
        ),
        avoid="Raising the recompile limit: each piece recompiles because the graph is in pieces.",
        next=(COMPILE_LOG,),
    )  # fmt: skip
