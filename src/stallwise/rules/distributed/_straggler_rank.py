"""One slow rank or node, while only suspected: the boring answer to "it fell and nothing changed"."""

from __future__ import annotations

from stallwise.evidence.capture import DMESG, NCCL_TESTS, NVIDIA_SMI, RANK_TRACES
from stallwise.evidence.catalog import expected, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import UNCHANGED, Clue, above, unchanged, yes
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.SUDDEN_SLOWDOWN: "mostly",
    Symptom.SLOW_COLLECTIVE: "often",
    Symptom.SLOW_SCALING: "often",
    Symptom.PIPELINE_IDLE: "at times",
    Symptom.SLOW_STEP: "at times",
    Symptom.HANG: "at times",
}


def _many(evidence: Evidence) -> bool | None:
    return evidence.value(stated.GPUS, 1.0) > 8


ALIKE = "all ranks are slow alike"  # whoever says so: it would change the answer once, not three times

NOISE = 1.03  # of the others' step: ranks of one job differ by one to three percent when all are well
CLUES = (
    above(stated.SLOW_RANK_RATIO, NOISE, "required",
          "per-rank timing shows one rank slower than its peers", ALIKE),
    Clue((stated.SLOW_NODE,), lambda e: True, "fair when seen", "per-rank timing names a node"),
    yes(stated.RANK_LOCAL, "strong, needed", "the slowdown is on few ranks", ALIKE),
    yes(stated.STRAGGLERS, "strong, needed", "some ranks lag", ALIKE),
    yes(stated.THROTTLED, "hint when seen", "a throttled GPU makes a straggler"),
    yes(stated.GPU_BUSY_UNCHANGED, "against", "the GPUs are not busier: time is lost on the host", "GPUs are busy or wait in collectives"),
    Clue((stated.GPUS,), _many, "hint", "many GPUs in lock step: one slow one holds all", "too few GPUs to wait for one"),
    unchanged(),
    yes(run.RECOMPILE_LIMIT_HIT, "against", "compilation explains the change"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Find the slow node by timing, look at its hardware, drain it; code comes last."""
    slowdown, lost, dollars = (evidence.get(q) for q in (expected.SLOWDOWN, expected.LOST_GPUS, expected.LOST_DOLLARS))
    node = evidence.text(stated.SLOW_NODE)
    back = f"back from {_mfu(evidence)}: {slowdown} per step" if slowdown else "the whole of the slowdown"
    price = f"; {lost} GPUs' worth of work lost" if lost else ""
    price += f", about {dollars} at list price" if dollars else ""
    because = [Reason(f"steps take {slowdown} as long{price}")] if slowdown else []
    if slowdown:
        because.append(Reason(f"in lock step one node at 1/{slowdown.number:.2f} of its speed is enough to cause it"))
    return Finding(
        headline=f"One degraded node holds the whole job{f': {node}' if node else ''}.",
        confidence=0.0,
        because=tuple(because),
        summary=f"A sudden drop that stays{_unchanged(evidence)} is a machine until proven otherwise.",
        fixes=(
            Fix("Compare per-rank compute and arrival times over the same steps; name the rank that all wait for",
                worth="finds the node in minutes", cost="one short traced window", risk="clock offsets look like lateness"),
            Fix(f"Check {node or 'that node'}: throttle reasons, power, ECC and remapped rows, PCIe generation, Xid in dmesg",
                worth=back, cost="free while running", risk="none"),
            Fix("Drain it, restart from the last checkpoint on a spare", worth=back, cost="minutes of restart and lost steps",
                risk="the spare may be worse: run a burn-in first"),
            Fix("Watch it from now on: per-rank histograms and an alarm at 5% over the median",
                worth="the next one costs minutes, not hours", cost="a counter a rank", risk="none"),
        ),
        avoid="Changing sharding, recompute or other code first: a restart hides the evidence.",
        next=(RANK_TRACES, NVIDIA_SMI, DMESG, NCCL_TESTS),
    )  # fmt: skip


def _unchanged(evidence: Evidence) -> str:
    """Only what somebody said: that the code is the same."""
    changed = evidence.text(stated.CHANGED).lower()
    return ", with no change of code," if any(word in changed for word in UNCHANGED) else ""


def _mfu(evidence: Evidence) -> str:
    now = next((f for f in evidence.all(run.MFU) if f.scope.run is None), None)
    then = evidence.get(run.MFU, run="before")
    return f"{now} to {then} MFU" if now and then else "the drop"
