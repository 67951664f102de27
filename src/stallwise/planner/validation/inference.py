"""Serving runs (columns as in inference.csv): TPOT and TTFT of closed-loop runs, throughput of saturated ones.

Every run is predicted with constants whose fit left its whole group out: its model on its card under its engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from stallwise.errors import BadRequest, StallwiseError
from stallwise.physics.costs.closed_loop import OPEN, Load, Operating, operating
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.mixture import Mixture, single
from stallwise.physics.costs.serving_constants import constants, group_of, spread
from stallwise.physics.specs.deployment import Deployment
from stallwise.planner.scoring import Row, Scored, number, summary
from stallwise.planner.served_pools import PooledRun, answers, pooled_run
from stallwise.planner.served_runs import ServedRun, served_run
from stallwise.progress import shown

KIND = "inference"
MAX_SEQUENCES = 2048.0  # TensorRT-LLM's default cap, which its saturated tables use
ABOVE_CAPACITY = "the rate is above what this service takes: its first token measures the length of the test"
FULL_SHARE = 0.999  # of the requests that fit
EMPTIEST, HALVINGS = 1e-3, 40  # of the search for how many are inside at a rate
INSIDE_SHARE, WIDE_SHARE = 0.8, 0.9  # of the intervals that are scored
MEASURED = ("tpot_ms", "ttft_ms", "metric_output_tok_s_total")
SPREADS = {"tpot_s": "tpot", "ttft_s": "ttft", "output_token_per_s": "rate"}


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """Two results a row where both latencies were measured, one for throughput rows. Nothing is calibrated."""
    del calibrate  # one set of constants for all sources
    return [scored for row in shown(rows, len(rows), "predicting", "rows") for scored in _score(row)]


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """By metric, and by model, GPU and engine for each latency; disaggregated runs apart; and by group left out."""
    places = {row.get("row_id", ""): row for row in rows}
    found: dict[str, Any] = {"interval_share": INSIDE_SHARE, "by_metric": {}, "assumed": _assumed(scored)}
    for metric in sorted({s.metric for s in scored}):
        mine = [s for s in scored if s.metric == metric]
        found["by_metric"][metric] = {"rows": len(mine), **_short(mine), "inside_90_share": _inside(mine)}
        for column in ("model", "gpu", "engine"):
            names = sorted({places.get(s.row_id, {}).get(column, "?") for s in mine})
            found.setdefault(f"by_{column}", {})[metric] = {
                name: _short([s for s in mine if places.get(s.row_id, {}).get(column, "?") == name]) for name in names
            }
    return found


def _assumed(scored: Sequence[Scored]) -> dict[str, int]:
    """What rows that were predicted left unstated, and how many left it."""
    left = {s.row_id: s.note for s in scored if s.predicted is not None and s.note}
    return dict(Counter(what for note in left.values() for what in note.split("; ")).most_common())


def _inside(scored: Sequence[Scored]) -> float | None:
    """How many lie in the 90% interval."""
    hits = [s.wide[0] <= s.measured <= s.wide[1] for s in scored if s.wide and s.measured is not None]
    return sum(hits) / len(hits) if hits else None


def _short(scored: Sequence[Scored]) -> dict[str, Any]:
    figures = summary(KIND, len(scored), scored)
    return {k: v for k, v in figures.items() if k not in ("kind", "by_source", "per_row")}


def _score(row: Row) -> list[Scored]:
    mode = (row.get("mode") or "").strip()
    row_id, source = row.get("row_id", ""), row.get("source") or "?"
    wanted = {
        metric: value
        for metric, value in (
            ("tpot_s", _ms(row, "tpot_ms")),
            ("ttft_s", _ms(row, "ttft_ms")),
            ("output_token_per_s", number(row, "metric_output_tok_s_total")),
        )
        if value is not None
    }
    if not wanted:
        return [Scored(row_id, source, "tpot_s", None, note=f"none of {', '.join(MEASURED)} is given")]
    prefix = "disagg_" if mode == "disagg" else "static_" if mode.startswith("static") else ""
    try:
        predicted = _disaggregated(row) if mode == "disagg" else _aggregated(row)
    except StallwiseError as error:
        return [Scored(row_id, source, prefix + m, value, note=error.problem) for m, value in wanted.items()]
    return [_one(row_id, source, predicted, metric, value) for metric, value in wanted.items()]


@dataclass(frozen=True)
class Predicted:
    """What a row's question leads to: answers by metric, how its metrics are told apart, and what was assumed."""

    answers: dict[str, Mixture]
    prefix: str
    all_stated: bool
    pools: bool = False
    assumed: tuple[str, ...] = ()


def _one(row_id: str, source: str, predicted: Predicted, metric: str, value: float) -> Scored:
    name, guess = predicted.prefix + metric, predicted.answers.get(metric)
    if guess is None:
        why = ABOVE_CAPACITY if ABOVE_CAPACITY in predicted.assumed else "the load is not stated"
        return Scored(row_id, source, name, value, note=why)
    (low, high), wide = (
        guess.interval(share, spread(SPREADS[metric], share, stated=predicted.all_stated, pools=predicted.pools))
        for share in (INSIDE_SHARE, WIDE_SHARE)
    )
    note = "; ".join(predicted.assumed)
    return Scored(row_id, source, name, value, guess.quantile(0.5), low, high, note=note, wide=wide)


def _ms(row: Row, name: str) -> float | None:
    value = number(row, name)
    return None if value is None else value / 1000


@lru_cache(maxsize=1024)
def engine_for(d: Deployment) -> Engine:
    """The clock of a deployment whose own group was left out of the fit."""
    group = group_of(d.model.name, d.gpu.name, d.engine)
    return Engine(d, constants(d.engine, group, d.engine_version, d.gpu.kinds))


def _aggregated(row: Row) -> Predicted:
    run = served_run(row)
    engine, room = engine_for(run.deployment), kv_room(run.deployment)
    if not room.fits:
        raise BadRequest(
            f"the weights need {room.weight_bytes / 1e9:.0f} GB of a GPU's {room.usable_bytes / 1e9:.0f} GB", hint=""
        )
    all_stated = bool(run.deployment.engine_version and (row.get("load") or "").strip())
    prefix = "static_" if (row.get("mode") or "").startswith("static") else ""
    if prefix:  # the engine by itself, with no server in front
        engine = Engine(run.deployment, replace(engine.k, first_token_s=0.0, alone_s=0.0))
    cap = number(row, "max_num_seqs")
    most = max(1.0, min(room.requests(run.isl + run.osl), cap or MAX_SEQUENCES * run.deployment.dp))
    if run.rate_per_s:
        inside = _inside_at(engine, run, run.rate_per_s / run.replicas, most)
        at = operating(engine, Load(run.isl, run.osl, inside, OPEN, max_seqs=cap))
        found, assumed = _answers(at, run.replicas), (*run.assumed, *at.assumed)
        if inside >= FULL_SHARE * most:  # the queue grows as long as the test lasts, and so does the first token
            found.pop("ttft_s")
            assumed = (ABOVE_CAPACITY, *assumed)
        return Predicted(found, prefix, all_stated, assumed=assumed)
    if run.concurrency is None:  # everything queued: as many as fit, none of them in a first wave
        rate = operating(engine, Load(run.isl, run.osl, most, OPEN)).output_token_per_s * run.replicas
        return Predicted({"output_token_per_s": single(rate)}, prefix, all_stated, assumed=run.assumed)
    at = operating(
        engine,
        Load(run.isl, run.osl, run.concurrency, run.pattern, max_seqs=cap, budget=number(row, "max_num_batched_tokens")),
    )  # fmt: skip
    return Predicted(_answers(at, run.replicas), prefix, all_stated, assumed=(*run.assumed, *at.assumed))


def _answers(at: Operating, replicas: int) -> dict[str, Mixture]:
    times = {name: single(getattr(at, name)) for name in ("tpot_s", "ttft_s")}
    return {**times, "output_token_per_s": single(at.output_token_per_s * replicas)}


def _inside_at(engine: Engine, run: ServedRun, rate_per_s: float, most: float) -> float:
    """Requests inside at this rate, by bisection of Little's law; as many as fit where it cannot be kept up."""
    low, high = EMPTIEST, most
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        done = operating(engine, Load(run.isl, run.osl, max(middle, 1.0), OPEN)).output_token_per_s / run.osl
        low, high = (middle, high) if done * min(middle, 1.0) < rate_per_s else (low, middle)
    return max(high, 1.0)


def _disaggregated(row: Row) -> Predicted:
    """Prefill and decode pools in one loop; runs that leave them open are told apart from those that do not."""
    run = pooled_run(row)
    return Predicted(
        _pooled(run), "disagg_" if run.all_stated else "disagg_open_", True, pools=True, assumed=run.assumed
    )


@lru_cache(maxsize=2048)  # tables repeat runs
def _pooled(run: PooledRun) -> dict[str, Mixture]:
    return answers(run, engine_for)
