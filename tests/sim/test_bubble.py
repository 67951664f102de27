"""Splits, bubbles taken apart, and the simulated step as evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.evidence.timeline import Kind
from stallwise.physics.sim.balance import LayerTimes, Placement, best_split, even_split, run_split
from stallwise.physics.sim.bubble import category, formula_share, step_to_useful, useful_to_step
from stallwise.physics.sim.pipeline_timeline import timelines
from stallwise.physics.sim.schedules import schedule_named
from stallwise.physics.specs.models import find_model
from stallwise.planner.pipeline import Question, answer_pipeline, head_layers, with_model

LAYER = LayerTimes(1e-3, 1e-3, 0.9e-3)


def place(name: str = "1f1b", devices: int = 4, microbatches: int = 16, chunks: int = 1) -> Placement:
    return Placement(schedule_named(name), devices, microbatches, chunks)


@given(st.integers(1, 200), st.integers(1, 32))
def test_an_even_split_uses_every_layer_and_differs_by_one(layers: int, stages: int) -> None:
    if layers < stages:
        with pytest.raises(BadRequest):
            even_split(layers, stages)
        return
    split = even_split(layers, stages)
    assert sum(split) == layers and max(split) - min(split) <= 1


@settings(max_examples=20, deadline=None)
@given(st.integers(8, 40), st.floats(0, 6), st.floats(0, 2))
def test_the_proposed_split_is_never_slower_than_the_even_one(layers: int, head: float, embedding: float) -> None:
    layer = LayerTimes(1e-3, 1e-3, 0.9e-3, embedding_layers=embedding, head_layers=head)
    where = place()
    split = best_split(layers, layer, where)
    assert sum(split) == layers and min(split) >= 1
    even = run_split(even_split(layers, 4), layer, where).step_s
    assert run_split(split, layer, where).step_s <= even * (1 + 1e-9)


def test_a_heavy_head_takes_layers_away_from_the_last_stage() -> None:
    layer = LayerTimes(1e-3, 1e-3, 0.9e-3, head_layers=2.4)
    split = best_split(32, layer, place(devices=8, microbatches=32))
    assert split[-1] == 2
    assert max(split) <= 5


def test_the_head_of_an_8b_explains_a_bubble_of_forty_percent_where_the_formula_says_eighteen() -> None:
    question = with_model(Question(8, 32, measured_share=0.41), find_model("llama-3-8b"), 4096)
    answer = answer_pipeline(question)
    assert formula_share(8, 32) == pytest.approx(7 / 39)
    assert answer["bubble_step_share"] == pytest.approx(0.40, abs=0.02)
    added = {effect["name"]: effect["added_share"] for effect in answer["effects"]}
    assert max(added, key=lambda name: added[name]) == "embedding and head"
    assert answer["best_split_step_ratio"] < 0.9


def test_head_weights_are_those_of_the_published_pitfall() -> None:
    # planners.md (f) 13: by parameters 1.2 layers of a 70B and 2.4 of an 8B; attention makes a layer heavier.
    assert head_layers(find_model("llama-3-70b"), 0) == pytest.approx(1.2, abs=0.1)
    assert head_layers(find_model("llama-3-8b"), 0) == pytest.approx(2.4, abs=0.1)
    assert head_layers(find_model("llama-3-8b"), 8192) < 2.4


def test_effects_add_up_to_the_modelled_bubble() -> None:
    layer = LayerTimes(1e-3, 1e-3, 0.9e-3, head_layers=1.5, recompute=True, p2p_s=2e-4)
    found = category(34, layer, place(devices=8, microbatches=24), measured_share=0.5)
    assert sum(effect.added_share for effect in found.effects) == pytest.approx(found.modelled_share)
    assert found.effects[0].step_share == pytest.approx(7 / 31)
    assert found.unexplained_share == pytest.approx(0.5 - found.modelled_share)


def test_what_alone_would_explain_a_measured_bubble_does_explain_it() -> None:
    where = place("interleaved", 8, 32, 2)
    found = category(16, LAYER, where, measured_share=0.41)
    needed = {need.name: need.value for need in found.needed}
    slow, transfer = needed["one slow stage"], needed["transfers"]
    assert slow is not None and transfer is not None
    heavier = LayerTimes(1e-3, 1e-3, 0.9e-3, head_layers=slow - 1)
    assert run_split(found.split, heavier, where).bubble_step_share == pytest.approx(0.41, abs=0.005)
    chatty = LayerTimes(1e-3, 1e-3, 0.9e-3, p2p_s=transfer)
    assert run_split(found.split, chatty, where).bubble_step_share == pytest.approx(0.41, abs=0.005)


@given(st.floats(0, 0.98))
def test_the_two_names_of_a_bubble_convert_into_each_other(share: float) -> None:
    assert useful_to_step(step_to_useful(share)) == pytest.approx(share)


def test_nonsense_is_refused() -> None:
    for question in (
        Question(0, 8),
        Question(8, 0),
        Question(8, 10**30),
        Question(8, 30, schedule="interleaved"),
        Question(8, 32, layers=4),
        Question(8, 32, forward_s=-1),
        Question(8, 32, measured_share=1.5),
        Question(4, 8, layers=8, split=(1, 1, 1, 1)),
        Question(3, 7, schedule="dualpipe"),
    ):
        with pytest.raises(BadRequest):
            answer_pipeline(question)


def test_a_simulated_step_reads_like_a_trace() -> None:
    where = place(devices=4, microbatches=8)
    run = run_split((2, 2, 2, 2), LAYER, where)
    ranks = timelines(run)
    assert len(ranks) == 4
    for rank, (timeline, busy) in enumerate(zip(ranks, run.busy_s, strict=True)):
        assert timeline.scope.rank == rank
        assert np.all(np.diff(timeline.start_s) >= 0)
        kernels = timeline.rows(Kind.KERNEL)
        compute = [row for row in kernels if timeline.lane[row] == 0]
        waits = [row for row in kernels if timeline.lane[row] == 1]
        assert timeline.duration_s[compute].sum() == pytest.approx(busy)
        assert all("SendRecv" in timeline.text(int(row)) for row in waits)
        assert timeline.duration_s[timeline.rows(Kind.ANNOTATION)].max() == pytest.approx(run.step_s)
