"""Times of matrix products (columns as in gemm.csv); shapes in our own table are predicted without themselves."""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.errors import StallwiseError
from stallwise.physics.costs.gemm import SPREAD_ELSEWHERE, SPREAD_MEASURED, TABLE_TYPES, call_s, table
from stallwise.physics.specs.dtype import dtype
from stallwise.physics.specs.hardware import find_gpu, gpu
from stallwise.planner.scoring import Row, Scored, number

KIND = "gemm"


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """One prediction per row; the shipped neighbours are the only data used, so `calibrate` just skips rows."""
    known = {(r["dtype"], r["m"], r["n"], r["k"]): i for i, r in enumerate(table())}
    return [_predict(row, known, i) for i, row in enumerate(rows) if i >= calibrate]


def _predict(row: Row, known: dict[tuple[str, str, str, str], int], index: int) -> Scored:
    source = row.get("gpu") or "h200"
    name = f"{row.get('dtype')} {row.get('m')}x{row.get('n')}x{row.get('k')}"
    row_id = row.get("row_id") or name
    milliseconds = number(row, "ms")
    measured = milliseconds * 1e-3 if milliseconds else None
    m, n, k = (number(row, c) for c in ("m", "n", "k"))
    card = find_gpu(source) or gpu("h200")
    if not m or not n or not k or min(m, n, k) < 1 or max(m, n, k) > 1e9:
        return Scored(row_id, source, "time_s", measured, note="m, n or k missing or no size")
    try:
        kind = TABLE_TYPES.get(row.get("dtype", "")) or dtype(row.get("dtype") or "bf16")
    except StallwiseError as error:
        return Scored(row_id, source, "time_s", measured, note=error.problem)
    own = known.get((row.get("dtype", ""), row.get("m", ""), row.get("n", ""), row.get("k", "")), -1)
    seconds = float(call_s(m, n, k, card, kind, without=own))
    spread = SPREAD_MEASURED if card.name == "h200" else SPREAD_ELSEWHERE
    return Scored(row_id, source, "time_s", measured, seconds, seconds / spread, seconds * spread)
