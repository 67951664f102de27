"""Every pipeline schedule: each pass once, in an order that runs, with the bubble and memory its paper claims."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.sim.pipeline import PassTimes, PipelineRun, even_times, run_program
from stallwise.physics.sim.program import Op, Pass, Program, linear, one_each
from stallwise.physics.sim.schedules import all_schedules, schedule_named

NAMES = sorted(all_schedules())
SECONDS = st.floats(1e-3, 10)


def simulate(
    name: str, devices: int, microbatches: int, *, f: float, b: float, w: float, p2p: float = 0
) -> PipelineRun:
    """A step with equal devices; DualPipe's two model copies each have whole stages."""
    schedule = schedule_named(name)
    chunks = schedule.CHUNKS or 2
    if name == "dualpipe":
        times = even_times(2 * devices, f, b, w, p2p_s=p2p)
    else:
        times = even_times(devices, f, b, w, chunks=chunks, p2p_s=p2p)
    return run_program(schedule.program(devices, microbatches, chunks, times), times)


def passes(program: Program) -> Counter[tuple[str, int, int]]:
    """How often each half of the work of each microbatch on each stage is scheduled."""
    seen: Counter[tuple[str, int, int]] = Counter()
    for device in program.devices:
        for slot in device:
            for op in slot:
                halves = "BW" if op.kind is Pass.BACKWARD else op.kind.value
                for half in halves:
                    seen[half, op.microbatch, op.stage] += 1
    return seen


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None)
@given(half=st.integers(1, 4), rounds=st.integers(2, 4), f=SECONDS, b=SECONDS, w=SECONDS, p2p=st.floats(0, 1))
def test_each_pass_runs_once_and_the_order_never_deadlocks(
    name: str, half: int, rounds: int, f: float, b: float, w: float, p2p: float
) -> None:
    devices, microbatches = 2 * half, 2 * half * rounds
    run = simulate(name, devices, microbatches, f=f, b=b, w=w, p2p=p2p)
    program = run.program
    expected = {
        (half_pass, mb, stage)
        for mb in range(microbatches)
        for stage in program.routes[program.route_of[mb]]
        for half_pass in "FBW"
    }
    seen = passes(program)
    assert set(seen) == expected
    assert max(seen.values()) == 1


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None)
@given(half=st.integers(1, 3), rounds=st.integers(2, 4), f=SECONDS, b=SECONDS, w=SECONDS, p2p=st.floats(0, 1))
def test_no_pass_starts_before_its_inputs_have_arrived(
    name: str, half: int, rounds: int, f: float, b: float, w: float, p2p: float
) -> None:
    run = simulate(name, 2 * half, 2 * half * rounds, f=f, b=b, w=w, p2p=p2p)
    start: dict[tuple[str, int, int], float] = {}
    end: dict[tuple[str, int, int], float] = {}
    for device in run.devices:
        clock = 0.0
        for placed in device:
            assert placed.start_s >= clock - 1e-9, "a device runs one slot at a time"
            clock = placed.end_s
            for op in placed.slot:
                for letter in "BW" if op.kind is Pass.BACKWARD else op.kind.value:
                    start[letter, op.microbatch, op.stage] = placed.start_s
                    end[letter, op.microbatch, op.stage] = placed.end_s
    program = run.program
    for mb, route_number in enumerate(program.route_of):
        route = program.routes[route_number]
        for here, there in pairwise(route):
            far = p2p if program.device_of[here] != program.device_of[there] else 0.0
            assert start["F", mb, there] >= end["F", mb, here] + far - 1e-9
            assert start["B", mb, here] >= end["B", mb, there] + far - 1e-9
        for stage in route:
            assert start["B", mb, stage] >= end["F", mb, stage] - 1e-9
            assert start["W", mb, stage] >= start["B", mb, stage] - 1e-9


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6, deadline=None)
@given(half=st.integers(1, 4), rounds=st.integers(2, 5), f=SECONDS, b=SECONDS, w=SECONDS)
def test_a_step_is_never_shorter_than_its_work(name: str, half: int, rounds: int, f: float, b: float, w: float) -> None:
    microbatches = 2 * half * rounds
    run = simulate(name, 2 * half, microbatches, f=f, b=b, w=w)
    assert run.step_s >= microbatches * (f + b + w) * (1 - 1e-9)
    share = run.bubble_step_share
    assert run.bubble_useful_ratio == pytest.approx(share / (1 - share), abs=1e-9)


# p, m: idle seconds with F = B = W = 1, as the papers state them, and activations held on the busiest device.
CLAIMS = {
    "gpipe": (lambda p, m: 3 * (p - 1), lambda p, m: m),
    "1f1b": (lambda p, m: 3 * (p - 1), lambda p, m: p),
    "interleaved": (lambda p, m: 3 * (p - 1) / 2, lambda p, m: p * (1 + (p - 1) / (p * 2))),
    "zb-h1": (lambda p, m: p - 1, lambda p, m: p),
    "dualpipe": (lambda p, m: (p / 2 - 1) * (3 + 2 - 3), lambda p, m: p + 1),
}


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize(("p", "m"), [(4, 8), (8, 24), (8, 64), (16, 32)])
def test_bubble_and_memory_are_those_of_the_paper(name: str, p: int, m: int) -> None:
    idle, held = CLAIMS[name]
    run = simulate(name, p, m, f=1, b=1, w=1)
    assert run.step_s - 3 * m == pytest.approx(idle(p, m))
    assert max(run.held_peak) == pytest.approx(held(p, m))


@pytest.mark.parametrize(("p", "m"), [(4, 8), (8, 24), (16, 32)])
def test_zero_bubble_schedules_have_none_when_the_passes_are_equal(p: int, m: int) -> None:
    for name, held in (("zb-h2", 2 * p - 1), ("zb-2p", 2 * p), ("zb-v", p)):
        run = simulate(name, p, m, f=1, b=1, w=1)
        assert run.own_span_share == pytest.approx(0, abs=1e-9), name
        assert max(run.held_peak) <= held + 1e-6, name


@pytest.mark.parametrize(("p", "m"), [(8, 24), (16, 64)])
def test_v_half_and_v_min_trade_memory_for_bubble_as_claimed(p: int, m: int) -> None:
    base = simulate("1f1b", p, m, f=1, b=1, w=1)
    idle = base.step_s - 3 * m
    half = simulate("v-half", p, m, f=1, b=1, w=1)
    least = simulate("v-min", p, m, f=1, b=1, w=1)
    assert (half.step_s - 3 * m) / idle == pytest.approx(1 / 2, abs=0.05)
    assert (least.step_s - 3 * m) / idle == pytest.approx(2 / 3, abs=0.05)
    assert max(half.held_peak) <= p / 2 + 1
    assert max(least.held_peak) <= p / 3 + 2


def test_the_overlapped_pairs_of_dualpipe_shorten_the_step() -> None:
    times = even_times(16, 1, 1, 1)
    program = schedule_named("dualpipe").program(8, 32, 2, times)
    quick = PassTimes(times.forward_s, times.input_grad_s, times.weight_grad_s, together_ratio=0.8)
    assert run_program(program, quick).step_s < run_program(program, times).step_s


def test_a_slow_stage_sets_the_pace() -> None:
    slow = PassTimes((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 2))
    run = run_program(schedule_named("1f1b").program(4, 32, 1, slow), slow)
    assert run.step_s >= 32 * 6
    assert run.bubble_step_share > 0.35


def test_an_impossible_order_is_named_a_deadlock() -> None:
    orders = [[Op(Pass.BACKWARD, 0, 0), Op(Pass.FORWARD, 0, 0)], [Op(Pass.FORWARD, 0, 1), Op(Pass.BACKWARD, 0, 1)]]
    program = linear("broken", orders, one_each(2), 1)
    with pytest.raises(BadRequest, match="deadlock"):
        run_program(program, even_times(2, 1, 1, 1))


def test_interleaving_says_which_number_of_microbatches_would_do() -> None:
    with pytest.raises(BadRequest) as caught:
        schedule_named("1F1B-I").program(8, 30, 2, even_times(8, 1, 1, 1, chunks=2))
    assert "32" in caught.value.hint


def test_unknown_schedules_are_refused_with_the_known_ones() -> None:
    with pytest.raises(BadRequest) as caught:
        schedule_named("2f2b")
    assert "zb-h1" in caught.value.hint
