"""Graph breaks cut a compiled model into pieces, and compiling becomes a loss.

## What it means
torch.compile meets code it cannot capture (printing, data-dependent branches, unsupported calls) and splits the model
there. Each piece is entered from Python, with its guards checked and its inputs and outputs written to memory.

## Why it costs
Fusion stops at every break, graph capture becomes impossible, and guards cost microseconds per piece. Many small
pieces can be slower than eager.

## What else looks so
Recompilation rebuilds pieces again and again; breaks are made once. A few breaks around a whole layer do no harm.

## Fix
`TORCH_LOGS=graph_breaks` names the line. Move prints, `.item()` and branches on tensors out of the compiled region,
or compile only the layers. `fullgraph=True` finds the rest.

## How the gain is found
Measured eager against compiled time where both are known; else the launching idle time between the pieces.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above, over
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.capture import COMPILE_LOG
from stallwise.evidence.catalog import run
from stallwise.evidence.catalog import run as logged
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

MANY_PIECES = (
    16  # entries a step: a model compiled whole has one forward and one backward, by layer a few dozen are deliberate
)
SOME_BREAKS = 1


@rule()
def graph_breaks(evidence: Evidence) -> Finding | None:
    """Looks for logged breaks, or for many small compiled regions with idle time between them."""
    facts = StepFacts(evidence)
    breaks = facts.number(logged.GRAPH_BREAKS)
    if breaks >= SOME_BREAKS:
        return _in_log(facts, breaks)
    pieces, gap = facts.number(s.COMPILED_REGIONS), facts.seconds(s.LAUNCH_WAIT)
    if pieces < MANY_PIECES or facts.share(gap) < NOTICEABLE or facts.number(s.COMPILED_SHARE) > 0.95:
        return None
    gain = facts.gain(0.3 * gap, gap, "launching idle time between the pieces")
    return Finding(
        headline=f"The compiled model runs in {pieces:.0f} pieces a {facts.unit}; the GPU idles {ms(gap)} between launches.",
        confidence=0.55,
        category=Category.LAUNCH_GAP,
        gain=gain,
        because=(facts.because(f"{pieces:.0f} entries into compiled regions a {facts.unit}", s.COMPILED_REGIONS),),
        fixes=(Fix("find the breaks and move what causes them out of the compiled region", gain),),
        avoid="Do not add compile modes before the model is one graph.",
        next=(COMPILE_LOG,),
    )


def _in_log(facts: StepFacts, breaks: float) -> Finding:
    reason = facts.word(logged.GRAPH_BREAK_REASON)
    compiled, eager = facts.seconds(logged.COMPILED_TIME), facts.seconds(logged.EAGER_TIME)
    loss = compiled and eager and compiled >= eager
    because = [facts.because(f"{breaks:.0f} graph breaks in the log", logged.GRAPH_BREAKS)]
    if reason:
        because.append(facts.because(f"the commonest reason: {reason}", logged.GRAPH_BREAK_REASON))
    if loss:
        because.append(facts.because(f"compiled {ms(compiled)} against eager {ms(eager)}", logged.COMPILED_TIME))
    return Finding(
        headline=f"{breaks:.0f} graph breaks cut the compiled model into pieces"
        + (", slower than eager." if loss else "."),
        confidence=0.9 if loss else 0.75,
        because=tuple(because),
        fixes=(
            Fix(
                "move what breaks the graph out of the compiled region",
                worth=f"at least {ms(compiled - eager)}" if loss else "fusion across the break",
            ),
            Fix("compile only the repeated layers, with fullgraph=True", cost="a line per layer"),
        ),
        avoid="Do not add compile modes before the model is one graph.",
        next=(COMPILE_LOG,),
    )


# A model cut into many graphs, while only suspected.
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
