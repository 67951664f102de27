"""What the simulator says of each fix, put into a finding: every number of the answer comes from one run of it."""

from __future__ import annotations

from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.catalog import expected, serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, show

NOTHING = 0.03  # a change of a latency below this is none
IN_FULL = 3  # fixes with their price and risk; the others in one line
SIMULATED = ("chunk", "max_num_seqs", "KV", "FP8", "prefix", "specul", "replica", "GPU", "TP", "Separate", "batched", "Cap ", "8 or 4 bits", "Tensor")  # fmt: skip


def with_story(finding: Finding, evidence: Evidence) -> Finding:
    """The finding with simulated fixes, in their order, and whether the target can be met; unchanged without a story."""
    now = _of(evidence, "now", serving.TRIAL_TTFT), _of(evidence, "now", serving.TRIAL_TPOT)
    if now[0] is None or now[1] is None:
        return finding
    null = {f.scope.layer for f in evidence.all(serving.TRIAL_NULL)}
    trials = [f for f in evidence.all(serving.TRIAL_TTFT) if f.scope.layer not in ("now", "together")]
    helping = [f for f in trials if f.scope.layer not in null]
    simulated = [_fix(evidence, f, now[0].number, now[1].number) for f in helping[:IN_FULL]]
    if rest := helping[IN_FULL:]:
        simulated.append(_together_in_one(evidence, rest))
    kept = tuple(f for f in finding.fixes if not any(word.lower() in f.action.lower() for word in SIMULATED))
    verdict, avoid = _verdict(evidence)
    idle = [_briefly(evidence, f) for f in trials if f.scope.layer in null]
    does_not = "Does not help here: " + "; ".join(idle) + "." if idle else ""
    return replace(
        finding,
        because=(*finding.because, *_sums(evidence), *verdict),
        fixes=(*simulated, *kept),
        avoid=" ".join(x for x in (avoid or finding.avoid, does_not) if x),
    )


def _together_in_one(evidence: Evidence, rest: list[Fact]) -> Fix:
    """The further trials on one line, in their order: what each leaves, what each costs, and what was assumed of it."""
    layers = [f.scope.layer or "" for f in rest]
    costs = [f.note for x in layers if (f := _of(evidence, x, serving.TRIAL_TPOT)) and f.note]
    notes = [(x, _of(evidence, x, serving.TRIAL_RATE)) for x in layers]
    assumed = [
        f"{_words(x)} {note.note.split('; ')[0]}" for x, note in notes if note and note.note.startswith("assumes ")
    ]
    return Fix(
        "Then " + ", ".join(map(_words, layers)), worth="each alone: " + "; ".join(_briefly(evidence, f) for f in rest),
        cost=", ".join(dict.fromkeys(c.split("; ")[0] for c in costs)), risk="; ".join(assumed) or "as each names",
    )  # fmt: skip


def _briefly(evidence: Evidence, ttft: Fact) -> str:
    """A trial in a few words: its name, and both latencies after it."""
    layer = ttft.scope.layer or ""
    tpot = _of(evidence, layer, serving.TRIAL_TPOT)
    return f"{_words(layer)} TTFT {_s(ttft.number)}" + (f", a token {_s(tpot.number)}" if tpot else "")


def _of(evidence: Evidence, layer: str, quantity: Quantity) -> Fact | None:
    return next((f for f in evidence.all(quantity) if f.scope.layer == layer), None)


def _fix(evidence: Evidence, ttft: Fact, ttft_now: float, tpot_now: float) -> Fix:
    layer = ttft.scope.layer or ""
    tpot, rate = _of(evidence, layer, serving.TRIAL_TPOT), _of(evidence, layer, serving.TRIAL_RATE)
    tpot_s = tpot.number if tpot else tpot_now
    worth = f"simulated: TTFT {_s(ttft_now)} -> {_s(ttft.number)}, a token {_s(tpot_now)} -> {_s(tpot_s)}"
    risk = rate.note if rate else ""
    if tpot_s > (1 + NOTHING) * tpot_now:
        risk = "; ".join(x for x in ("tokens come slower", risk) if x)
    return Fix(ttft.note, worth=worth, cost=tpot.note if tpot else "", risk=risk)


def _sums(evidence: Evidence) -> tuple[Reason, ...]:
    """The observed rate as a time, what the KV cache can hold, the times as sums with what is left over, and what was assumed."""
    found = []
    rate = next((f for f in evidence.all(serving.PER_REQUEST_RATE) if f.scope.run is None), None)
    if (
        rate and rate.number > 0 and not evidence.all(serving.TPOT)
    ):  # beside a token's own time it is a second number for it
        found.append(Reason.of(f"{rate} is {1e3 / rate.number:.0f} ms a token", rate))
    budget, tokens, each = (
        evidence.get(q) for q in (expected.KV_BUDGET, expected.KV_BUDGET_TOKENS, expected.KV_BYTES_PER_TOKEN)
    )
    if each and budget:
        found.append(Reason(f"KV: {each} a token, {budget} left beside the weights, {tokens} tokens"))
    for quantity, what in ((serving.STORY_PART, "a token"), (serving.WAIT_PART, "the first token")):
        parts = [f for f in evidence.all(quantity) if abs(f.number) > 0]
        if parts:
            whole = sum(f.number for f in parts)
            text = " + ".join(f"{f.scope.layer} {_s(f.number)}" for f in parts)
            found.append(Reason(f"{what} takes {_s(whole)} = {text}"))
    assumed = [str(f.value) for f in evidence.all(serving.ASSUMED)]
    if assumed:
        found.append(Reason("assumed: " + "; ".join(assumed)))
    return tuple(found)


def _verdict(evidence: Evidence) -> tuple[tuple[Reason, ...], str]:
    now, needed = evidence.get(serving.GPUS_NOW), evidence.get(serving.GPUS_NEEDED)
    ttft, tpot = evidence.get(serving.TARGET_TTFT), evidence.get(serving.TARGET_TPOT)
    if not now or not ttft or not tpot:
        return (), ""
    target = f"TTFT {_s(ttft.number)} and {_s(tpot.number)} a token"
    best = _of(evidence, "together", serving.TRIAL_TTFT)
    settings = f" with {_words(best.note)}" if best else ""
    if needed is None:
        return (
            Reason(f"no number of such replicas holds {target}: one request alone misses it"),
        ), "Adding GPUs of this layout: even an empty one misses the target."
    if needed.number <= now.number:
        return (
            Reason(f"{target} can be met on the {now.number:.0f} GPUs there are{settings}"),
        ), "Adding GPUs first: the changes above hold the target without them."
    return (
        Reason(f"{target} cannot be met on {now.number:.0f} GPUs at this load by any of these settings: {needed.number:.0f} GPUs hold it{settings}"),
    ), f"Adding GPUs before the settings: without them even {needed.number:.0f} GPUs may not do."  # fmt: skip


def _words(names: str) -> str:
    """Names of trials as a person says them."""
    words = {
        "chunking": "chunked prefill", "cap": "the cap by KV budget", "kv8": "FP8 KV", "weights8": "FP8 weights",
        "prefix": "prefix caching", "speculation": "speculative decoding", "pools": "separate pools",
        "heads": "fewer KV heads (grouped- or multi-query attention)", "replicas": "twice the replicas",
    }  # fmt: skip
    return " and ".join(words.get(n, n) for n in names.split(" + "))


def _s(seconds: float) -> str:
    return ("-" if seconds < 0 else "") + show(abs(seconds), Unit.SECOND)
