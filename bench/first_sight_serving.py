"""Scores first-sight material of serving; prints totals alone unless asked for each.

    python bench/first_sight_serving.py FOLDER [--each] [--only incidents|bench]

FOLDER holds incidents.jsonl and healthy.jsonl (what was reported, with files, and what it was) and bench.csv (published runs in
their own columns). The product is asked from outside: `diagnose WORDS FILES --json` and `plan validate --kind inference --json`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ASKED = [sys.executable, "-m", "stallwise"]
SECONDS = 120
METRICS = ("tpot_s", "ttft_s", "output_token_per_s")


def answer_of(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the product answers to words and files together."""
    files = [str(folder / name) for name in row.get("files") or ()]
    command = [*ASKED, "diagnose", row["text"], *files, "--json", "--no-cache", "--no-history", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"state": "failed", "ranked": []}
    return found if isinstance(found, dict) else {"state": "failed", "ranked": []}


def score_incidents(folder: Path, each: bool) -> None:
    """First answers of incidents, and whether healthy services are called sick."""
    counts: Counter[str] = Counter()
    for name in ("incidents", "healthy"):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            answer = answer_of(row, folder)
            ranked, state = answer.get("ranked") or [], answer.get("state", "")
            counts[f"{name}: all"] += 1
            counts[f"{name}: state {state}"] += 1
            if name == "incidents":
                counts["incidents: first right"] += bool(ranked) and ranked[0] in row["accept"]
                counts["incidents: among three"] += any(c in row["accept"] for c in ranked[:3])
                counts["incidents: first absurd"] += bool(ranked) and ranked[0] in row["never"]
            else:
                counts["healthy: called sick"] += state == "sick"
                counts["healthy: absurd"] += state == "sick" and bool(ranked) and ranked[0] in row["never"]
            if each:
                right = "ok " if ranked and ranked[0] in row["accept"] else "-- "
                print(right, row["id"], state, ranked[:4], "accept", row["accept"])
    for key in sorted(counts):
        print(f"{key:32} {counts[key]}")


def published(row: dict[str, str], place: int) -> dict[str, str]:
    """A measured run in the columns of inference.csv; nothing is added that the row does not say."""
    gpu = re.sub(r"^(NVIDIA|AMD Instinct|AMD)\s+", "", row["gpu"])
    gpu = re.sub(r"[\s-]\d+GB.*$", "", gpu).replace("-NPS1-SPX", "")
    queued = row["request_rate"] == "all queued"
    rate = row["request_rate"] if re.fullmatch(r"[\d.]+", row["request_rate"]) else ""
    at_once = "at once" in row["notes"]
    load = "all queued" if queued else "all sent at once" if at_once else "closed loop" if row["concurrency"] else ""
    load = f"poisson {rate} requests/s" if rate and not row["concurrency"] else load
    return {
        "row_id": f"r{place}", "source": row["publisher"], "citation": row["source_url"], "model": row["model"], "gpu": gpu,
        "num_gpus": row["gpus"], "tp": row["tp"], "pp": row["pp"], "ep": row["ep"], "dp_attn": "",
        "mode": "disagg" if "disaggregated" in row["notes"] else "agg", "engine": row["engine"],
        "engine_version": row["engine_version"], "precision": row["dtype"], "isl": row["isl"], "osl": row["osl"],
        "batch_or_concurrency": row["concurrency"], "load": load, "request_rate": rate,
        "metric_output_tok_s_total": row["output_tok_s"] if queued or not row["tpot_ms_mean"] else "",
        "ttft_ms": row["ttft_ms_mean"] or row["ttft_ms_p50"], "tpot_ms": row["tpot_ms_mean"] or row["tpot_ms_p50"],
        "prefill_cfg": "", "decode_cfg": "", "verified": "yes", "notes": row["notes"],
    }  # fmt: skip


def score_bench(folder: Path, each: bool) -> None:
    """Median error and the share inside the 80% interval, over rows with a card and lengths."""
    with (folder / "bench.csv").open(encoding="utf-8") as stream:
        rows = [published(row, place) for place, row in enumerate(csv.DictReader(stream))]
    stated = [r for r in rows if r["gpu"] and r["isl"] and r["osl"]]
    with TemporaryDirectory() as place:
        table = Path(place) / "rows.csv"
        with table.open("w", newline="", encoding="utf-8") as stream:
            out = csv.DictWriter(stream, list(rows[0]))
            out.writeheader()
            out.writerows(rows)
        command = [*ASKED, "plan", "validate", str(table), "--kind", "inference", "--json", "-q"]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    found = found[0] if isinstance(found, list) else found
    per_row = found["per_row"]
    print(f"rows {len(rows)}, with card and lengths {len(stated)}")
    for metric in sorted({r["metric"] for r in per_row}):
        mine = [r for r in per_row if r["metric"] == metric]
        known = [r for r in mine if r.get("predicted")]
        errors = sorted(abs(r["predicted"] / r["measured"] - 1) for r in known)
        inside = sum(r["low"] <= r["measured"] <= r["high"] for r in known)
        if errors:
            print(f"{metric}: {len(known)} of {len(mine)} predicted, median error {errors[len(errors) // 2]:.1%}, "
                  f"inside 80% {inside / len(known):.0%}")  # fmt: skip
        else:
            print(f"{metric}: 0 of {len(mine)} predicted")
    if each:
        by_id = {r["row_id"]: r for r in rows}
        for r in per_row:
            row = by_id[r["row_id"]]
            what = [
                row[k]
                for k in ("model", "gpu", "num_gpus", "tp", "engine", "isl", "osl", "batch_or_concurrency", "load")
            ]
            ratio = f"{r['predicted'] / r['measured']:.2f}" if r.get("predicted") else "none"
            print(r["row_id"], r["metric"], ratio, f"{r['measured']:.4g}", *what, r.get("note", "")[:90], sep=" | ")


def main() -> None:
    """Both parts, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--only", choices=("incidents", "bench"), default="")
    args = parser.parse_args()
    if args.only != "bench":
        score_incidents(args.folder, args.each)
    if args.only != "incidents":
        score_bench(args.folder, args.each)


if __name__ == "__main__":
    main()
