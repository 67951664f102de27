"""Members told one after the other are a table; a value instead of another is what is, and what was."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import fabric, run, serving, stated
from stallwise.evidence.words import Words


@pytest.mark.parametrize(
    ("text", "cause", "who"),
    [
        ("rank 0: 412 ms, rank 1: 415 ms, rank 2: 409 ms, rank 3: 880 ms", "straggler-rank", "rank 3"),
        ("Step time: rank 0 412 ms, rank 1 415 ms, rank 2 411 ms, rank 3 870 ms", "straggler-rank", "rank 3"),
        ("node 1: 412 ms, node 2: 415 ms, node 3: 409 ms, node 4: 880 ms per step", "straggler-rank", "node 4"),
        ("gpu,step time (ms)\n0,412\n1,415\n2,880\n3,409", "straggler-rank", "gpu 2"),
        (
            "stage 0 takes 120 ms, stage 1 takes 118 ms, stage 2 121 ms and stage 3 196 ms",
            "pipeline-stage-imbalance",
            "",
        ),
    ],
)
def test_who_stands_out_is_proved(text: str, cause: str, who: str) -> None:
    found = diagnose(Words(text), cache=False, workers=1)
    assert found.ranked[0] == cause and found.findings[0].basis == "measured"
    assert found.evidence.text(stated.SLOW_NODE) == who


def test_members_that_agree_are_no_finding() -> None:
    found = diagnose(Words("GPU 0 takes 41 ms, GPU 1 takes 42 ms, GPU 2 takes 41 ms"), cache=False, workers=1)
    assert found.state.value == "unclear"


@pytest.mark.parametrize("titles", ["node,step_ms", "nodes,step_ms"])
def test_numbers_of_nodes_that_rise_are_no_places(titles: str) -> None:
    found = diagnose(Words(f"{titles}\n1,400\n2,410\n4,700"), cache=False, workers=1)
    assert not found.evidence.table("rank_table") and found.evidence.table("scaling.series")


@pytest.mark.parametrize(
    ("text", "quantity", "is_", "was"),
    [
        ("it took 3.1 s instead of 1.2 s per step since Monday", run.STEP_TIME, 3.1, 1.2),
        ("a step takes 3.1 s instead of 1.2 s", run.STEP_TIME, 3.1, 1.2),
        ("throughput is 900 tokens/s instead of 2,400", run.TOKENS_PER_S, 900, 2400),
        ("we get 900 instead of 2400 tokens/s", run.TOKENS_PER_S, 900, 2400),
        ("TTFT 4 s rather than 300 ms", serving.TTFT, 4, 0.3),
    ],
)
def test_a_value_instead_of_another(text: str, quantity: object, is_: float, was: float) -> None:
    known = diagnose(Words(text), cache=False, workers=1).evidence.all(quantity)  # type: ignore[arg-type]
    assert {f.scope.run: f.number for f in known} == {None: pytest.approx(is_), "before": pytest.approx(was)}


def test_one_node_has_no_network_and_several_have() -> None:
    one = diagnose(Words("Eight A100 in one node, all-reduce is slow."), cache=False, workers=1)
    assert one.evidence.get(fabric.ONE_NODE) and "network-congestion" not in one.ranked
    two = diagnose(Words("8 A100 in one node are fine, two nodes: all-reduce is slow."), cache=False, workers=1)
    assert not two.evidence.all(fabric.ONE_NODE)


def test_memory_of_the_host_is_not_that_of_a_card() -> None:
    found = diagnose(Words("A host DIMM logs ECC errors (12 CE memory read error), training is slower"), cache=False)
    assert "gpu-memory-errors" not in found.ranked[:1]
