"""Serving runs (columns as in inference.csv): TPOT and TTFT of closed-loop runs, throughput of saturated ones.

Every run is predicted with constants whose fit left its whole group out: its model on its card under its engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallwise.costs.closed_loop import Load, Operating, operating
from stallwise.costs.inference import Engine
from stallwise.costs.kv_room import kv_room
from stallwise.costs.pools import Pool, pools
from stallwise.costs.serving_constants import constants, group_of, spread
from stallwise.errors import StallwiseError
from stallwise.progress import shown
from stallwise.search.scoring import Row, Scored, number, summary
from stallwise.search.served_runs import served_run, stated_pool
from stallwise.specs.deployment import Deployment
from stallwise.specs.model import find_model

KIND = "inference"
MAX_SEQUENCES = 2048.0  # TensorRT-LLM's default cap, which its saturated tables use
MEASURED = ("tpot_ms", "ttft_ms", "metric_output_tok_s_total")
SPREADS = {"tpot_s": "tpot", "ttft_s": "ttft", "output_token_per_s": "rate"}


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """Two results a row where both latencies were measured, one for throughput rows. Nothing is calibrated."""
    del calibrate  # one set of constants for all sources
    return [scored for row in shown(rows, len(rows), "predicting", "rows") for scored in _score(row)]


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """By metric, and by model, GPU and engine for each latency; disaggregated runs apart; and by group left out."""
    places = {row.get("row_id", ""): row for row in rows}
    found: dict[str, Any] = {"by_metric": {}}
    for metric in sorted({s.metric for s in scored}):
        mine = [s for s in scored if s.metric == metric]
        found["by_metric"][metric] = {"rows": len(mine), **_short(mine), "inside_90_share": _inside(mine, places)}
        for column in ("model", "gpu", "engine"):
            names = sorted({places.get(s.row_id, {}).get(column, "?") for s in mine})
            found.setdefault(f"by_{column}", {})[metric] = {
                name: _short([s for s in mine if places.get(s.row_id, {}).get(column, "?") == name]) for name in names
            }
    return found


def _inside(scored: Sequence[Scored], places: dict[str, Row]) -> float | None:
    """How many lie in the 90% interval."""
    hits = []
    for s in scored:
        if s.predicted and s.measured:
            name = SPREADS[s.metric.removeprefix("disagg_").removeprefix("static_")]
            low, high = spread(name, 0.9, told=_told(places.get(s.row_id, {})))
            hits.append(s.predicted * low <= s.measured <= s.predicted * high)
    return sum(hits) / len(hits) if hits else None


def _short(scored: Sequence[Scored]) -> dict[str, Any]:
    figures = summary(KIND, len(scored), scored)
    return {k: v for k, v in figures.items() if k not in ("kind", "by_source", "per_row")}


def _score(row: Row) -> list[Scored]:
    mode = (row.get("mode") or "").strip()
    prefix = "disagg_" if mode == "disagg" else "static_" if mode.startswith("static") else ""
    measured = {
        f"{prefix}tpot_s": _ms(row, "tpot_ms"),
        f"{prefix}ttft_s": _ms(row, "ttft_ms"),
        f"{prefix}output_token_per_s": number(row, "metric_output_tok_s_total"),
    }
    wanted = {metric: value for metric, value in measured.items() if value is not None}
    row_id, source = row.get("row_id", ""), row.get("source") or "?"
    if not wanted:
        return [Scored(row_id, source, "tpot_s", None, note=f"none of {', '.join(MEASURED)} is given")]
    try:
        predicted = _disaggregated(row) if mode == "disagg" else _aggregated(row)
    except StallwiseError as error:
        return [Scored(row_id, source, metric, value, note=error.problem) for metric, value in wanted.items()]
    if isinstance(predicted, str):
        return [Scored(row_id, source, metric, value, note=predicted) for metric, value in wanted.items()]
    return [_one(row, source, metric, value, predicted, prefix) for metric, value in wanted.items()]


def _one(row: Row, source: str, metric: str, value: float, predicted: dict[str, float], prefix: str) -> Scored:
    plain = metric.removeprefix(prefix)
    guess, row_id = predicted.get(plain), row.get("row_id", "")
    if guess is None:
        return Scored(row_id, source, metric, value, note="the load is not stated")
    low, high = spread(SPREADS[plain], told=_told(row))
    return Scored(row_id, source, metric, value, guess, guess * low, guess * high)


def _told(row: Row) -> bool:
    return bool((row.get("engine_version") or "").strip() and (row.get("load") or "").strip())


def _ms(row: Row, name: str) -> float | None:
    value = number(row, name)
    return None if value is None else value / 1000


def engine_for(d: Deployment) -> Engine:
    """The clock of a deployment whose own group was left out of the fit."""
    group = group_of(d.model.name, d.gpu.name, d.engine)
    return Engine(d, constants(d.engine, group, d.engine_version, d.gpu.vendor))


def _aggregated(row: Row) -> dict[str, float] | str:
    run = served_run(row)
    engine, room = engine_for(run.deployment), kv_room(run.deployment)
    if not room.fits:
        return f"the weights need {room.weight_bytes / 1e9:.0f} GB of a GPU's {room.usable_bytes / 1e9:.0f} GB"
    cap = number(row, "max_num_seqs")
    if run.concurrency is None:  # everything queued: as many as fit, none of them in a first wave
        most = max(1.0, min(room.requests(run.isl + run.osl), cap or MAX_SEQUENCES * run.deployment.dp))
        return {"output_token_per_s": operating(engine, Load(run.isl, run.osl, most, "poisson")).output_token_per_s}
    at: Operating = operating(
        engine,
        Load(run.isl, run.osl, run.concurrency, run.pattern, max_seqs=cap, budget=number(row, "max_num_batched_tokens")),
    )  # fmt: skip
    return {"tpot_s": at.tpot_s, "ttft_s": at.ttft_s, "output_token_per_s": at.output_token_per_s}


def _disaggregated(row: Row) -> dict[str, float] | str:
    """Prefill and decode pools in one loop, where their sizes and batches are stated."""
    model = find_model(row.get("model", ""))
    plain = served_run({**row, "tp": "1", "ep": "1", "dp_attn": "1", "notes": ""})
    prefill = stated_pool(row.get("prefill_cfg", ""), model, plain.deployment)
    decode = stated_pool(row.get("decode_cfg", ""), model, plain.deployment)
    if not prefill or not decode:
        return "pool sizes or batches are not stated"
    users = decode[1] * decode[0].dp * decode[2]
    at = pools(
        Pool(engine_for(prefill[0]), prefill[2]), Pool(engine_for(decode[0]), decode[2]), plain.isl, plain.osl, users
    )
    return {"tpot_s": at.tpot_s, "ttft_s": at.ttft_s, "output_token_per_s": at.output_token_per_s}
