"""Two bundles side by side: how much slower the second is, and which accounts, kernels and causes explain it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.examine import diagnose
from stallwise.doctor.find import Paths
from stallwise.doctor.findings.comparison import Change, Comparison
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.speed import METRICS, RATES, any_step_s, typical
from stallwise.doctor.table import HEALTHY
from stallwise.evidence.catalog import change, quantities, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity
from stallwise.physics.specs.hardware import find_gpu
from stallwise.units import Unit, show

NOTICEABLE = 0.03  # relative change below which two runs of the same code differ anyway
TINY = 0.002  # of the whole: accounts that moved less are not worth a line
MOST_KERNELS = 12
HIGHER_IS_BETTER = {
    "serve.output_rate",
    "serve.generation_rate",
    "serve.achieved_rate",
    "serve.hit_share",
    "run.tokens_per_s",
    "run.samples_per_s",
    "run.mfu",
    "run.hfu",
    "run.flop_rate",
    "serve.per_request_rate",
    "accuracy",
}
LOWER_IS_BETTER_UNITS = {Unit.SECOND}
SEEN_BESIDE_LEDGER = (
    "run.loss",
    "run.mfu",
    "run.tokens",
    "run.samples",
    "run.gpu_memory",
    "gpu.",
    "serving.",
    "memory.",
)
SETUP_WORDS = ("gpu", "model", "precision", "workers", "version", "tp", "pp", "dp", "microbatch", "sequence", "device")


def compare(good: Paths, bad: Paths) -> Comparison:
    """Diagnoses both, each a path or a list of paths, and explains the difference."""
    return compared(diagnose(good), diagnose(bad))


def compared(good: Diagnosis, bad: Diagnosis) -> Comparison:
    """The same for diagnoses already made."""
    metric, slower = _verdict(good, bad)
    changes = [*_categories(good, bad), *_log_parts(good, bad), *_kernels(good, bad)]
    timed = {c.what for c in changes}
    changes += [c for c in _numbers(good, bad) if c.what not in timed]
    changes.sort(key=lambda c: (c.delta_s is None, -abs(c.delta_s or 0.0), -abs(c.relative or 0.0)))
    a, b = _causes(good), _causes(bad)
    return Comparison(
        good=good,
        bad=bad,
        metric=metric,
        slower=slower,
        changes=tuple(changes),
        setup=tuple(_setup(good.evidence, bad.evidence)),
        appeared=tuple(c for c in b if c not in a),
        vanished=tuple(c for c in a if c not in b),
        unexplained_s=_unexplained(good, bad, changes),
        rate=metric in RATES,
    )


def _causes(diagnosis: Diagnosis) -> list[str]:
    sure = [f.cause for f in diagnosis.findings if f.is_verdict]
    return [c for c in dict.fromkeys(sure) if c != HEALTHY]


def _verdict(good: Diagnosis, bad: Diagnosis) -> tuple[str, float | None]:
    if good.ledger and bad.ledger and good.ledger.whole_s and good.ledger.unit == bad.ledger.unit:
        return f"{good.ledger.unit} time", bad.ledger.whole_s / good.ledger.whole_s - 1.0
    a, b = any_step_s(good), any_step_s(bad)
    if a and b:
        return "step time", b / a - 1.0
    for name, words, larger in METRICS:
        quantity = quantities().get(name)
        if quantity is None:
            continue
        a, b = typical(good.evidence, quantity), typical(bad.evidence, quantity)
        if a and b:
            return words, (a / b if larger else b / a) - 1.0
    return _kernel_verdict(good.evidence, bad.evidence)


def _kernel_verdict(good: Evidence, bad: Evidence) -> tuple[str, float | None]:
    """Profiles of kernels alone: the time of those that both have."""
    for name in ("kernel.total_time", "kernel.time"):
        a, b = _by_kernel(good, quantities().get(name)), _by_kernel(bad, quantities().get(name))
        shared = a.keys() & b.keys()
        if shared and sum(a[k] for k in shared) > 0:
            return "kernel time", sum(b[k] for k in shared) / sum(a[k] for k in shared) - 1.0
    return "", None


def _categories(good: Diagnosis, bad: Diagnosis) -> Iterator[Change]:
    if not good.ledger or not bad.ledger:
        return
    whole = max(good.ledger.whole_s, bad.ledger.whole_s)
    for category in dict.fromkeys((*good.ledger.seconds, *bad.ledger.seconds)):
        a, b = good.ledger.seconds.get(category, 0.0), bad.ledger.seconds.get(category, 0.0)
        if abs(b - a) < TINY * whole:
            continue
        finding = next((f for f in (bad if b > a else good).findings if f.category is category), None)
        yield Change(
            what=category.value,
            good=show(a, Unit.SECOND),
            bad=show(b, Unit.SECOND),
            delta_s=b - a,
            relative=b / a - 1.0 if a else None,
            worse=b > a,
            cause=finding.cause if finding else "",
            because=finding.headline if finding else "",
        )


_LOG_PARTS: tuple[tuple[Quantity, str, str], ...] = (
    (run.DATA_TIME, "waiting for the batch", "input-starved"),
    (run.SYNC_TIME, "blocked in synchronisation", "host-sync"),
)


def _log_parts(good: Diagnosis, bad: Diagnosis) -> Iterator[Change]:
    """Parts of a step that logs print, where no ledger counts them."""
    if good.ledger and bad.ledger:
        return
    for quantity, words, cause in _LOG_PARTS:
        a, b = _mean(good.evidence, quantity), _mean(bad.evidence, quantity)
        step = max(_mean(good.evidence, run.STEP_TIME), _mean(bad.evidence, run.STEP_TIME))
        if (a or b) and abs(b - a) > max(TINY * step, 1e-6):
            yield Change(
                words, show(a, Unit.SECOND), show(b, Unit.SECOND), b - a, b / a - 1 if a else None, b > a, cause
            )
    a, b = _stall_s(good.evidence), _stall_s(bad.evidence)
    if abs(b - a) > 1e-4:
        cause = next((c for c in _causes(bad if b > a else good)), "")
        yield Change("isolated slow steps", show(a, Unit.SECOND), show(b, Unit.SECOND), b - a, None, b > a, cause)


def _mean(evidence: Evidence, quantity: Quantity) -> float:
    series = evidence.series(quantity)
    if series:
        return float(np.nanmean(series[0].values))
    return evidence.value(quantity, 0.0)


def _stall_s(evidence: Evidence) -> float:
    share = evidence.value(change.STALL_SHARE, 0.0)
    return share * _mean(evidence, run.STEP_TIME) if share else 0.0


def _kernels(good: Diagnosis, bad: Diagnosis) -> Iterator[Change]:
    """Kernels by their total (or single) time, matched by name; the largest movers."""
    for name in ("kernel.total_time", "kernel.time"):
        quantity = quantities().get(name)
        a, b = _by_kernel(good.evidence, quantity), _by_kernel(bad.evidence, quantity)
        if not (a and b):
            continue
        moved = sorted(a.keys() | b.keys(), key=lambda k: -abs(b.get(k, 0.0) - a.get(k, 0.0)))
        for kernel in moved[:MOST_KERNELS]:
            x, y = a.get(kernel, 0.0), b.get(kernel, 0.0)
            if abs(y - x) < NOTICEABLE * max(x, y):
                continue
            side = bad if y > x else good
            cause = next((f.cause for f in side.findings if f.scope.kernel == kernel), "")
            yield Change(
                f"kernel {kernel}",
                show(x, Unit.SECOND),
                show(y, Unit.SECOND),
                y - x,
                y / x - 1 if x else None,
                y > x,
                cause,
            )
        return


def _by_kernel(evidence: Evidence, quantity: Quantity | None) -> dict[str, float]:
    facts: list[Fact] = evidence.all(quantity) if quantity else []
    return {f.scope.kernel: f.number for f in facts if f.scope.kernel is not None}


def _numbers(good: Diagnosis, bad: Diagnosis) -> Iterator[Change]:
    """Run-wide numbers that moved, with whether that is better or worse where the quantity says."""
    for name, quantity in quantities().items():
        if quantity.unit in (Unit.TEXT, Unit.FLAG) or name.startswith(("expected.", "kernel.")):
            continue
        if good.ledger and bad.ledger and not name.startswith(SEEN_BESIDE_LEDGER):
            continue  # the accounts say it already, in seconds that add up
        a, b = good.evidence.get(quantity), bad.evidence.get(quantity)
        if a is None or b is None or a.scope != b.scope or not a.number or a.number != a.number or b.number != b.number:
            continue
        relative = b.number / a.number - 1.0
        if abs(relative) < NOTICEABLE:
            continue
        worse: bool | None = None
        if name in HIGHER_IS_BETTER:
            worse = relative < 0
        elif quantity.unit in LOWER_IS_BETTER_UNITS and name in (
            "run.step_time",
            "change.steady_step",
            "step.time",
            "serve.ttft",
            "serve.tpot",
        ):
            worse = relative > 0
        delta = b.number - a.number if name in ("run.step_time",) and not (good.ledger and bad.ledger) else None
        cause = _only_in(bad if worse else good, good if worse else bad) if worse is not None else ""
        yield Change(name.split(".")[-1].replace("_", " "), str(a), str(b), delta, relative, worse, cause)


def _only_in(one: Diagnosis, other: Diagnosis) -> str:
    """The first cause of one bundle that the other does not have."""
    known = _causes(other)
    return next((c for c in _causes(one) if c not in known), "")


def _setup(good: Evidence, bad: Evidence) -> Iterator[Change]:
    for name, quantity in quantities().items():
        word = quantity.unit in (Unit.TEXT, Unit.FLAG)
        setting = name in SETUP_WORDS or name.split(".")[-1] in ("name", "device", "loader_workers", "precision")
        if not (word or setting) or name.startswith(("kernel.", "step.", "work.")):
            continue
        a, b = good.get(quantity), bad.get(quantity)
        if a is not None and b is not None and str(a) != str(b) and quantity is not stated.SYMPTOM:
            yield Change(name, str(a), str(b), because=_hardware_note(str(a), str(b)))


def _hardware_note(good: str, bad: str) -> str:
    """What the data sheets alone would change, where two cards are compared."""
    a, b = find_gpu(good), find_gpu(bad)
    if a is None or b is None or a is b:
        return ""
    return (
        f"by data sheet {b.title} has {b.peak('bf16') / a.peak('bf16'):.2f}x the matrix rate and "
        f"{b.bandwidth_byte_per_s / a.bandwidth_byte_per_s:.2f}x the bandwidth"
    )


def _unexplained(good: Diagnosis, bad: Diagnosis, changes: list[Change]) -> float | None:
    if good.ledger and bad.ledger:
        return None  # accounts sum to the whole by construction
    a, b = _mean(good.evidence, run.STEP_TIME), _mean(bad.evidence, run.STEP_TIME)
    if not a or not b:
        return None
    names = {"waiting for the batch", "blocked in synchronisation"}
    left = (b - a) - sum(c.delta_s or 0.0 for c in changes if c.what in names)
    return left if abs(left) > 0.01 * a else 0.0
