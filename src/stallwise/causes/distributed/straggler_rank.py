"""One rank (or one node) arrives late at the collectives, and all the others wait for it.

## What it means
On one common clock the same rank comes last again and again. The others stand inside the collective until it is
there, so their traces show long collectives although few bytes move.

## Why it costs
Training in lock step runs at the speed of the slowest rank. Every second it is late is a second of every GPU.

## What else looks so
Clocks of nodes that differ by a constant: the traces then show one rank "late" by the same time everywhere, and it is
not. Long collectives on all ranks at once are the network, not a rank. Lateness that goes round is jitter.

## Fix
Look at what that rank does while the others wait: its own input, its host, its clocks, its share of the work. Move the
job off a machine whose hardware is at fault.

## How the gain is found
The job replayed without that rank's delay: each collective begins when the last of the others has come, and only
waiting that nothing else hid is counted.
"""

from __future__ import annotations

from dataclasses import replace

from stallwise.causes.distributed._late_in_logs import late_in_logs
from stallwise.causes.distributed._replayed_job import of_the_job
from stallwise.doctor.findings.clue import UNCHANGED, Clue, above, unchanged, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import DMESG, NCCL_TESTS, NVIDIA_SMI, PY_SPY, RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import expected, run, stated
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE
from stallwise.evidence.ledger import Category
from stallwise.units import Unit, show

NOTICEABLE = 0.02  # of a step; run-to-run noise of healthy jobs is 1 to 2%
ALWAYS_THEM = 0.5  # of what any equally large set of ranks could save: below this lateness goes round
EXPLAINED = 0.8  # a cause that explains less of the delay is not named
MOSTLY_WAITING = 0.5  # of the exposed communication
OTHERS_LATE = 1.2  # times what the late rank costs: from here the lateness of the others counts too
SUDDEN = 1.3  # times the step before: what clocks, inputs and other tenants vary by themselves is less
ONE_NODE = 8  # GPUs
SUSPECTED = 0.45  # below even odds: no prover saw the rank
REPLAYED = 0.95  # sure, where every operation of every worker is known and the others of its stage are quicker
MEASURED = (
    stated.RANK_LOCAL, stated.STRAGGLERS, stated.GPU_BUSY_UNCHANGED, stated.ALLREDUCE_TIME, run.DATA_TIME, stated.SLOW_RANK_RATIO,
)  # fmt: skip
ONE_STEP_LIMIT = 0.85  # one or two steps show who was late then, not who is late

_FIXES: dict[str, tuple[Fix, ...]] = {
    "input": (
        Fix("Give that rank's loader what the others have: workers, CPU cores, a local copy of its shard", cost="CPU cores"),
        Fix("Look for a hot or cold shard, a slow mount or a noisy neighbour on its node"),
    ),
    "input in turn": (
        Fix("Keep more batches ready on every rank: a slow one then holds up nobody (prefetch_factor, num_workers)", cost="host memory"),
        Fix("Look for slow samples, shards or mounts that every rank meets now and then"),
    ),
    "saving": (Fix("Let all ranks write their own part, or save in the background", cost="host memory"),),
    "gc": (Fix("Switch automatic garbage collection off and collect on all ranks at the same step", risk="memory grows between"),),
    "compiling": (Fix("Warm up all shapes on all ranks before measuring; share the compile cache between nodes"),),
    "copy": (Fix("Check that rank's PCIe link under load and its NUMA binding"), Fix("Pin its host buffers")),
    "host": (
        Fix("Look at what that process does: logging, metrics, evaluation or a busy core on its node"),
        Fix("Bind each rank to its own cores next to its GPU (numactl, taskset)", cost="a launch option"),
    ),
    "clocks": (
        Fix("Read clocks, throttle reasons, power and temperature of that GPU under load", cost="free"),
        Fix("Drain the node and restart from the last checkpoint", cost="minutes", risk="the spare may be no better"),
    ),
    "work": (Fix("Balance the work: tokens per rank, sequence packing, experts or layers by measured time"),),
}  # fmt: skip
_CAPTURES = {"clocks": (NVIDIA_SMI, DMESG), "host": (PY_SPY,), "input": (PY_SPY,), "gc": (PY_SPY,)}


@rule()
def straggler_rank(evidence: Evidence) -> Finding | None:
    """From traces, else from who waits least, else from what the logs of a hang say, else from what somebody states."""
    return _in_traces(evidence) or _waits_least(evidence) or late_in_logs(evidence) or _in_statement(evidence)


def _in_statement(evidence: Evidence) -> Finding | None:
    """A run of many GPUs became slower at one moment and stayed so, and nobody changed it: a suspicion, not a proof.

    What was measured of the steps themselves (an exchange, a loader, ranks alike) speaks for itself and is left to its prover.
    """
    slower, gpus = evidence.get(expected.SLOWDOWN), evidence.value(stated.GPUS, 1.0)
    if slower is None or slower.number < SUDDEN or gpus <= ONE_NODE or any(map(evidence.get, MEASURED)):
        return None
    changed = evidence.text(stated.CHANGED).lower()
    if changed and not any(word in changed for word in UNCHANGED):
        return None
    return replace(advise(evidence), confidence=SUSPECTED)


def _waits_least(evidence: Evidence) -> Finding | None:
    """All wait in the same collective, and one of them hardly."""
    own, others = evidence.get(w.LEAST_WAIT), evidence.get(w.OTHERS_WAIT)
    if not (own and others):
        return None
    name = f"rank {own.scope.rank}"
    gain = Gain(
        max((others.low or 0.0) - own.number, 0.0), others.number - own.number, "what the others wait beyond it"
    )
    return Finding(
        headline=f"All ranks wait for {name}: it waits {own} in the collective, the others {others}.",
        confidence=0.9,
        because=(Reason.of(f"who comes last waits least: {name} {own}, the others {others}", own, others),),
        scope=own.scope,
        gain=gain,
        fixes=(
            Fix(f"Look at what {name} does while the others wait: its input, its host, its clocks", cost="free"),
            Fix(f"Run without {name} (spare node) and compare", gain, cost="a restart"),
        ),
        not_here=(Reason("long collectives on the other ranks: they wait, the network does not"),),
        avoid="Tuning NCCL or the network first: the collectives are long because they wait.",
        next=(PY_SPY, NVIDIA_SMI),
        summary="The rank that all others wait for has nobody to wait for.",
    )


def _in_traces(evidence: Evidence) -> Finding | None:
    """The same ranks come last, and the waiting for them is a noticeable part of the step."""
    cost, step = evidence.get(q.STRAGGLER_COST), evidence.get(q.JOB_STEP)
    who, explains = evidence.get(q.STRAGGLER), evidence.get(q.STRAGGLER_EXPLAINS)
    if not (cost and step and who and explains) or step.number <= 0:
        return None
    low = cost.low if cost.low is not None else cost.number
    replayed = evidence.get(w.WORKERS) is not None  # all operations of all workers: waiting shows in every account
    if cost.number < NOTICEABLE * step.number or low <= 0 or (explains.number < ALWAYS_THEM and not replayed):
        return None
    cause, share = evidence.text(q.STRAGGLER_CAUSE), evidence.value(q.STRAGGLER_CAUSE_SHARE, 0.0)
    known = bool(cause) and share >= EXPLAINED
    name, alone = str(who.value), who.scope != WHOLE or not replayed
    detail = evidence.text(q.STRAGGLER_DETAIL)
    headline = f"All ranks wait for {name}: {cost} of every {step}."
    fixes = tuple(_FIXES.get(cause if alone else f"{cause} in turn", ()) if known else ())
    unknown = "" if known else " What holds it up is not proven: no single kind of work explains 80% of the delay."
    basis, top = "the job replayed without this delay", max(cost.high or 0.0, cost.number)
    even = evidence.get(q.EVEN_GAIN)
    if even is not None and even.number > OTHERS_LATE * top:
        headline = f"Ranks wait for each other {even} of every {step}; {name} alone costs {cost} of it."
        basis, top = f"{basis}; at most: all ranks come with the middle one", even.number
    gain = Gain(low, top, "replayed with this worker like its peers" if replayed else basis)
    return Finding(
        headline=headline,
        confidence=REPLAYED if replayed else _confidence(evidence, cost.number / step.number),
        because=(*_because(evidence, name, known), *of_the_job(evidence)),
        scope=who.scope,
        category=None if replayed else Category.COMMUNICATION,
        gain=gain,
        against=_against(evidence),
        fixes=(*fixes, Fix(f"Run without {name} (spare node) and compare", gain, cost="a restart")) if alone else fixes,
        not_here=(Reason("long collectives on the other ranks: they wait, the network does not"),),
        avoid="Tuning NCCL or the network first: the collectives are long because they wait.",
        next=_CAPTURES.get(cause, (RANK_TRACES,)) if known else (PY_SPY, NVIDIA_SMI),
        explains=("exposed-communication", "pipeline-bubble")
        if replayed
        else ("exposed-communication", "network-congestion", "bucket-too-small")
        if _waits_most(evidence)
        else (),
        summary=(f"It is held up by {detail}." if known else unknown.strip()),
    )


def _waits_most(evidence: Evidence) -> bool:
    waiting, moving = evidence.value(q.WAIT_FOR_PEERS, 0.0), evidence.value(q.MOVING_BYTES, 0.0)
    return waiting > MOSTLY_WAITING * (waiting + moving)


def _confidence(evidence: Evidence, share: float) -> float:
    """Sure when it is nearly always these ranks, in most steps, by much more than the clocks' error."""
    explains, often = evidence.value(q.STRAGGLER_EXPLAINS, 0.0), evidence.value(q.STRAGGLER_OFTEN, 0.0)
    error, cost = evidence.value(q.CLOCK_ERROR, 0.0), evidence.value(q.STRAGGLER_COST, 0.0)
    sure = 0.55 + 0.25 * min((explains - ALWAYS_THEM) / 0.4, 1.0) + 0.12 * min(often / 0.6, 1.0)
    sure += 0.05 * min(share / 0.1, 1.0)
    counted = evidence.get(q.STRAGGLER_OFTEN)
    if counted is not None and counted.note != "steps":
        sure = min(sure, ONE_STEP_LIMIT)
    return min(sure, 0.97) if cost > 3 * error else min(sure, 0.6)


def _because(evidence: Evidence, name: str, known: bool) -> tuple[Reason, ...]:
    found = []
    explains, often = evidence.get(q.STRAGGLER_EXPLAINS), evidence.get(q.STRAGGLER_OFTEN)
    if explains and often:
        of = f"{often.samples} {often.note}"
        found.append(Reason.of(f"{name} comes last in {often} of {of} and causes {explains} of such waiting", often))
    error, ranks = evidence.get(q.CLOCK_ERROR), evidence.get(q.RANKS_SEEN)
    if error and ranks:
        found.append(
            Reason.of(f"on one clock for {ranks} ranks, aligned to {show(error.number, Unit.SECOND)}", error, ranks)
        )
    share = evidence.get(q.STRAGGLER_CAUSE_SHARE)
    if share and known:
        found.append(Reason.of(f"{evidence.text(q.STRAGGLER_DETAIL)}: {share} of the delay", share))
    since, cost = evidence.get(q.STRAGGLER_SINCE), evidence.get(q.STRAGGLER_COST)
    if since and cost and often:
        each = show(cost.number / often.number, Unit.SECOND)
        found.append(Reason.of(f"since step {since}, {each} in each of them; before that it kept up", since))
    path = evidence.get(q.CRITICAL_RANK_SHARE)
    if path:
        found.append(Reason.of(f"{path} of the job's critical path runs on it", path))
    return tuple(found)


def _against(evidence: Evidence) -> tuple[Reason, ...]:
    unseen = evidence.get(q.UNSEEN_WAIT)
    if unseen and unseen.number > evidence.value(q.STRAGGLER_COST, 0.0):
        return (Reason.of(f"all ranks here also wait {unseen} a step for one whose trace is missing", unseen),)
    return ()


# One slow rank or node, while only suspected: the boring answer to "it fell and nothing changed".


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
    gpus = evidence.get(stated.GPUS)
    price = f"; {lost} of {gpus} GPUs' worth of work lost" if lost and gpus else ""
    price += f", about {dollars} at list price" if dollars else ""
    because = [Reason(f"{slowdown.note}: steps take {slowdown} as long{price}")] if slowdown else []
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
