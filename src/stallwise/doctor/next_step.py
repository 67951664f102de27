"""Which artifact to ask for next: the one expected to tell the most about which hypothesis is right."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from stallwise.doctor.findings.clue import WHEN_SEEN
from stallwise.doctor.findings.diagnosis import Hypothesis, NextStep
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Symptom
from stallwise.doctor.recognise.model import model
from stallwise.evidence.capture import (
    CLEAN_STEP,
    COMPILE_LOG,
    DATA_PROBE,
    DMESG,
    LOSS_LOG,
    NCCL_TESTS,
    OOM_MESSAGE,
    RANK_TRACES,
    SERVE_BENCH,
    SERVE_LOG,
    SERVE_METRICS,
    TOPOLOGY,
    TORCH_TRACE,
    TRAIN_LOG,
    Capture,
)  # fmt: skip
from stallwise.evidence.catalog import run, serving
from stallwise.evidence.evidence import Evidence

RULE_SEES = 0.85  # how often a rule fires when its cause is there and it has all it needs
RULE_ERRS = 0.05  # and how often it fires when the cause is not there
LEAST_BITS = 0.005
WORTH_A_LOOK = 0.1  # of probability: many unlikely causes together must not choose what a likely one needs
MOST = 4
LOOKING_MIN = 10.0  # to read any artifact and send it on, however quickly it was captured


def next_steps(hypotheses: Iterable[Hypothesis], rules: Iterable[Rule], evidence: Evidence) -> tuple[NextStep, ...]:
    """Captures by expected information a minute of the user's time, best first."""
    probability = {h.cause: h.probability for h in hypotheses}
    likely = {cause: p for cause, p in probability.items() if p >= WORTH_A_LOOK}
    bits: dict[Capture, float] = defaultdict(float)
    separates: dict[Capture, list[tuple[float, str]]] = defaultdict(list)
    for rule in rules:
        p = (likely or probability).get(rule.cause, 0.0)
        if not p:
            continue
        best: dict[Capture, float] = {}
        for capture, seen, erred in _questions(rule, evidence):
            best[capture] = max(best.get(capture, 0.0), information(p, seen, erred))
        for capture, gain in best.items():
            bits[capture] += gain
            separates[capture].append((gain, rule.cause))
    limit = entropy(probability.values())
    steps = [
        NextStep(c, tuple(cause for _, cause in sorted(separates[c], reverse=True)[:4]), round(min(b, limit), 3))
        for c, b in bits.items()
        if min(b, limit) >= LEAST_BITS
    ]
    return tuple(sorted(steps, key=lambda s: -s.information_bits / (LOOKING_MIN + s.capture.minutes))[:MOST])


def _questions(rule: Rule, evidence: Evidence) -> Iterable[tuple[Capture, float, float]]:
    """What is still unknown about a cause: the capture that answers, P(yes | cause), P(yes | another)."""
    for clue in rule.clues:
        if clue.outcome(evidence) is None:
            missing = [q for q in clue.reads if not evidence.all(q) and not evidence.series(q)]
            under, other = model().answers[clue.strength]
            for quantity in missing:
                if quantity.from_ is not None and not clue.strength.endswith(WHEN_SEEN):
                    yield quantity.from_, under, other
    for quantity in rule.needs:
        if quantity.from_ is not None and not evidence.all(quantity):
            yield quantity.from_, RULE_SEES, RULE_ERRS


def information(p: float, under: float, other: float) -> float:
    """Mutual information, in bits, between "this cause or not" and the answer."""
    yes = p * under + (1.0 - p) * other
    return max(0.0, entropy((yes, 1.0 - yes)) - p * entropy((under, 1 - under)) - (1 - p) * entropy((other, 1 - other)))


def entropy(probabilities: Iterable[float]) -> float:
    """In bits."""
    return -sum(p * math.log2(p) for p in probabilities if p > 0.0)


# A job that stands still writes no step times, and nobody asks how fast its fabric is; one that runs out of memory writes none that
# tell why. Whoever asked last when
# memory had run full is not what filled it. A service has no steps, and a trace of them says which kernel is slow, not why: its
# own counters do.
_STEPS = (TRAIN_LOG, TORCH_TRACE)
IRRELEVANT_TO = {
    Symptom.HANG: (*_STEPS, NCCL_TESTS),
    Symptom.OUT_OF_MEMORY: (TRAIN_LOG,),
    Symptom.MEMORY_GROWTH: (OOM_MESSAGE,),
    Symptom.SLOW_KERNEL: _STEPS,
    Symptom.SERVING_SLOW: _STEPS,
    Symptom.SERVING_COLLAPSE: _STEPS,
    Symptom.HIGH_TTFT: _STEPS,
}


def relevant_first(asks: tuple[NextStep, ...], symptoms: Iterable[Symptom]) -> tuple[NextStep, ...]:
    """What can tell nothing of the complaint goes last."""
    mute = {capture for symptom in symptoms for capture in IRRELEVANT_TO.get(symptom, ())}
    return tuple(sorted(asks, key=lambda step: step.capture in mute))


RECORDING = (
    "stallwise record",
    "stallwise run",
)  # what the user has just done where our own record is among the inputs
OURS = ("stallwise record", "stallwise bundle")  # formats that only our recorder writes


BROUGHT = {"kernel log": (DMESG,), "nvidia-smi topo -m": (TOPOLOGY,)}  # what a format answers whole


OF_TRAINING = (TRAIN_LOG, OOM_MESSAGE, LOSS_LOG, TORCH_TRACE, RANK_TRACES, CLEAN_STEP, COMPILE_LOG, DATA_PROBE)
OF_SERVING = (SERVE_LOG, SERVE_METRICS, SERVE_BENCH)


def of_its_kind(asks: tuple[NextStep, ...], evidence: Evidence) -> tuple[NextStep, ...]:
    """A service has no training steps to log, and a training run no requests: each is asked for what it can give."""
    learns = any(evidence.series(q) or evidence.all(q) for q in (run.LOSS, run.REWARD, run.GRAD_NORM))
    serves = any(evidence.all(q) for q in (serving.ENGINE, serving.SAMPLES, serving.START_PHASE, serving.REQUESTS_DONE))
    if learns == serves:  # neither is known, or both run together
        return asks
    other = OF_SERVING if learns else OF_TRAINING
    engine = evidence.text(serving.ENGINE)
    kept = tuple(step for step in asks if step.capture not in other)
    return tuple(replace(s, capture=_by_engine(s.capture, engine)) for s in kept) if engine in LAUNCHES else kept


LAUNCHES = {
    "sglang": ("python -m sglang.launch_server --model-path MODEL", "python -m sglang.bench_serving --request-rate 8"),
    "tgi": ("text-generation-launcher --model-id MODEL", "text-generation-benchmark --tokenizer-name MODEL"),
    "trtllm": (
        "trtllm-serve MODEL",
        "python -m tensorrt_llm.serve.scripts.benchmark_serving --model MODEL --request-rate 8",
    ),
    "llama.cpp": ("llama-server -m MODEL", "llama-batched-bench -m MODEL -npp 512 -ntg 128 -npl 1,4,16"),
}  # how each is started and put under load


def _by_engine(capture: Capture, engine: str) -> Capture:
    start, load = LAUNCHES[engine]
    if capture == SERVE_LOG:
        return replace(capture, command=f"{start} 2>&1 | tee engine.log")
    return replace(capture, command=load) if capture == SERVE_BENCH else capture


def not_just_done(asks: tuple[NextStep, ...], evidence: Evidence) -> tuple[NextStep, ...]:
    """Never the advice to do what was just done: a recording that lacks something will lack it again."""
    brought = {capture for name in evidence.formats for capture in BROUGHT.get(name, ())}
    asks = tuple(step for step in asks if step.capture not in brought)
    if not any(f in OURS for f in evidence.formats):
        return asks
    return tuple(step for step in asks if not any(word in step.capture.command for word in RECORDING))
