"""A diagnosis full of markup: every text that can come from an input tries to become code."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis, Hypothesis, NextStep, State
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.proof import Limit, NotUnderstood, Proof, Unexplained
from stallwise.doctor.findings.scene import Scene
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import kernel, serving, step
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table
from stallwise.evidence.ledger import Category, Ledger

MARKUP = "</title></script><img src=x onerror=alert(1)><svg onload=alert(2)>\"'`|${7*7}{{7*7}}]]>&lt;"
FILE = "<img src=x onerror=alert(1)>.json"


def hostile() -> Diagnosis:
    """Markup in file names, kernel names, log lines, hosts, headlines, fixes, notes and commands."""
    source = Source(FILE, f"line 3 {MARKUP}")
    evidence = Evidence(inputs=[FILE], formats=[MARKUP])
    evidence.add(
        [
            Fact(kernel.TIME, 0.001, source, Scope(kernel=MARKUP)),
            Fact(kernel.TOP_PIPE, MARKUP, source, Scope(kernel=MARKUP), note=MARKUP),
            Fact(step.STEP_TIME, 0.1, source, Scope(node=MARKUP, rank=0)),
            Table(
                "memory.peak",
                {
                    "category": np.array([MARKUP], dtype=object),
                    "place": np.array([MARKUP], dtype=object),
                    "size_bytes": np.array([1e9]),
                },
                source,
            ),
            Table(
                serving.ENGINE_SAMPLES,
                {"time_s": np.array([0.0, 1.0]), "running": np.array([1.0, 2.0]), "waiting": np.array([1.0, np.nan])},
                source,
                meta={"engine": MARKUP},
            ),
        ]
    )
    scene = Scene(_timeline(source), {0: (1,)})
    ledger = Ledger({Category.COMPUTE: 0.06, Category.INPUT_WAIT: 0.04}, source, samples=4)
    reason = Reason(MARKUP, (source,))
    gain = Gain(0.01, 0.02, MARKUP)
    finding = Finding(
        headline=MARKUP, confidence=0.9, because=(reason,), cause="input-starved", category=Category.INPUT_WAIT, gain=gain,
        against=(reason,), fixes=(Fix(MARKUP, gain, cost=MARKUP, risk=MARKUP),), not_here=(reason,), avoid=MARKUP,
        summary=MARKUP, scope=Scope(node=MARKUP),
    )  # fmt: skip
    return Diagnosis(
        subject=MARKUP, state=State.SICK, ranked=("input-starved",), findings=(finding,), ledger=ledger, evidence=evidence,
        hypotheses=(Hypothesis("input-starved", 0.9, (reason,), (reason,)),),
        next=(NextStep(Capture(MARKUP, MARKUP, MARKUP), ("input-starved",)),), contradictions=(reason,),
        notes=(Note(MARKUP, source),), tree=(MARKUP,),
        proofs=(Proof(MARKUP, MARKUP, (reason,), 0.5, Limit(MARKUP, 0.5, MARKUP, (Fix(MARKUP),)), MARKUP),),
        unexplained=(Unexplained(MARKUP, 1.0, 0.5),), not_understood=NotUnderstood((MARKUP,), (reason,), 3, 0.5),
        why_unclear=MARKUP, scenes=(scene,),
    )  # fmt: skip


def _timeline(source: Source) -> Table:
    """Two boxes whose every word is markup."""
    whole = ("version", "track", "depth", "name", "operator", "account", "work", "count", "correlation", "facts")
    columns = {key: np.array([0, 0]) for key in whole} | {"track": np.array([0, 1])}
    times = {"start_s": [0.0, 0.05], "end_s": [0.1, 0.1], "busy_s": [0.1, 0.05], "idle_s": [0.0, 0.05]}
    meta = {
        "which": "usual", "step": MARKUP, "unit": "step", "length_s": 0.1, "begin_s": 0.0, "names": [MARKUP],
        "facts": [[f"{MARKUP}: {MARKUP}"]], "accounts": ["compute"], "works": [MARKUP],
        "tracks": [["accounts", MARKUP], ["thread", MARKUP]],
        "versions": [{"word": MARKUP, "meaning": MARKUP, "length_s": 0.1}],
        "path": {"kind": [0], "track": [1], "start_s": [0.0], "end_s": [0.1], "seconds": {MARKUP: 0.1}},
        "events": 2, "alone": 2, "merged": 0, "blocks": 0, "left_out": [MARKUP],
    }  # fmt: skip
    return Table("timeline", columns | {key: np.array(values) for key, values in times.items()}, source, meta=meta)
