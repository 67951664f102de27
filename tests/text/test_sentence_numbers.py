"""What people write is heard: the same facts in other words, units and order are the same facts, and no number is of another thing."""

from __future__ import annotations

import random

import pytest

from stallwise.readers.shapes import shapes_in
from stallwise.readers.shapes.written_numbers import normalise_numbers
from stallwise.readers.text.human_text import is_settled, unresolved
from stallwise.readers.text.understand import understand

Facts = dict[tuple[str, str | None], float]

# One fact a row, in the ways people put it; a pair of before and now is one fact too.
WAYS: list[tuple[Facts, list[str]]] = [
    (
        {("run.step_time", None): 1.25},
        ["step time 1.25 s", "a step takes 1250 ms", "1.25 s per step", "1,25 s/step", "step time is 1250ms"],
    ),
    ({("run.mfu", None): 0.31}, ["MFU 31%", "31% MFU", "MFU of 31 percent", "the MFU is 31 %"]),
    ({("gpus", None): 64}, ["64 GPUs", "world size 64"]),
    (
        {("layout.tp", None): 8, ("pp", None): 4},
        ["TP 8, PP 4", "TP/PP 8/4", "tensor parallel 8, pipeline parallel 4", "TP=8 PP=4"],
    ),
    (
        {("serve.prompt_tokens", None): 2048, ("serve.output_tokens", None): 256},
        [
            "ISL/OSL 2048/256",
            "ISL 2048, OSL 256",
            "2048 prompt tokens and 256 output tokens",
            "input length 2048, output length 256",
        ],
    ),
    ({("serve.ttft", None): 0.42}, ["TTFT 420 ms", "time to first token is 0.42 s", "TTFT of 420ms"]),
    (
        {("gpu.power", None): 250, ("gpu.power_limit", None): 700},
        ["power 250W of 700W", "power draw 250 W / 700 W", "power 250 of 700 W"],
    ),
    (
        {("run.gpu_memory", None): 61e9, ("memory.capacity", None): 80e9},
        ["gpu memory 61 of 80 GB", "gpu memory 61/80 GB", "GPU memory use 61 GB out of 80 GB"],
    ),
    (
        {("comm.all_to_all_share", None): 0.5},
        [
            "all-to-all is 50% of the step",
            "half of the step goes into all-to-all",
            "50% of each step is spent in all-to-all",
        ],
    ),
    (
        {("nccl.bus_bandwidth", "before"): 340e9, ("nccl.bus_bandwidth", None): 41e9},
        [
            "busbw 41 GB/s, it was 340",
            "bus bandwidth fell from 340 to 41 GB/s",
            "busbw 340 GB/s -> 41 GB/s",
            "bus bandwidth is 41 GB/s, down from 340 GB/s",
        ],
    ),
    (
        {("run.epoch_time", "before"): 2460, ("run.epoch_time", None): 4920},
        [
            "an epoch takes 82 min (41 before)",
            "epoch time went from 41 min to 1h 22min",
            "epoch time 4920 s, it used to be 2460 s",
        ],
    ),
    (
        {("serve.tpot", "before"): 0.02, ("serve.tpot", None): 0.45},
        ["TPOT went from 20 to 450 ms", "TPOT 20ms → 450ms", "TPOT is 0.45 s now, it was 20 ms"],
    ),
]


def _facts(text: str) -> Facts:
    found = understand(list(shapes_in("mail.txt", text)), text, "mail.txt", written=True)
    return {(f.quantity.name, f.scope.run): f.number for f in found.facts if not isinstance(f.value, str)}


@pytest.mark.parametrize("seed", range(60))
def test_the_same_facts_told_otherwise_are_the_same(seed: int) -> None:
    chance = random.Random(seed)
    told = chance.sample(WAYS, 3)
    text = chance.choice([", ", "; ", ". "]).join(chance.choice(ways) for _, ways in told)
    wanted = {key: value for facts, _ in told for key, value in facts.items()}
    heard = _facts(text)
    assert heard.keys() == wanted.keys(), text
    assert all(abs(heard[key] - value) <= 0.01 * value for key, value in wanted.items()), text


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("a step takes 2,9 s", "a step takes 2.9 s"),
        ("ranks 2,9 are slow", "ranks 2,9 are slow"),
        ("it took 1h 22min", "it took 82 min"),
        ("3-4 s per step", "3.5 s per step"),
        ("util moves between 0 and 98 %", "util moves varying"),
        ("two thirds of each step", "66.67% of each step"),
        ("fell by a third of it", "fell by a third of it"),
        ("latency p50/p99: 0.8/14 s", "latency p50 0.8 s, latency p99 14 s"),
        ("PCIe is Gen1", "PCIe is pcie gen 1"),
        ("a Gen1 design", "a Gen1 design"),
        ("on 11/03 at noon", "on 11/03 at noon"),
    ],
)
def test_spoken_numbers_are_told_plainly(written: str, plain: str) -> None:
    assert normalise_numbers(written) == plain


@pytest.mark.parametrize(
    ("told", "never"),
    [
        ("Does 170 GB/s bus bandwidth on 8 A100s look right?", ("nccl.bus_bandwidth", None, 8.0)),
        ("212 recompiles in the first 1000 steps", ("run.recompiles", None, 1000.0)),
        ("A 3 hour run costs $96 on 8 GPUs", ("run.step_time", None, 10800.0)),
        ("Job finished in 18 h, 1.2M steps", ("run.step_time", None, 64800.0)),
        ("host RAM climbs 2 GB per epoch", ("run.host_memory", None, 2e9)),
        ("64 users, 150 tokens each", ("serve.per_request_rate", None, 64.0)),
        ("8x 400Gb IB per node", ("run.host_memory", None, 4e11)),
        ("prefix hit rate is 4 %", ("custom_speedup", None, 0.04)),
        ("half of the GPUs are idle", ("run.gpu_busy", None, 0.5)),
        ("torch.compile made it 8% faster", ("custom_speedup", None, 0.08)),
    ],
)
def test_a_number_is_of_no_other_thing(told: str, never: tuple[str, str | None, float]) -> None:
    quantity, run, value = never
    assert _facts(told).get((quantity, run)) != value


@pytest.mark.parametrize(
    "page",
    [
        "All good now: 47% MFU as planned, step 1.31 s.",
        "The slow node was replaced. Everything as it should be.",
        "No action needed, the slow first step is compilation.",
    ],
)
def test_who_closes_a_matter_does_not_complain(page: str) -> None:
    assert is_settled(page)


@pytest.mark.parametrize(
    "page",
    [
        "Loss looks fine, no errors, MFU fell to 22%.",
        "All good, but steps take twice as long. Why?",
        "Works again after the reboot, however TTFT is still 9 s.",
        "The fabric is healthy and rank 3 hangs.",
    ],
)
def test_who_doubts_has_not_closed_it(page: str) -> None:
    assert not is_settled(page)


def test_trouble_that_is_over_is_no_trouble() -> None:
    assert "oom" not in unresolved("The OOM is gone, training is slow now")
    assert "slow" in unresolved("The OOM is gone, training is slow now")
