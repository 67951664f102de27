"""Fits the serving constants on published runs and writes specs/catalog/serving.toml.

    python bench/fit_serving.py inference.csv inference_layers.csv [--only-seen]

Each constant starts from a physical guess with a stated width (in log units); the runs may move it only as far as they
insist. Groups (a model on a card under an engine) are dealt into folds by their names; every fold is left out once, so
that `plan validate --kind inference` predicts each group with constants that never saw it, and the intervals are those
of unseen groups, each group counting the same. Runs of separate pools take no part in the fit; half of their groups say
how much wider their intervals are, the other half is kept for the check. Layouts whose runs contradict the rest of their
own group by more than a quarter (a draft model nobody mentions, a broken run) take no part in the fit; they are predicted
and scored all the same.
`--only-seen` fits on two thirds of the groups and prints how the third that was kept back fared.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from stallwise.errors import StallwiseError
from stallwise.physics.costs.closed_loop import GROWTH_SHARE, steady_times
from stallwise.physics.costs.inference import Engine, iteration_parts
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.rank_work import RankWork
from stallwise.physics.costs.serving_constants import Constants, earlier, early_by, spread
from stallwise.planner.served_runs import cell, served_run
from stallwise.planner.validation.inference import MAX_SEQUENCES

CATALOG = Path(__file__).parents[1] / "src/stallwise/physics/specs/catalog"
ENGINES = ("vllm", "sglang", "trtllm")
FOLDS = 12
# Where an engine's constants stand: about the end of 2025, when these runs divide; and how many releases each place of a
# release's number stands for.
LATE = {
    "vllm": ((0, 16, 0), (20, 1, 0)),
    "sglang": ((0, 5, 9), (50, 10, 1)),
    "trtllm": ((1, 2, 0), (8, 4, 0)),
}
# name: (guess, width). Hopper's shares of bandwidth and GEMM peaks are those measured on our own H200.
SHARED = {
    "weight_read_share": (0.9, 0.04),
    "expert_read_share": (0.75, 0.15),
    "kv_read_share": (0.75, 0.15),
    "matmul_share": (0.65, 0.1),
    "expert_matmul_share": (0.6, 0.2),
    "expert_padding_rows": (10.0, 0.7),
    "stream_passes": (10.0, 0.5),
    "expert_passes": (6.0, 0.5),
    "attention_share": (0.4, 0.25),
    "fp8_share": (0.85, 0.15),
    "fp4_share": (0.7, 0.3),
    "blackwell_fp8_share": (0.9, 0.2),
    "blackwell_read_share": (0.95, 0.06),
    "blackwell_matmul_share": (0.8, 0.2),
    "blackwell_layer_share": (0.9, 0.2),
    "link_share": (0.6, 0.3),
    "all_to_all_share": (0.2, 0.7),
    "kv_room_share": (0.95, 0.1),
    "mla_layer_s": (20e-6, 0.5),
    "indexer_layer_s": (30e-6, 0.5),
    "fp8_layer_s": (10e-6, 0.7),
    "prompt_layer_s": (0.3e-3, 0.8),  # from graphs of a prefill's pieces to none at all
    "prompt_moe_layer_s": (0.3e-3, 0.8),
    "early_layer_ratio": (1.1, 0.15),
}
PER_ENGINE: dict[str, tuple[tuple[float, float, float], float]] = {
    "collective_s": ((8e-6, 10e-6, 7e-6), 0.3),
    "layer_s": ((35e-6, 40e-6, 30e-6), 0.3),
    "moe_layer_s": ((30e-6,) * 3, 0.4),
    "host_s": ((0.6e-3, 0.8e-3, 0.5e-3), 0.5),
    "sequence_s": ((10e-6,) * 3, 0.5),
    "contention": ((0.9,) * 3, 0.2),
    "mixed_share": ((0.85, 0.3, 0.85), 0.08),
    "first_token_s": ((0.04, 0.06, 0.04), 1.0),
    "burst": ((0.06, 0.12, 0.06), 0.5),  # sweeps send about ten waves: one request in ten waits for half of the first
    "prefill_factor": ((1.0,) * 3, 0.25),
}
NOISE = 0.7  # of one run's logarithm against one width of a guess: runs of a group are far from independent
CORNER = 0.15  # log error beyond which a run counts linearly
FIRST_TOKEN_WEIGHT = 0.7  # of a first-token error against a token error
RATE_WEIGHT = 0.5  # of a saturated throughput
FASTER, SLOWER = -0.28, 0.6  # median log error of a layout beyond which something unstated is at work
NAMES = [*SHARED, *(f"{n}/{e}" for n in PER_ENGINE for e in ENGINES)]
GUESS = np.log([*(v[0] for v in SHARED.values()), *(x for v in PER_ENGINE.values() for x in v[0])])
WIDTH = np.array([*(v[1] for v in SHARED.values()), *(v[1] for v in PER_ENGINE.values() for _ in ENGINES)])
Array = np.ndarray[Any, Any]
ARRAYS = (
    "isl", "osl", "load", "room", "read", "tpot", "ttft", "rate", "group", "config", "engine", "early", "told",
    "weight", "kept_back",
)  # fmt: skip


class Runs:
    """All runs as arrays; a run has both latencies or a saturated rate."""

    def __init__(self, path: str) -> None:
        works, rest, words = [], [], []
        with Path(path).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                if row["mode"] != "agg" or not (found := self._run(row)):
                    continue
                work, numbers, labels = found
                works.append(work)
                rest.append(numbers)
                words.append(labels)
        self.work = RankWork(**{f.name: np.array([getattr(w, f.name) for w in works], float) for f in fields(RankWork)})
        (self.isl, self.osl, self.load, self.room, self.read, self.tpot, self.ttft, self.rate,
         self.early, self.told) = np.array(rest, float).T  # fmt: skip
        self.group, self.config = (np.array([w[i] for w in words]) for i in (0, 1))
        self.kept_back = np.array([hashed(w[4], 3) == 0 for w in words])
        self.engine = np.array([ENGINES.index(w[2]) for w in words])
        _, place = np.unique([f"{w[0]}/{w[3]}" for w in words], return_inverse=True)
        self.weight = (len(words) / np.bincount(place)[place]) ** 0.25  # big groups must not drown small ones
        self.weight /= self.weight.mean()

    def _run(self, row: dict[str, str]) -> tuple[RankWork, tuple[float, ...], tuple[str, ...]] | None:
        tpot, ttft, rate = (cell(row, n) for n in ("tpot_ms", "ttft_ms", "metric_output_tok_s_total"))
        try:
            run = served_run(row)
        except StallwiseError:
            return None
        d, room = run.deployment, kv_room(run.deployment)
        both = tpot is not None and ttft is not None and run.concurrency is not None
        if not room.fits or not (both or (rate and run.concurrency is None)):
            return None
        engine = Engine(d, Constants(*[0] * len(fields(Constants))))
        load = run.concurrency or max(1.0, min(room.requests(run.isl + run.osl), MAX_SEQUENCES * d.dp))
        early = early_by(d.engine_version, *LATE[d.engine])
        numbers = (
            run.isl, run.osl, load, room.tokens, engine.kv_read_bytes(run.isl + run.osl / 2),
            tpot / 1e3 if both else np.nan, ttft / 1e3 if both else np.nan, np.nan if both else rate,
            early, float(bool(d.engine_version and run.pattern)),
        )  # fmt: skip
        return (
            engine.work,
            numbers,
            (
                run.group,
                f"{run.group}/{d.engine_version}/{d.label}",
                d.engine,
                d.weights,
                "|".join(row[n] for n in ("model", "gpu", "engine")),
            ),
        )  # type: ignore[return-value]

    def only(self, keep: Array) -> Runs:
        part = Runs.__new__(Runs)
        part.work = RankWork(**{f.name: getattr(self.work, f.name)[keep] for f in fields(RankWork)})
        for name in ARRAYS:
            setattr(part, name, getattr(self, name)[keep])
        return part


def constants_of(x: Array, runs: Runs) -> Constants:
    values = dict(zip(NAMES, np.exp(x), strict=True))
    found = {n: values[n] for n in SHARED}
    for name in PER_ENGINE:
        found[name] = np.choose(runs.engine, [values[f"{name}/{e}"] for e in ENGINES])
    return earlier(Constants(**found), runs.early)


def predict(x: Array, runs: Runs) -> tuple[Array, Array, Array]:
    """TPOT, TTFT and output tokens a second."""
    k = constants_of(x, runs)
    fitting = np.maximum(runs.room * k.kv_room_share / (runs.isl + GROWTH_SHARE * runs.osl), 1.0)
    running = np.maximum(np.minimum(runs.load, fitting), 1.0)
    saturated = runs.rate == runs.rate
    tpot, ttft, _, _ = steady_times(
        runs.work, k, isl=runs.isl, osl=runs.osl, running=running,
        concurrency=np.where(saturated, running, np.maximum(runs.load, running)), kv_read_bytes=runs.read,
        crowd_share=np.where(saturated, 0.0, k.burst),
    )  # fmt: skip
    rate = running * runs.osl / (ttft + (runs.osl - 1) * tpot)
    return tpot, ttft, rate


def errors_of(x: Array, runs: Runs) -> Array:
    tpot, ttft, rate = predict(x, runs)
    found = np.concatenate([np.log(tpot / runs.tpot), np.log(ttft / runs.ttft), np.log(rate / runs.rate)])
    return np.where(np.isfinite(found), found, 0.0)


def minimise(residuals: Callable[[Array], Array], weights: Array, u: Array, rounds: int) -> Array:
    """Levenberg-Marquardt on a corner-rounded absolute error with a unit prior on u."""

    def cost(r: Array, u: Array) -> float:
        return float(
            (weights**2 * 2 * CORNER**2 * (np.sqrt(1 + (r / CORNER) ** 2) - 1)).sum() / NOISE**2 + (u**2).sum()
        )

    r = residuals(u)
    best, damping = cost(r, u), 1e-3
    for _ in range(rounds):
        slopes = np.stack([(residuals(u + 1e-3 * e) - r) / 1e-3 for e in np.eye(len(u))], axis=1)
        w2 = weights**2 / np.sqrt(1 + (r / CORNER) ** 2) / NOISE**2
        curve, slope = (slopes * w2[:, None]).T @ slopes + np.eye(len(u)), slopes.T @ (w2 * r) + u
        for _ in range(6):
            step = np.clip(np.linalg.solve(curve + damping * np.diag(np.diag(curve)), -slope), -1.5, 1.5)
            tried = residuals(u + step)
            if (now := cost(tried, u + step)) < best:
                break
            damping = max(damping, 1e-3) * 5
        else:
            return u
        gained, u, r, best, damping = (best - now) / best, u + step, tried, now, damping / 5
        if gained < 1e-4:
            break
    return u


def fit(runs: Runs, start: Array, rounds: int = 30) -> Array:
    weights = np.concatenate([runs.weight, FIRST_TOKEN_WEIGHT * runs.weight, RATE_WEIGHT * runs.weight])
    found = minimise(lambda u: errors_of(GUESS + WIDTH * u, runs), weights, (start - GUESS) / WIDTH, rounds)
    return GUESS + WIDTH * found


def consistent(runs: Runs, x: Array) -> Array:
    """Runs of layouts whose median error is not that of an unstated input."""
    error = np.log(runs.tpot / predict(x, runs)[0])
    keep = np.ones(len(error), bool)
    for config in np.unique(runs.config[runs.tpot == runs.tpot]):
        mine = (runs.config == config) & (runs.tpot == runs.tpot)
        if not FASTER <= np.median(error[mine]) <= SLOWER:
            keep[mine] = False
    return keep


def hashed(text: str, count: int) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % count


def quantiles(ratio: Array, groups: Array, shares: tuple[float, ...]) -> list[float]:
    """Of measured over predicted, every group counting the same: what an unseen group may do."""
    order = np.argsort(ratio)
    weight = 1.0 / np.sqrt(np.array([np.sum(groups == g) for g in groups], float))  # between rows and groups
    at = (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum()
    return [float(np.interp(s, at, ratio[order])) for s in shares]


def median_pct(predicted: Array, measured: Array) -> float:
    known = measured == measured
    return 100 * float(np.median(np.abs(predicted[known] / measured[known] - 1)))


def say(name: str, found: tuple[Array, Array, Array], runs: Runs) -> None:
    figures = [
        median_pct(p, m) for p, m in zip(found, (runs.tpot, runs.ttft, runs.rate), strict=True) if (m == m).any()
    ]
    print(f"{name:40} TPOT, TTFT, rate: " + ", ".join(f"{f:.1f}%" for f in figures))


def fit_layers(path: str, base: Array) -> tuple[dict[str, float], list[float]]:
    """The constants of plain PyTorch layers in a CUDA graph; also leave-one-shape-out errors."""
    from stallwise.planner.validation.layers import stack_of

    with Path(path).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    free = ("weight_read_share", "kv_read_share", "matmul_share", "attention_share", "layer_s")
    start = np.log([0.9, 0.85, 0.6, 0.4, 45e-6])
    values = {n: float(np.exp(base[NAMES.index(n)])) for n in SHARED}
    values |= {n: float(np.exp(base[NAMES.index(f"{n}/vllm")])) for n in PER_ENGINE}
    values |= {"host_s": 0.0, "sequence_s": 0.0}

    def seconds(x: Array, chosen: list[dict[str, str]]) -> Array:
        k = Constants(**{**values, **dict(zip(free, np.exp(x), strict=True))})
        out = []
        for row in chosen:
            engine = Engine(stack_of(row), k)
            batch, context, decode = float(row["batch"]), float(row["context"]), row["phase"] == "decode"
            parts = iteration_parts(
                engine.work, k, tokens=float(row["tokens"]), sampled=0.0,
                kv_bytes=batch * engine.kv_read_bytes(context) if decode else 0.0,
                decode_context=batch * context if decode else 0.0,
                prefill_pairs=0.0 if decode else batch * context**2 / 2,
            )  # fmt: skip
            out.append(float(parts.total_s))
        return np.array(out)

    def solve(chosen: list[dict[str, str]]) -> Array:
        truth = np.array([float(r["ms"]) / 1e3 for r in chosen])
        u = minimise(lambda u: np.log(seconds(start + u, chosen) / truth), np.full(len(chosen), 10.0), 0 * start, 30)
        return start + u

    errors: list[float] = []
    for shape in sorted({r["shape"] for r in rows}):
        x = solve([r for r in rows if r["shape"] != shape])
        mine = [r for r in rows if r["shape"] == shape]
        errors += list(np.log(np.array([float(r["ms"]) / 1e3 for r in mine]) / seconds(x, mine)))
    return {**values, **dict(zip(free, np.exp(solve(rows)), strict=True))}, errors


def toml(x: Array, name: str) -> str:
    values = dict(zip(NAMES, np.exp(x), strict=True))
    lines = [f"[{name}.shared]", *(f"{n} = {values[n]:.4g}" for n in SHARED)]
    for engine in ENGINES:
        lines += [f"[{name}.engine.{engine}]", *(f"{n} = {values[f'{n}/{engine}']:.4g}" for n in PER_ENGINE)]
    return "\n".join(lines)


def main() -> None:
    runs = Runs(sys.argv[1])
    everything = runs
    if "--only-seen" in sys.argv:
        runs = runs.only(~runs.kept_back)
    first = fit(runs, GUESS)
    keep = consistent(runs, first)
    best = fit(runs.only(keep), first)
    print(
        f"{len(keep)} runs, {(~keep).sum()} set aside",
        dict(zip(NAMES, (f"{v:.3g}" for v in np.exp(best)), strict=True)),
    )
    say("fitted", predict(best, runs), runs)
    if runs is not everything:
        kept = everything.only(everything.kept_back)
        say("kept third, groups unseen", predict(best, kept), kept)
    place = np.array([hashed(g, FOLDS) for g in runs.group])
    unseen = tuple(np.empty(len(place)) for _ in range(3))
    parts = []
    for number in range(FOLDS):
        held = place == number
        x = fit(runs.only(keep & ~held), best, 10)
        for out, found in zip(unseen, predict(x, runs.only(held)), strict=True):
            out[held] = found
        parts.append(toml(x, f"fold.{number}"))
    say("groups left out", unseen, runs)
    if "--dry" in sys.argv or runs is not everything:
        return
    torch, layer_errors = fit_layers(sys.argv[2], best)
    print(f"layers, shape unseen: {np.median(np.abs(layer_errors)):.1%}")
    write(runs, unseen, best, parts, torch, layer_errors)
    widen_pools(sys.argv[1])


def widen_pools(path: str) -> None:
    """Intervals of separate pools: those of one pool to the power that holds the share on half of their groups."""
    from stallwise.planner.served_pools import answers, pooled_run
    from stallwise.planner.validation.inference import engine_for

    found = []
    with Path(path).open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["mode"] == "disagg" and hashed("|".join(row[n] for n in ("model", "gpu", "engine")), 2):
                run = pooled_run(row)
                if run.all_stated:
                    found.append((run.decode.cuts[0], answers(run, engine_for), row))
    groups = np.array([f"{d.model.name}|{d.gpu.name}|{d.engine}" for d, _, _ in found])
    weight = 1.0 / np.sqrt(np.array([np.sum(groups == g) for g in groups], float))
    toml_path = CATALOG / "serving.toml"
    lines = toml_path.read_text(encoding="utf-8").splitlines()
    for share in (0.8, 0.9):
        start = lines.index(f'[spread."{share:.0%}".pools]'.replace("%", ""))
        for name, column in (("tpot", "tpot_ms"), ("ttft", "ttft_ms")):
            for power in np.arange(1.0, 4.0, 0.05):
                low, high = (x**power for x in spread(name, share))
                ends = [a[f"{name}_s"].interval(share, (low, high)) for _, a, _ in found]
                hits = [lo <= float(r[column]) / 1e3 <= hi for (lo, hi), (_, _, r) in zip(ends, found, strict=True)]
                if float((weight * hits).sum() / weight.sum()) >= share:
                    break
            place = next(i for i in range(start, len(lines)) if lines[i].startswith(f"{name} ="))
            lines[place] = f"{name} = [{low:.3f}, {high:.3f}]"
            print(f"pools, {share:.0%}, {name}: the interval of one pool to the power {power:.2f}")
    toml_path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write(
    runs: Runs, unseen: tuple[Array, ...], best: Array, parts: list[str], torch: dict[str, float], layers: list[float]
) -> None:
    spreads = [f"[spread]\nlayers = [{np.exp(np.quantile(layers, 0.1)):.3f}, {np.exp(np.quantile(layers, 0.9)):.3f}]"]
    for share, ends in (("80", (0.1, 0.9)), ("90", (0.05, 0.95))):
        told, untold = [f'[spread."{share}".told]'], [f'[spread."{share}".untold]']
        for name, p, m in zip(("tpot", "ttft", "rate"), unseen, (runs.tpot, runs.ttft, runs.rate), strict=True):
            known = m == m
            stated = known & ((runs.told > 0) | (name == "rate"))
            low, high = quantiles(m[stated] / p[stated], runs.group[stated], ends)
            lower, higher = quantiles(m[known] / p[known], runs.group[known], ends)
            told.append(f"{name} = [{low:.3f}, {high:.3f}]")
            untold.append(f"{name} = [{min(low, lower):.3f}, {max(high, higher):.3f}]")  # knowing less never narrows
        spreads += [*told, *untold, f'[spread."{share}".pools]', *told[1:]]
    lines = [
        "# Constants of the serving model. Written by bench/fit_serving.py; the fields are explained in",
        f"# costs/serving_constants.py. Fitted on {len(runs.tpot):,} aggregated runs that NVIDIA publishes as",
        "# aiconfigurator's silicon sample and in TensorRT-LLM's performance overview (facts only), starting from shares of an",
        "# H200. `fold.N` never saw the groups of fold N. `torch`: plain layers in a CUDA graph on that H200. The formula's",
        "# terms were settled with these groups in view, so fresh tables may do a little worse.",
        "",
        f"[folds]\ncount = {FOLDS}",
        "",
        "[late]  # where an engine's constants stand, and how many releases each place of its number counts",
        *(f"{engine} = {{ release = {list(at)}, steps = {list(steps)} }}" for engine, (at, steps) in LATE.items()),
        "",
        *spreads,
        "",
        toml(best, "all"),
        "[all.engine.torch]",
        *(f"{n} = {torch[n]:.4g}" for n in PER_ENGINE),
        "",
        "[torch]  # replaces the shared ones for plain layers",
        *(f"{n} = {torch[n]:.4g}" for n in SHARED),
        "",
        *parts,
    ]
    (CATALOG / "serving.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
