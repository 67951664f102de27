"""Serving runs (columns as in inference.csv): TPOT and TTFT of closed-loop runs, throughput of saturated ones.

A model that the constants were fitted on is predicted with constants fitted without its family.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallwise.costs.closed_loop import closed_loop
from stallwise.costs.inference import Engine
from stallwise.costs.kv_room import kv_room
from stallwise.costs.serving_constants import constants, family_of, spread
from stallwise.errors import StallwiseError
from stallwise.search.scoring import Row, Scored, number, summary
from stallwise.search.served_runs import ServedRun, served_run, stated_pool
from stallwise.specs.deployment import Deployment
from stallwise.specs.hardware import find_gpu
from stallwise.specs.model import find_model

KIND = "inference"
MAX_SEQUENCES = 2048.0  # TensorRT-LLM's default cap, which its saturated tables use
THROUGHPUT_SPREAD = (0.5, 1.6)


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """Two results a row where both latencies were measured, one for throughput rows. Nothing is calibrated."""
    del calibrate  # one set of constants for all sources
    return [scored for row in rows for scored in _score(row)]


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """By metric, and by model, GPU and engine for each latency; disaggregated runs apart."""
    places = {row.get("row_id", ""): row for row in rows}
    found: dict[str, Any] = {"by_metric": {}}
    for metric in sorted({s.metric for s in scored}):
        mine = [s for s in scored if s.metric == metric]
        found["by_metric"][metric] = {"rows": len(mine), **_short(mine)}
        for column in ("model", "gpu", "engine"):
            names = sorted({places.get(s.row_id, {}).get(column, "?") for s in mine})
            found.setdefault(f"by_{column}", {})[metric] = {
                name: _short([s for s in mine if places.get(s.row_id, {}).get(column, "?") == name]) for name in names
            }
    return found


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
    try:
        predicted = _disaggregated(row) if mode == "disagg" else _aggregated(row)
    except StallwiseError as error:
        return [Scored(row_id, source, metric, value, note=error.problem) for metric, value in wanted.items()]
    return [_one(row_id, source, metric, value, predicted, prefix) for metric, value in wanted.items()]


def _one(row_id: str, source: str, metric: str, value: float, predicted: dict[str, float] | str, prefix: str) -> Scored:
    if isinstance(predicted, str):
        return Scored(row_id, source, metric, value, note=predicted)
    plain = metric.removeprefix(prefix)
    guess = predicted.get(plain)
    if guess is None:
        return Scored(row_id, source, metric, value, note="the load is not stated")
    low, high = THROUGHPUT_SPREAD if plain.startswith("output") else spread(plain.removesuffix("_s"))
    return Scored(row_id, source, metric, value, guess, guess * low, guess * high)


def _ms(row: Row, name: str) -> float | None:
    value = number(row, name)
    return None if value is None else value / 1000


def engine_for(deployment: Deployment) -> Engine:
    """The clock of a deployment whose own family was left out of the fit."""
    return Engine(deployment, constants(deployment.engine, family_of(deployment.model.name)))


def _aggregated(row: Row) -> dict[str, float] | str:
    run: ServedRun = served_run(row)
    engine = engine_for(run.deployment)
    room = kv_room(run.deployment)
    if not room.fits:
        return f"the weights need {room.weight_bytes / 1e9:.0f} GB of a GPU's {room.usable_bytes / 1e9:.0f} GB"
    load = run.concurrency
    if load is None:
        load = max(1.0, min(room.requests(run.isl + run.osl), MAX_SEQUENCES * run.deployment.dp))
    at = closed_loop(engine, run.isl, run.osl, load)
    busy_s = run.osl * at.tpot_s + at.prefill_s
    found = {"output_token_per_s": at.running * run.osl / busy_s}
    return found | ({"tpot_s": at.tpot_s, "ttft_s": at.ttft_s} if run.concurrency is not None else {})


def _disaggregated(row: Row) -> dict[str, float] | str:
    """Prefill and decode pools by themselves, where their sizes and batches are stated."""
    model, gpu = find_model(row.get("model", "")), find_gpu(row.get("gpu", ""))
    if gpu is None:
        return f"no GPU is called '{row.get('gpu', '')}'"
    plain = served_run({**row, "tp": "1", "ep": "1", "dp_attn": "1", "notes": ""})
    prefill = stated_pool(row.get("prefill_cfg", ""), model, plain.deployment)
    decode = stated_pool(row.get("decode_cfg", ""), model, plain.deployment)
    if not prefill or not decode:
        return "pool sizes or batches are not stated"
    first, answer = engine_for(prefill[0]), engine_for(decode[0])
    prefill_s = first.prefill_s(plain.isl) * max(prefill[1], 1.0)
    running = decode[1] * decode[0].dp
    decode_s = answer.decode_s(running, plain.isl + plain.osl / 2)
    return {"tpot_s": decode_s, "ttft_s": first.k.first_token_s + prefill_s + decode_s}
