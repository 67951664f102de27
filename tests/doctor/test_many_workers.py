"""Jobs of many workers from end to end: what the slow worker, stage or sequence costs, in whatever form the job was recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.merged import merged_events
from stallwise.errors import BadRequest
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from tests.shared_data import shared
from tests.sim.job.planted import Fault, Plan, costs, play
from tests.sim.job.written import events, step_parts, write_ranks

PLAIN = Plan("1f1b", 4, 4, 1, 8, 8, 7)
SLOW_WORKER = replace(PLAIN, faults=(Fault("worker", 2, 1, 0, 1.8),))

# step now and ideal, slowdown, Mw, Ms as its authors' simulator says; cause; who (issue 40's table)
PUBLISHED = {
    "AR": (46.34, 23.48, 1.97, 1.00, 0.00, ["straggler-rank"], "data-parallel rank 0, pipeline stage 0"),
    "ST": (2.173, 1.843, 1.18, 0.03, 1.22, ["pipeline-stage-imbalance"], "stage 3"),
    "SE": (9.067, 5.897, 1.54, 0.03, 0.69, ["sequence-length-imbalance", "pipeline-stage-imbalance"], "Microbatches"),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_jobs(name: str) -> None:
    step, ideal, slowdown, few, last, causes, who = PUBLISHED[name]
    found = diagnose(str(shared("data", "straggler", f"timeline-{name}.json.gz")), cache=False)
    job = to_dict(found)["job"]
    assert job["step_s"] == pytest.approx(step, rel=0.03)
    assert job["ideal_step_s"] == pytest.approx(ideal, rel=0.03)
    assert job["slowdown"] == pytest.approx(slowdown, rel=0.03)
    assert job["slowest_workers_share"] == pytest.approx(few, abs=0.05)
    assert job["last_stage_share"] == pytest.approx(last, abs=0.05)
    assert abs(job["replay_error"]) < 0.02
    assert list(found.ranked[: len(causes)]) == causes
    assert who in found.findings[0].headline


def of_events(path: Path, rows: list[dict[str, object]]) -> Diagnosis:
    path.write_bytes(gzip.compress(json.dumps(rows).encode()))
    return diagnose(str(path), cache=False)


def shouted(name: str) -> str:
    return name.upper().replace("-", "_")


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


@pytest.mark.parametrize("style", [str, shouted, camel])
def test_names_in_any_case(tmp_path: Path, style: Callable[[str], str]) -> None:
    found = of_events(tmp_path / "job.json.gz", events(SLOW_WORKER, style))
    assert found.ranked[0] == "straggler-rank"
    assert "data-parallel rank 2, pipeline stage 1" in found.findings[0].headline
    gain = found.findings[0].gain
    assert gain is not None and gain.high_s == pytest.approx(costs(SLOW_WORKER)["worker"], rel=0.1)


def test_a_timeline_that_lost_its_end_and_the_names_of_its_threads(tmp_path: Path) -> None:
    """Names written last are the first to go."""
    rows = [e for e in events(SLOW_WORKER) if e["ph"] == "X"]
    text = json.dumps(sorted(rows, key=lambda e: float(str(e["ts"]))))
    path = tmp_path / "job.json"
    path.write_text(text[: len(text) * 3 // 4])
    found = diagnose(str(path), cache=False)
    assert found.ranked[0] == "straggler-rank"
    assert "data-parallel rank 2, pipeline stage 1" in found.findings[0].headline
    assert any("threads have no names" in n.text for n in found.notes)


@pytest.mark.parametrize(
    "fault, cause",
    [
        (Fault("stage", stage=3, size=1.5), "pipeline-stage-imbalance"),
        (Fault("sequence", size=0.8), "sequence-length-imbalance"),
        (Fault("link", stage=1, size=0.05), "pipeline-p2p-latency"),
        (Fault("gc", since=6, size=0.6), "python-gc-pauses"),
    ],
)
def test_each_fault_has_its_cause(tmp_path: Path, fault: Fault, cause: str) -> None:
    plan = replace(PLAIN, faults=(fault,))
    found = of_events(tmp_path / "job.json.gz", events(plan))
    assert found.ranked[0] == cause
    gain = found.findings[0].gain
    assert gain is not None and gain.high_s == pytest.approx(costs(plan)[fault.kind], rel=0.1)


def test_an_even_job_is_in_line_and_its_bubble_is_the_schedules(tmp_path: Path) -> None:
    flat = replace(PLAIN, stages=1, replicas=8)
    found = of_events(tmp_path / "flat.json.gz", events(flat))
    assert found.state.value != "sick"
    assert "8 workers" in found.proofs[0].says
    assert to_dict(found)["job"]["step_s"] == pytest.approx(play(flat)[0].mean(), rel=0.01)
    deep = of_events(tmp_path / "deep.json.gz", events(PLAIN))
    assert deep.ranked[0] == "pipeline-bubble"  # 4 stages, 8 microbatches: 3 of 11 slots


def test_a_file_a_rank_and_some_of_them_damaged(tmp_path: Path) -> None:
    folder = write_ranks(tmp_path / "run", SLOW_WORKER)
    whole = diagnose(str(folder), cache=False)
    (folder / "rank_3.json").write_bytes(b"\x1f\x8b broken")
    cut = (folder / "rank_9.json").read_bytes()
    (folder / "rank_9.json").write_bytes(cut[: len(cut) // 2])
    (folder / "rank_14.json").unlink()
    found = diagnose(str(folder), cache=False)
    for answer in (whole, found):
        assert answer.ranked[0] == "straggler-rank"
        assert "data-parallel rank 2, pipeline stage 1" in answer.findings[0].headline
    said = " ".join(n.text for n in found.notes)
    assert "left out" in said and any("rank_3" in n.source.file for n in found.notes)
    gains = [answer.findings[0].gain for answer in (whole, found)]
    assert gains[0] and gains[1] and gains[1].high_s == pytest.approx(gains[0].high_s, rel=0.1)


def line(rank: int, step: int, data: float, passes: float, wait: float) -> str:
    return f"[rank {rank}] step {step} | data {data * 1e3:.1f} ms | fwd_bwd {passes * 1e3:.1f} ms | allreduce {wait * 1e3:.1f} ms"


def once(rank: int, step: int, data: float, passes: float, wait: float) -> str:
    """The unit stands once, the step in a line of its own."""
    ms = [f"{x * 1e3:.2f}" for x in (passes / 3, passes * 2 / 3, wait, data)]
    return (
        f" iteration {step:8d}/ 1000 | elapsed time per iteration (ms): 1080.1 | lm loss: 2.3E+00 |\ntime (ms) | forward-compute: "
        f"{ms[0]} | backward-compute: {ms[1]} | backward-params-all-reduce: {ms[2]} | batch-generator: {ms[3]}"
    )


def at_the_end(rank: int, step: int, data: float, passes: float, wait: float) -> str:
    return f"[rank{rank}] iteration {step} | data: {data * 1e3:.1f} | fwd-bwd: {passes * 1e3:.1f} | all-reduce: {wait * 1e3:.1f} (ms)"


@pytest.mark.parametrize("form", [line, once, at_the_end])
def test_sixteen_logs_with_one_slow_rank_since_a_step(tmp_path: Path, form: Callable[..., str]) -> None:
    for rank, step, *parts in step_parts(16, range(200, 400), slow=11, since=300, factor=1.45):
        with (tmp_path / f"rank{rank}.log").open("a") as log:
            log.write(form(rank, step, *parts) + "\n")
    found = diagnose(str(tmp_path), cache=False)
    first = found.findings[0]
    assert (first.cause, first.scope.rank) == ("straggler-rank", 11)
    said = " ".join(r.text for r in first.because)
    assert "since step 300, 34" in said and "1.45x" in said
    for lost in (3, 4):
        (tmp_path / f"rank{lost}.log").write_bytes(b"" if lost == 3 else bytes(range(256)) * 9)
    fewer = diagnose(str(tmp_path), cache=False)
    assert fewer.findings[0].headline.split(":")[0] == first.headline.split(":")[0]
    assert any("no recording of rank 3, 4" in n.text for n in fewer.notes)
    assert found.ledger is not None and 1.0 < sum(found.ledger.seconds.values()) < 1.1


def test_tables_that_are_long_cut_or_lack_cells(tmp_path: Path) -> None:
    """More rows than a sample holds; a last step that only some ranks reached leaves even ranks even."""
    rows = [
        f"{r},{s},{d * 1e3:.1f},{p * 1e3:.1f},{w * 1e3:.1f}"
        for r, s, d, p, w in step_parts(16, range(200, 400), slow=11, since=300, factor=1.45)
    ]
    head, blank = "rank,step,data_ms,fwd_bwd_ms,allreduce_ms", ["0,200,,,", *rows[1:]]
    path = tmp_path / "ranks.csv"
    path.write_text("\n".join([head, *blank])[:-9])
    first = diagnose(str(path), cache=False).findings[0]
    assert (first.cause, first.scope.rank) == ("straggler-rank", 11)
    path.write_text("\n".join([head, *rows[: 16 * 94 - 4]]))
    found = diagnose(str(path), cache=False)
    assert found.state.value == "healthy" and any("left out" in n.text for n in found.notes)


def test_waiting_for_input_that_goes_round_names_no_rank(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    late = np.where(rng.random((100, 32)) < 0.02, 0.8, 0.01)
    path = tmp_path / "ranks.csv"
    path.write_text("rank,step,data_s,fwd_bwd_s,allreduce_s\n" + "".join(
        f"{r},{s},{late[s, r]:.4f},0.6,{late[s].max() - late[s, r] + 0.03:.4f}\n" for s in range(100) for r in range(32)))  # fmt: skip
    first = diagnose(str(path), cache=False).findings[0]
    assert (first.cause, first.scope.rank) == ("straggler-rank", None)
    assert "one rank after another" in first.headline
    assert first.gain is not None and first.gain.high_s == pytest.approx((late.max(axis=1) - 0.01).mean(), rel=0.05)


def test_rank_times_as_tables_and_json_lines(tmp_path: Path) -> None:
    rows = step_parts(8, range(40), slow=5, since=0, factor=1.3)
    table = tmp_path / "times.csv"
    table.write_text(
        "rank,step,fwd_bwd_ms,allreduce_ms\n"
        + "".join(f"{r},{s},{p * 1e3:.2f},{w * 1e3:.2f}\n" for r, s, _, p, w in rows)
    )
    lines = tmp_path / "times.jsonl"
    lines.write_text(
        "".join(
            json.dumps({"rank": r, "step": s, "forward": p / 3, "backward": p * 2 / 3, "allreduce": w}) + "\n"
            for r, s, _, p, w in rows
        )
    )
    for path in (table, lines):
        found = diagnose(str(path), cache=False)
        assert (found.ranked[0], found.findings[0].scope.rank) == ("straggler-rank", 5), path.name
        with pytest.raises(BadRequest, match="no trace to merge"):  # before a file is opened
            merged_events(found, [str(path)])


def test_timers_of_megatron(tmp_path: Path) -> None:
    text = []
    rows = step_parts(8, range(10, 30), slow=2, since=0, factor=1.4)
    for step in range(10, 30):
        mine = [row for row in rows if row[1] == step]
        text.append(f" iteration {step:8d}/    1000 | elapsed time per iteration (ms): 1170.1 | lm loss: 2.1E+00 |")
        text += [
            "times across ranks (ms):",
            "  forward-backward:",
            *(f"     rank {r:2d}: {p * 1e3:.2f}" for r, _, _, p, _ in mine),
        ]
        text += ["  grads-all-reduce:", *(f"     rank {r:2d}: {w * 1e3:.2f}" for r, _, _, _, w in mine)]
    path = tmp_path / "out.log"
    path.write_text("\n".join(text) + "\n")
    found = diagnose(str(path), cache=False)
    assert (found.ranked[0], found.findings[0].scope.rank) == ("straggler-rank", 2)


def test_stages_by_table_and_by_microbatch(tmp_path: Path) -> None:
    stages = tmp_path / "stages.csv"
    stages.write_text(
        "stage,layers,forward_ms,backward_ms\n"
        + "".join(f"{s},10,{40 + 18 * (s == 7)},{80 + 30 * (s == 7)}\n" for s in range(8))
    )
    each = tmp_path / "microbatches.csv"
    each.write_text("stage,microbatch,forward_ms,backward_ms\n" + "".join(
        f"{s},{m},{40 + 18 * (s == 7)},{80 + 30 * (s == 7)}\n" for s in range(8) for m in range(32)))  # fmt: skip
    steps = tmp_path / "steps.csv"
    head, *rows = each.read_text().splitlines()
    steps.write_text("\n".join([f"step,{head}", *(f"{step},{row}" for step in range(5) for row in rows)]))
    given: list[tuple[Path, list[str]]] = [(stages, ["microbatches=32"]), (each, []), (steps, [])]
    answers = [diagnose(str(p), facts=facts, cache=False) for p, facts in given]
    for found in answers:
        assert found.ranked[0] == "pipeline-stage-imbalance"
        assert "stage 7" in found.findings[0].headline
        assert found.findings[0].gain is not None
    gains = [found.findings[0].gain for found in answers]
    assert gains[0] and all(g and g.high_s == pytest.approx(gains[0].high_s, rel=0.02) for g in gains)
    # 1F1B: (m - 1) further microbatches at the pace of the slowest stage, of which 48 ms go.
    assert gains[0].high_s == pytest.approx(31 * 0.048 + 0.048, rel=0.05)
    assert "Move 3 of its 10 layers" in answers[0].findings[0].fixes[0].action


def test_who_waits_least_is_the_slow_one(tmp_path: Path) -> None:
    path = tmp_path / "waits.csv"
    path.write_text("rank,allreduce_wait_ms\n" + "".join(f"{r},{4.1 if r == 5 else 205 + r % 4}\n" for r in range(16)))
    found = diagnose(str(path), cache=False)
    assert (found.ranked[0], found.findings[0].scope.rank) == ("straggler-rank", 5)
    path.write_text("rank,allreduce_wait_ms\n" + "".join(f"{r},{205 + 3 * (r % 5)}\n" for r in range(16)))
    assert diagnose(str(path), cache=False).state.value != "sick"


def test_pictures_and_the_merged_trace(tmp_path: Path) -> None:
    path = tmp_path / "job.json.gz"
    found = of_events(path, events(SLOW_WORKER))
    page = to_html(found)
    for words in ("16 workers, step by step", "Microbatches on each stage", "if all took the mean"):
        assert words in page
    merged = list(merged_events(found, [str(path)]))
    assert sum(e["ph"] == "X" and e["cat"] != "stallwise" for e in merged) == sum(
        e["ph"] == "X" for e in events(SLOW_WORKER)
    )
    assert {e["args"]["name"] for e in merged if e["name"] == "process_name"} >= {
        f"data-parallel rank {r}" for r in range(4)
    }


def on_hosts(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Processes named after their host: two replicas a host."""
    names = [
        {"name": "process_name", "ph": "M", "pid": r, "args": {"name": f"node n{r // 2:02d} DP rank {r}"}}
        for r in range(8)
    ]
    return [*names, *rows]


def test_a_slow_host_is_named_and_priced(tmp_path: Path) -> None:
    flat = replace(PLAIN, stages=1, replicas=8)
    slow = tuple(Fault("worker", r, 0, 0, 1.5) for r in (4, 5))
    both = replace(flat, faults=slow)
    found = of_events(tmp_path / "hosts.json.gz", on_hosts(events(both)))
    assert found.ranked[0] == "straggler-rank"
    assert "host n02 (all 2 of its workers)" in found.findings[0].headline
    by_host = {row["name"]: row for row in to_dict(found)["job"]["by_host"]}
    assert sorted(by_host) == ["n00", "n01", "n02", "n03"]
    lost = float(play(both)[0].mean() - play(flat)[0].mean())
    assert by_host["n02"]["removed_s"] > 0.6 * lost
    assert all(by_host[name]["removed_s"] < 0.1 * lost for name in ("n00", "n01", "n03"))


def test_hosts_in_tables_and_logs(tmp_path: Path) -> None:
    rows = step_parts(8, range(40), slow=5, since=0, factor=1.3)
    table = tmp_path / "times.csv"
    table.write_text(
        "rank,node,step,fwd_bwd_ms,allreduce_ms\n"
        + "".join(f"{r},gpu-{r // 4},{s},{p * 1e3:.2f},{w * 1e3:.2f}\n" for r, s, _, p, w in rows)
    )
    found = diagnose(str(table), cache=False)
    assert "rank 5 on gpu-1" in found.findings[0].headline
    assert {row["name"] for row in to_dict(found)["job"]["by_host"]} == {"gpu-0", "gpu-1"}


def test_shares_of_microbatches_and_workers_add_up(tmp_path: Path) -> None:
    job = to_dict(of_events(tmp_path / "job.json.gz", events(SLOW_WORKER)))["job"]
    assert [row["name"] for row in job["by_microbatch"]] == [str(m) for m in range(8)]
    slowest = job["by_worker"][0]
    assert slowest["name"] == "data-parallel rank 2, pipeline stage 1"
    assert slowest["removed_s"] == pytest.approx(job["step_s"] - job["ideal_step_s"], rel=0.2)


def test_ranks_in_any_order_and_steps_that_overlap(tmp_path: Path) -> None:
    """Rows of a file in no order, one rank written twice over some steps, one that begins later than the others."""
    folder = write_ranks(tmp_path / "run", SLOW_WORKER)
    rows = json.loads((folder / "rank_2.json").read_text())["traceEvents"]
    (folder / "rank_2.json").write_text(json.dumps({"traceEvents": rows[::-1] + rows[: len(rows) // 3]}))
    rows = json.loads((folder / "rank_12.json").read_text())["traceEvents"]
    late = [e for e in rows if e["args"]["iteration"] >= 102]
    (folder / "rank_12.json").write_text(json.dumps({"traceEvents": late}))
    found = diagnose(str(folder), cache=False)
    assert "(data-parallel rank 2, pipeline stage 1)" in found.findings[0].headline
    gain = found.findings[0].gain
    assert gain is not None and gain.high_s == pytest.approx(costs(SLOW_WORKER)["worker"], rel=0.1)
    assert any("not recorded" in n.text or "left out" in n.text for n in found.notes)
